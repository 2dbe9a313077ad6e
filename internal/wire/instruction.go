package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no instructions.

// InstructionQuery holds the parameters of POST /grid/instructions.
//
//openapi:client
type InstructionQuery struct {
	// Say what it would do, and do nothing.
	DryRun bool `json:"dry_run"`
}

// InstructionRequest is the body of POST /grid/instructions: a change against the plan or a limit.
//
//openapi:addition
type InstructionRequest struct {
	// Against the plan, negative to draw less. This or `limit_kw`.
	ChangeKW *float64 `json:"change_kw,omitzero" wire:"min=-10000000,max=10000000"`
	// The most that assets under control may draw together.
	LimitKW *float64 `json:"limit_kw,omitzero" wire:"min=0,max=10000000"`
	// Sites of a constraint group alone.
	Group string `json:"group,omitzero" wire:"text=256"`
	// Sites of a GSP group alone.
	GSPGroup string `json:"gsp_group,omitzero" wire:"text=256"`
	// A whole minute; one that is past counts as now.
	StartTimestamp Time `json:"start_timestamp" wire:"required,zoned"`
	// A whole minute, 24 hours after the start at most and within 48 hours.
	EndTimestamp Time   `json:"end_timestamp" wire:"required,zoned"`
	Service      string `json:"service" wire:"required,enum=InstructionService"`
	// What the service pays per MWh of what is asked for: the flex events of whom it calls are settled at it, in place
	// of the market's price. Without one, at the market's.
	PriceGBPPerMWh float64 `json:"price_gbp_per_mwh,omitzero" wire:"min=0,max=6000"`
	Reason         string  `json:"reason" wire:"required,text=256"`
	// Call the cheapest, whoever was called before.
	Unfair bool `json:"unfair,omitzero"`
}

// InstructionPath holds the path parameter of an instruction.
type InstructionPath struct {
	// The instruction's id.
	//
	//openapi:merge {"example": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f55"}
	ID flex.InstructionID `json:"id" wire:"required"`
}

// InstructionReportQuery holds the parameters of GET /grid/instructions/{id}.
//
//openapi:client
type InstructionReportQuery struct {
	// Each asset's part too.
	Assets bool `json:"assets"`
	// Each minute too, metered by chargers' registers and by the powers of batteries' inverters and of heaters; in CSV in place of the half-hours.
	Minutes bool `json:"minutes"`
	// As JSON, unless asked for as CSV: a row for each half-hour, and for each asset in it.
	Format string `json:"format" wire:"enum=EnvelopeFormat"`
}

// InstructionListQuery holds the parameters of GET /grid/instructions.
//
//openapi:client
type InstructionListQuery struct {
	// The page that follows this instruction, as an answer's next says.
	Before flex.InstructionID `json:"before"`
	// Most items on the page.
	Limit int `json:"limit" wire:"min=1,max=5000,default=10"`
}

// InstructionPage is a page of instructions, the newest first.
//
//openapi:addition
type InstructionPage struct {
	Instructions []Instruction `json:"instructions"`
	// On all pages.
	NumTotal int `json:"num_total"`
	// Ask for the page that follows with `before`; absent on the last.
	Next flex.InstructionID `json:"next,omitzero"`
}

// Instruction is what was asked of a part of a fleet.
//
//openapi:addition
type Instruction struct {
	// Absent from a dry run.
	ID             flex.InstructionID `json:"id,omitzero"`
	State          string             `json:"state" wire:"enum=InstructionState"`
	ChangeKW       *float64           `json:"change_kw,omitzero"`
	LimitKW        *float64           `json:"limit_kw,omitzero"`
	Group          string             `json:"group,omitzero"`
	GSPGroup       string             `json:"gsp_group,omitzero"`
	StartTimestamp Time               `json:"start_timestamp"`
	EndTimestamp   Time               `json:"end_timestamp"`
	Service        string             `json:"service" wire:"enum=InstructionService"`
	PriceGBPPerMWh float64            `json:"price_gbp_per_mwh"`
	Reason         string             `json:"reason"`
	Unfair         bool               `json:"unfair"`
	Who            string             `json:"who"`
	MadeAt         Time               `json:"made_at,omitzero"`
	StoppedAt      Time               `json:"stopped_at,omitzero"`
	StoppedBy      string             `json:"stopped_by,omitzero"`
}

