package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no such operations.

// StatementQuery holds the parameters of GET /rewards/{site_id}/statement: London days,
// both included. Without them it is the current month.
type StatementQuery struct {
	From *Day `json:"from"`
	To   *Day `json:"to"`
}

// StatementResponse answers it: what was earned, when and why.
type StatementResponse struct {
	SiteID              flex.SiteID     `json:"site_id"`
	From                Day             `json:"from"`
	To                  Day             `json:"to"`
	Number              string          `json:"number"`
	Payer               StatementPayer  `json:"payer"`
	RoundingRule        string          `json:"rounding_rule"` // in words
	OpeningBalancePence flex.Pence      `json:"opening_balance_pence"`
	ClosingBalancePence flex.Pence      `json:"closing_balance_pence"`
	Lines               []StatementLine `json:"lines"`
}

// StatementLine is one transaction with what it rests on.
type StatementLine struct {
	TransactionDatumResponse
	BalancePence flex.Pence        `json:"balance_pence"` // after it
	Cause        string            `json:"cause"`         // in plain words
	Provisional  bool              `json:"provisional"`
	Periods      []StatementPeriod `json:"periods"`

	Calculation *StatementCalculation `json:"calculation"`
}

// StatementPayer is who pays the user.
type StatementPayer struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Contact string `json:"contact"`
}

// StatementCalculation is how a line's pence come from its half-hours.
type StatementCalculation struct {
	UserShare    float64    `json:"user_share"`
	LossFactor   float64    `json:"loss_factor"`
	PaidPart     float64    `json:"paid_part"`     // of the user's share, on an estimate
	CarriedPence float64    `json:"carried_pence"` // of events settled before it on the same meter
	EarlierPence flex.Pence `json:"earlier_pence"` // credited by earlier lines about the same
	Rounding     string     `json:"rounding"`
	LossesPassed bool       `json:"losses_passed_on"`
}

// StatementPeriod is one settlement period behind a line; a missing reading is null.
type StatementPeriod struct {
	StartTimestamp Time     `json:"start_timestamp"`
	BaselineKWh    *float64 `json:"baseline_kwh"`
	MeteredKWh     *float64 `json:"metered_kwh"`
	FlexKWh        *float64 `json:"flex_kwh"`

	PricePencePerKWh *float64 `json:"price_pence_per_kwh"`
}
