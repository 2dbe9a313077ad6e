package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no such operations.

// StatementQuery holds the parameters of GET /rewards/{site_id}/statement: London days, both
// included, or a month, or a tax year by the year in which it begins. Without them it is the
// current month.
//
//openapi:client
type StatementQuery struct {
	// The first day, in London. The first of the month if not given.
	//
	//openapi:merge {"example": "2026-01-01"}
	From *Day `json:"from"`
	// The last day. Today if not given.
	//
	//openapi:merge {"example": "2026-01-31"}
	To *Day `json:"to"`
	// A London month, instead of days.
	Month string `json:"month"`
	// A tax year of the United Kingdom, instead of days: from 6 April of this year to 5 April of the
	// next.
	TaxYear int `json:"tax_year" wire:"min=2000,max=2100"`
	// As JSON, unless asked for as CSV.
	Format string `json:"format" wire:"enum=StatementFormat"`
}

// StatementResponse answers it: what was earned, when and why.
//
//openapi:addition
type StatementResponse struct {
	SiteID flex.SiteID `json:"site_id"`
	From   Day         `json:"from"`
	To     Day         `json:"to"`
	MadeAt Time        `json:"made_at"`
	// Of the statement; other days or another site have another.
	Number   string            `json:"number"`
	Payer    StatementPayer    `json:"payer"`
	Customer StatementCustomer `json:"customer"`
	// In words, how each line's pence are worked out.
	RoundingRule        string           `json:"rounding_rule"`
	OpeningBalancePence flex.Pence       `json:"opening_balance_pence"`
	ClosingBalancePence flex.Pence       `json:"closing_balance_pence"`
	Totals              StatementTotals  `json:"totals"`
	Lines               []StatementLine  `json:"lines"`
	Months              []StatementMonth `json:"months"`
}

// StatementTotals are the sums over the lines.
//
//openapi:addition
type StatementTotals struct {
	// By flexibility and charging, corrections included.
	EarnedPence flex.Pence `json:"earned_pence"`
	// Goodwill and the like.
	OtherPence flex.Pence `json:"other_pence"`
	// Below zero.
	WithdrawnPence flex.Pence `json:"withdrawn_pence"`
	// Of all events, with its sign: less than usual is negative.
	FlexKWh float64 `json:"flex_kwh"`
	// Of the events that came to less than usual, below 0 where more of earlier days is corrected.
	LessKWh float64 `json:"less_kwh"`
	// Of the events that came to more than usual, below 0 where more of earlier days is corrected.
	MoreKWh float64 `json:"more_kwh"`
	// Charged in sessions that are credited.
	CreditableKWh float64 `json:"creditable_kwh"`
}

// StatementLine is one transaction with what it rests on.
//
//openapi:addition
type StatementLine struct {
	TransactionDatumResponse
	RecordedAt  Time             `json:"recorded_at"`
	FlexEventID flex.FlexEventID `json:"flex_event_id,omitzero"`
	// After the transaction.
	BalancePence flex.Pence `json:"balance_pence"`
	// In plain words.
	Cause string `json:"cause"`
	// How its pence were worked out, in plain words.
	Working []string `json:"working"`
	// What of it cannot be shown, and why.
	Note        string            `json:"note,omitempty"`
	Provisional bool              `json:"provisional"`
	Label       flex.Label        `json:"label,omitempty" wire:"enum=ReadingLabel"`
	Periods     []StatementPeriod `json:"periods"`
	//openapi:merge {"oneOf": [{"$ref": "#/components/schemas/StatementCalculation"}, {"type": "null"}], "$ref": null}
	Calculation *StatementCalculation `json:"calculation"`
}

// StatementPayer is who pays the user.
//
//openapi:addition
type StatementPayer struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Contact string `json:"contact"`
}

// StatementCustomer is whose statement it is.
//
//openapi:addition
type StatementCustomer struct {
	Address  string `json:"address"`
	Postcode string `json:"postcode"`
}

// StatementCalculation is how a line's pence come from its half-hours.
//
// How a line's pence come from its half-hours; see `rounding_rule`.
//
//openapi:addition
type StatementCalculation struct {
	UserShare  float64 `json:"user_share"`
	LossFactor float64 `json:"loss_factor"`
	// Part of the user's share that an estimate pays; 1 once it is final.
	PaidPart float64 `json:"paid_part"`
	// What the events settled before this one on the same meter and day are worth: they are
	// rounded together.
	CarriedPence float64 `json:"carried_pence"`
	// What the event, or the session, comes to for the user by itself.
	DuePence flex.Pence `json:"due_pence"`
	// Credited by earlier lines about the same event or session.
	EarlierPence flex.Pence `json:"earlier_pence"`
	// Counted by them.
	EarlierKWh float64 `json:"earlier_kwh"`
	Rounding   string  `json:"rounding"`
	// Whether an event that cost money takes it from the user.
	LossesPassed bool `json:"losses_passed_on"`

	// Of `due_pence`: by how much the baselines behind it err.
	StandardErrorPence float64 `json:"standard_error_pence"`

	// Null: the event is not netted with others.
	//
	//openapi:merge {"oneOf": [{"$ref": "#/components/schemas/StatementNetting"}, {"type": "null"}], "$ref": null}
	Month *StatementNetting `json:"month"`
}