// InstructionPreview answers POST /grid/instructions: what it does, or would do.
//
//openapi:addition
type InstructionPreview struct {
	Instruction Instruction `json:"instruction"`
	At          Time        `json:"at"`
	// At market prices: the plans with it, less the schedules in force. Absent where it is not known: for a dispatch of named batteries.
	CostPence *float64 `json:"cost_pence,omitzero"`
	// Of a dispatch of batteries: the wear of what they discharge more in its time than by their plans, which nobody is billed. Absent where no wear is set.
	WearPence *float64 `json:"wear_pence,omitzero"`
	// The part of the target that is counted on, in the half-hour with the least; 1 is all.
	Reached float64 `json:"reached"`
	// Why not more.
	Why string `json:"why,omitzero"`
	// The most above the plan in the hour after the end.
	ReboundKW float64 `json:"rebound_kw"`
	// The most above the plan after that.
	ReboundLaterKW float64 `json:"rebound_later_kw"`
	NumCalled      int     `json:"num_called"`
	// Assets that can bring something.
	NumCallable int `json:"num_callable"`
	// That bring less than they draw, because of a need or charge-now.
	NumNeeded int `json:"num_needed"`
	// That draw nothing which could be moved.
	NumIdle int `json:"num_idle"`
	// That another instruction calls in the same half-hours.
	NumBusy int `json:"num_busy"`
	// Sites that could bring something, and have had the calls they agreed to.
	NumSpent int `json:"num_spent"`
	// Which limits those are, in words.
	Spent     string                `json:"spent,omitzero"`
	HalfHours []InstructionHalfHour `json:"half_hours"`
	// Who is called.
	Assets []InstructionAsset `json:"assets"`
}

// InstructionHalfHour is a half-hour of an instruction, or a part of one.
//
//openapi:addition
type InstructionHalfHour struct {
	StartTimestamp Time `json:"start_timestamp"`
	EndTimestamp   Time `json:"end_timestamp"`
	// By the schedules in force.
	PlannedKWh float64 `json:"planned_kwh"`
	// The change, without a sign.
	AskedKWh float64 `json:"asked_kwh"`
	// Of it, what is counted on.
	CountedKWh float64 `json:"counted_kwh"`
	// Of it, if all who are called follow.
	GivenKWh float64 `json:"given_kwh"`
	// Of it, what is missing even then. Of a dispatch of batteries: what they do not hold above their reserve, or have no room for.
	ShortKWh float64 `json:"short_kwh"`
}

// InstructionAsset is what an asset does for an instruction.
//
//openapi:addition
type InstructionAsset struct {
	AssetID flex.AssetID `json:"asset_id"`
	SiteID  flex.SiteID  `json:"site_id"`
	// It is a home battery.
	Battery bool `json:"battery"`
	// It is a hot-water tank or a heat pump; what is neither this nor a battery charges a car.
	Heater bool `json:"heater"`
	// How much of its change is counted on.
	QualityPercent int `json:"quality_percent"`
	// Instructions that called its site before.
	NumCalls int `json:"num_calls"`
	// In each half-hour, without a sign.
	ChangeKWh []float64 `json:"change_kwh"`
	// That it charges less by ready-by, beyond its need.
	LessKWh float64 `json:"less_kwh"`
	// Absent where it is not known.
	CostPence *float64 `json:"cost_pence,omitzero"`
}

