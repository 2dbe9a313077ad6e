package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no such operations.

// StatementQuery holds the parameters of GET /rewards/{site_id}/statement: London days, both
// included, or a month, or a tax year by the year in which it begins. Without them it is the
// current month.
type StatementQuery struct {
	From    *Day   `json:"from"`
	To      *Day   `json:"to"`
	Month   string `json:"month"` // YYYY-MM
	TaxYear int    `json:"tax_year" wire:"min=2000,max=2100"`
	Format  string `json:"format" wire:"enum=StatementFormat"`
}

// StatementResponse answers it: what was earned, when and why.
type StatementResponse struct {
	SiteID              flex.SiteID       `json:"site_id"`
	From                Day               `json:"from"`
	To                  Day               `json:"to"`
	MadeAt              Time              `json:"made_at"`
	Number              string            `json:"number"`
	Payer               StatementPayer    `json:"payer"`
	Customer            StatementCustomer `json:"customer"`
	RoundingRule        string            `json:"rounding_rule"` // in words
	OpeningBalancePence flex.Pence        `json:"opening_balance_pence"`
	ClosingBalancePence flex.Pence        `json:"closing_balance_pence"`
	Totals              StatementTotals   `json:"totals"`
	Lines               []StatementLine   `json:"lines"`
	Months              []StatementMonth  `json:"months"`
}

// StatementTotals are the sums over the lines.
type StatementTotals struct {
	EarnedPence    flex.Pence `json:"earned_pence"`
	OtherPence     flex.Pence `json:"other_pence"`
	WithdrawnPence flex.Pence `json:"withdrawn_pence"`
	FlexKWh        float64    `json:"flex_kwh"`
	CreditableKWh  float64    `json:"creditable_kwh"`
}

// StatementLine is one transaction with what it rests on.
type StatementLine struct {
	TransactionDatumResponse
	RecordedAt   Time                  `json:"recorded_at"`
	FlexEventID  flex.FlexEventID      `json:"flex_event_id,omitzero"`
	BalancePence flex.Pence            `json:"balance_pence"` // after it
	Cause        string                `json:"cause"`         // in plain words
	Working      []string              `json:"working"`       // how its pence were worked out, in plain words
	Note         string                `json:"note,omitempty"`
	Provisional  bool                  `json:"provisional"`
	Label        flex.Label            `json:"label,omitempty" wire:"enum=ReadingLabel"`
	Periods      []StatementPeriod     `json:"periods"`
	Calculation  *StatementCalculation `json:"calculation"`
}

// StatementPayer is who pays the user.
type StatementPayer struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Contact string `json:"contact"`
}

// StatementCustomer is whose statement it is.
type StatementCustomer struct {
	Address  string `json:"address"`
	Postcode string `json:"postcode"`
}

// StatementCalculation is how a line's pence come from its half-hours.
type StatementCalculation struct {
	UserShare    float64    `json:"user_share"`
	LossFactor   float64    `json:"loss_factor"`
	PaidPart     float64    `json:"paid_part"`     // of the user's share, on an estimate
	CarriedPence float64    `json:"carried_pence"` // of events settled before it on the same meter
	DuePence     flex.Pence `json:"due_pence"`     // what the event or session comes to for the user by itself
	EarlierPence flex.Pence `json:"earlier_pence"` // credited by earlier lines about the same
	EarlierKWh   float64    `json:"earlier_kwh"`   // counted by them
	Rounding     string     `json:"rounding"`
	LossesPassed bool       `json:"losses_passed_on"`

	StandardErrorPence float64 `json:"standard_error_pence"` // of the due pence of an event

	Month *StatementNetting `json:"month"` // null: not netted by month
}

// StatementNetting is what the other events of a month stood at when a line was posted.
type StatementNetting struct {
	Month               string     `json:"month"` // YYYY-MM
	OthersPence         flex.Pence `json:"others_pence"`
	OthersCreditedPence flex.Pence `json:"others_credited_pence"`
	CarriedInPence      flex.Pence `json:"carried_in_pence"`     // and not lapsed
	SumPence            flex.Pence `json:"sum_pence"`            // others, the event itself and what is carried in
	StandardErrorPence  float64    `json:"standard_error_pence"` // of the sum
	Certainty           float64    `json:"certainty"`            // 0: a sum above nothing is credited
	ThresholdPence      float64    `json:"threshold_pence"`      // what the sum must be above to be credited
	CreditPence         flex.Pence `json:"credit_pence"`         // of the month
	LaterPence          flex.Pence `json:"later_pence"`          // by which the line changes later months' credit
}

// StatementPeriod is one settlement period behind a line; a missing reading is null.
type StatementPeriod struct {
	StartTimestamp Time     `json:"start_timestamp"`
	BaselineKWh    *float64 `json:"baseline_kwh"`
	MeteredKWh     *float64 `json:"metered_kwh"`
	FlexKWh        *float64 `json:"flex_kwh"`
	ChangeKWh      float64  `json:"change_kwh"` // of it, what earlier lines did not count

	StandardErrorKWh *float64 `json:"standard_error_kwh"` // of the baseline, as far as it is the event's

	PricePencePerKWh *float64           `json:"price_pence_per_kwh"`
	PriceSource      string             `json:"price_source,omitempty"`
	PriceRole        string             `json:"price_role,omitempty"`
	PriceImportedAt  Time               `json:"price_imported_at,omitzero"`
	PublicationID    flex.PublicationID `json:"publication_id,omitzero"`
	AssetID          flex.AssetID       `json:"asset_id,omitzero"` // the device that read it
}

// StatementMonth is a London month whose events are netted, as it stood at the statement's end.
type StatementMonth struct {
	Month        string                `json:"month"`
	Events       []StatementMonthEvent `json:"events"`
	SharesPence  flex.Pence            `json:"shares_pence"`
	FlooredPence flex.Pence            `json:"floored_pence"`
	CreditPence  flex.Pence            `json:"credit_pence"`

	CarriedInPence     flex.Pence `json:"carried_in_pence"`
	LapsedPence        flex.Pence `json:"lapsed_pence"` // of that, what was carried long enough
	SumPence           flex.Pence `json:"sum_pence"`    // shares and what is carried in, less what lapsed
	StandardErrorPence float64    `json:"standard_error_pence"`
	Certainty          float64    `json:"certainty"`
	CarryMonths        int        `json:"carry_months"`
	ThresholdPence     float64    `json:"threshold_pence"`
	CarriedOutPence    flex.Pence `json:"carried_out_pence"`
	Note               string     `json:"note"` // in plain words
}

// StatementMonthEvent is one event of such a month.
type StatementMonthEvent struct {
	FlexEventID   flex.FlexEventID `json:"flex_event_id"`
	StartTime     Time             `json:"start_time"`
	EndTime       Time             `json:"end_time"`
	FlexKWh       float64          `json:"flex_kwh"`
	GrossPence    float64          `json:"gross_pence"`
	SharePence    flex.Pence       `json:"share_pence"`
	CreditedPence flex.Pence       `json:"credited_pence"`

	StandardErrorPence float64 `json:"standard_error_pence"` // of the share
}