// StatementNetting is what the other events of a month stood at when a line was posted.
//
// What the other events of the month stood at when the line was posted.
//
//openapi:addition
type StatementNetting struct {
	// YYYY-MM.
	Month string `json:"month"`
	// What they came to for the user.
	OthersPence flex.Pence `json:"others_pence"`
	// What of the month's credit was credited before, but for the event's own earlier lines.
	OthersCreditedPence flex.Pence `json:"others_credited_pence"`
	// What is carried into the month and has not lapsed; below zero if it cost money.
	CarriedInPence flex.Pence `json:"carried_in_pence"`
	// What the month comes to: the others, the event itself and what is carried in.
	SumPence flex.Pence `json:"sum_pence"`
	// Of the sum; 0 where no certainty is asked for.
	StandardErrorPence float64 `json:"standard_error_pence"`
	// How many standard errors the sum must be above; 0: a sum above nothing is credited, and
	// nothing is carried.
	Certainty float64 `json:"certainty"`
	// What the sum must be above to be credited.
	ThresholdPence float64 `json:"threshold_pence"`
	// What the month is credited: the sum, or nothing.
	CreditPence flex.Pence `json:"credit_pence"`
	// By how much the line changes what later months are credited.
	LaterPence flex.Pence `json:"later_pence"`
}

// StatementPeriod is one settlement period behind a line; a missing reading is null.
//
//openapi:addition
type StatementPeriod struct {
	StartTimestamp Time     `json:"start_timestamp"`
	BaselineKWh    *float64 `json:"baseline_kwh"`
	MeteredKWh     *float64 `json:"metered_kwh"`
	// The part of the difference that is counted for this line.
	FlexKWh *float64 `json:"flex_kwh"`
	// Of `flex_kwh`, what earlier lines about the same event did not count yet.
	ChangeKWh float64 `json:"change_kwh"`

	// Of the baseline, as far as it is the event's.
	StandardErrorKWh *float64 `json:"standard_error_kwh"`

	PricePencePerKWh *float64 `json:"price_pence_per_kwh"`
	// Where the price is from.
	PriceSource string `json:"price_source,omitempty"`
	// As what it counts: `contract` or `settlement`. A planning price settles nothing.
	PriceRole string `json:"price_role,omitempty"`
	// When flexd had the price.
	PriceImportedAt Time `json:"price_imported_at,omitzero"`
	// The publication that the price is from.
	PublicationID flex.PublicationID `json:"publication_id,omitzero"`
	// The asset whose device read it.
	AssetID flex.AssetID `json:"asset_id,omitzero"`
}

// StatementMonth is a London month whose events are netted, as it stood at the statement's end.
//
// A London month whose events are netted, as it stood at the end of the statement.
//
//openapi:addition
type StatementMonth struct {
	// YYYY-MM.
	Month  string                `json:"month"`
	Events []StatementMonthEvent `json:"events"`
	// The sum of what the events come to.
	SharesPence flex.Pence `json:"shares_pence"`
	// What they cost in all, which is not taken from the user.
	FlooredPence flex.Pence `json:"floored_pence"`
	// The sum, or nothing.
	CreditPence flex.Pence `json:"credit_pence"`

	// From earlier months.
	CarriedInPence flex.Pence `json:"carried_in_pence"`
	// Of that, what was carried for as many months as it is, and is no more.
	LapsedPence flex.Pence `json:"lapsed_pence"`
	// What the month is decided on.
	SumPence flex.Pence `json:"sum_pence"`
	// Of the sum; 0 where no certainty is asked for.
	StandardErrorPence float64 `json:"standard_error_pence"`
	// How many standard errors the sum must be above.
	Certainty float64 `json:"certainty"`
	// For how many months the month is carried.
	CarryMonths int `json:"carry_months"`
	// What the sum must be above to be credited.
	ThresholdPence float64 `json:"threshold_pence"`
	// Into later months.
	CarriedOutPence flex.Pence `json:"carried_out_pence"`
	// In plain words: what became of the sum.
	Note string `json:"note"`
}

// StatementMonthEvent is one event of such a month.
//
//openapi:addition
type StatementMonthEvent struct {
	FlexEventID flex.FlexEventID `json:"flex_event_id"`
	StartTime   Time             `json:"start_time"`
	EndTime     Time             `json:"end_time"`
	FlexKWh     float64          `json:"flex_kwh"`
	// What the market pays.
	GrossPence float64 `json:"gross_pence"`
	// What it comes to for the user by itself, as far as it is paid now.
	SharePence flex.Pence `json:"share_pence"`
	// By its lines.
	CreditedPence flex.Pence `json:"credited_pence"`

	// Of `share_pence`.
	StandardErrorPence float64 `json:"standard_error_pence"`
}