// InstructionReport answers GET /grid/instructions/{id}.
//
//openapi:addition
type InstructionReport struct {
	Instruction Instruction `json:"instruction"`
	At          Time        `json:"at"`
	// Of the plans as they were sent, less those that stood. Absent where it is not known: for a dispatch of named batteries.
	CostPence *float64 `json:"cost_pence,omitzero"`
	// Assets that were called, also those that were released.
	NumCalled int `json:"num_called"`
	// Sites that it left out, as they had had the calls they agreed to.
	NumSpent int `json:"num_spent"`
	// Which limits those are, in words.
	Spent string `json:"spent,omitzero"`
	// Of it and of the hour after.
	HalfHours []InstructionReportHalf `json:"half_hours"`
	// The same, each minute; if it is asked for.
	Minutes []InstructionReportHalf `json:"minutes,omitzero"`
	Assets  []InstructionReportPart `json:"assets,omitzero"`
	// What it came to in money; absent if it did not say what it pays.
	Settled *InstructionSettled `json:"settled,omitzero"`
}

// InstructionSettled is what became of the flex events that an instruction pays for.
//
//openapi:addition
type InstructionSettled struct {
	// Flex events of whom it called, for what it asked for.
	NumEvents int `json:"num_events"`
	// Of them, those that wait for a reading or a price.
	NumWaiting int `json:"num_waiting"`
	// By the meter against the baseline of settlement; negative for less.
	FlexKWh float64 `json:"flex_kwh"`
	// In its half-hours, before loss factors and shares.
	RevenueGBP float64 `json:"revenue_gbp"`
}

// InstructionReportHalf is what came of an instruction in a half-hour, or a part of one.
//
//openapi:addition
type InstructionReportHalf struct {
	StartTimestamp Time `json:"start_timestamp"`
	EndTimestamp   Time `json:"end_timestamp"`
	// The change against the baseline, negative for less.
	AskedKWh float64 `json:"asked_kwh"`
	// By the schedules that stood.
	BaselineKWh float64 `json:"baseline_kwh"`
	// By the schedules that were sent, each minute by the newest.
	ExpectedKWh float64 `json:"expected_kwh"`
	// Of what is asked for, without a sign, what is not expected. Nothing from when it was stopped.
	ShortKWh float64 `json:"short_kwh"`
	// Assets whose meter has the whole half-hour.
	NumMetered int `json:"num_metered"`
	// Theirs.
	MeteredKWh *float64 `json:"metered_kwh,omitzero"`
	// Their baseline.
	MeteredBaselineKWh *float64 `json:"metered_baseline_kwh,omitzero"`
}

// InstructionReportPart is what came of an instruction at one asset.
//
//openapi:addition
type InstructionReportPart struct {
	AssetID flex.AssetID `json:"asset_id"`
	SiteID  flex.SiteID  `json:"site_id"`
	// A home battery.
	Battery bool `json:"battery,omitzero"`
	// A hot-water tank or a heat pump.
	Heater bool `json:"heater,omitzero"`
	// Whether what it moves is settled at a price. Its site's consents and meters are looked at only then.
	Paid bool `json:"paid"`
	// Why it is not.
	NotPaid  string `json:"not_paid,omitzero"`
	CalledAt Time   `json:"called_at"`
	// When it was released before the end.
	ReleasedAt Time `json:"released_at,omitzero"`
	// Absent where it is not known.
	CostPence   *float64  `json:"cost_pence,omitzero"`
	BaselineKWh []float64 `json:"baseline_kwh"`
	ExpectedKWh []float64 `json:"expected_kwh"`
	// Null where no meter has the whole half-hour.
	MeteredKWh []*float64 `json:"metered_kwh"`
	// If minutes are asked for.
	Minutes *InstructionReportEnergies `json:"minutes,omitzero"`
}

// InstructionReportEnergies is what one asset draws in each minute of a report.
//
//openapi:addition
type InstructionReportEnergies struct {
	BaselineKWh []float64 `json:"baseline_kwh"`
	ExpectedKWh []float64 `json:"expected_kwh"`
	// Null where the charger's register was not read within ten minutes or so, or the battery's inverter or the heater has no reading.
	MeteredKWh []*float64 `json:"metered_kwh"`
}

// InstructionsStopped answers POST /grid/instructions/stop.
//
//openapi:addition
type InstructionsStopped struct {
	NumStopped int `json:"num_stopped"`
}
