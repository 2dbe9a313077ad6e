package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no instructions.

// InstructionQuery holds the parameters of POST /grid/instructions.
type InstructionQuery struct {
	DryRun bool `json:"dry_run"` // say what it would do, and keep and send nothing
}

// InstructionRequest is the body of POST /grid/instructions: a change against the plan or a limit.
type InstructionRequest struct {
	ChangeKW       *float64 `json:"change_kw,omitzero" wire:"min=-10000000,max=10000000"`
	LimitKW        *float64 `json:"limit_kw,omitzero" wire:"min=0,max=10000000"`
	Group          string   `json:"group,omitzero" wire:"text=256"`
	GSPGroup       string   `json:"gsp_group,omitzero" wire:"text=256"`
	StartTimestamp Time     `json:"start_timestamp" wire:"required,zoned"`
	EndTimestamp   Time     `json:"end_timestamp" wire:"required,zoned"`
	Service        string   `json:"service" wire:"required,enum=InstructionService"`
	PriceGBPPerMWh float64  `json:"price_gbp_per_mwh,omitzero" wire:"min=-100000,max=100000"`
	Reason         string   `json:"reason" wire:"required,text=256"`
	Unfair         bool     `json:"unfair,omitzero"`
}

// InstructionPath holds the path parameter of an instruction.
type InstructionPath struct {
	ID flex.InstructionID `json:"id" wire:"required"`
}

// InstructionReportQuery holds the parameters of GET /grid/instructions/{id}.
type InstructionReportQuery struct {
	Assets bool   `json:"assets"` // each asset's part too
	Format string `json:"format" wire:"enum=EnvelopeFormat"`
}

// InstructionListQuery holds the parameters of GET /grid/instructions.
type InstructionListQuery struct {
	Before flex.InstructionID `json:"before"` // the page that follows the instruction of that id
	Limit  int                `json:"limit" wire:"min=1,max=5000,default=10"`
}

// InstructionPage is a page of instructions, the newest first.
type InstructionPage struct {
	Instructions []Instruction      `json:"instructions"`
	NumTotal     int                `json:"num_total"` // on all pages
	Next         flex.InstructionID `json:"next,omitzero"`
}

// Instruction is what was asked of a part of a fleet.
type Instruction struct {
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
type InstructionPreview struct {
	Instruction    Instruction           `json:"instruction"`
	At             Time                  `json:"at"`
	CostPence      float64               `json:"cost_pence"`
	Reached        float64               `json:"reached"`
	Why            string                `json:"why,omitzero"`
	ReboundKW      float64               `json:"rebound_kw"`
	ReboundLaterKW float64               `json:"rebound_later_kw"`
	NumCalled      int                   `json:"num_called"`
	NumCallable    int                   `json:"num_callable"`
	NumNeeded      int                   `json:"num_needed"`
	NumIdle        int                   `json:"num_idle"`
	NumBusy        int                   `json:"num_busy"`
	HalfHours      []InstructionHalfHour `json:"half_hours"`
	Assets         []InstructionAsset    `json:"assets"`
}

// InstructionHalfHour is a half-hour of an instruction, or a part of one.
type InstructionHalfHour struct {
	StartTimestamp Time    `json:"start_timestamp"`
	EndTimestamp   Time    `json:"end_timestamp"`
	PlannedKWh     float64 `json:"planned_kwh"`
	AskedKWh       float64 `json:"asked_kwh"`
	CountedKWh     float64 `json:"counted_kwh"`
	GivenKWh       float64 `json:"given_kwh"`
}

// InstructionAsset is what an asset does for an instruction.
type InstructionAsset struct {
	AssetID        flex.AssetID `json:"asset_id"`
	SiteID         flex.SiteID  `json:"site_id"`
	QualityPercent int          `json:"quality_percent"`
	NumCalls       int          `json:"num_calls"`
	ChangeKWh      []float64    `json:"change_kwh"`
	LessKWh        float64      `json:"less_kwh"`
	CostPence      float64      `json:"cost_pence"`
}

// InstructionReport answers GET /grid/instructions/{id}.
type InstructionReport struct {
	Instruction Instruction             `json:"instruction"`
	At          Time                    `json:"at"`
	CostPence   float64                 `json:"cost_pence"`
	NumCalled   int                     `json:"num_called"`
	HalfHours   []InstructionReportHalf `json:"half_hours"`
	Assets      []InstructionReportPart `json:"assets,omitzero"`
}

// InstructionReportHalf is what came of an instruction in a half-hour, or a part of one.
type InstructionReportHalf struct {
	StartTimestamp     Time     `json:"start_timestamp"`
	EndTimestamp       Time     `json:"end_timestamp"`
	AskedKWh           float64  `json:"asked_kwh"`
	BaselineKWh        float64  `json:"baseline_kwh"`
	ExpectedKWh        float64  `json:"expected_kwh"`
	NumMetered         int      `json:"num_metered"`
	MeteredKWh         *float64 `json:"metered_kwh,omitzero"`
	MeteredBaselineKWh *float64 `json:"metered_baseline_kwh,omitzero"`
}

// InstructionReportPart is what came of an instruction at one asset.
type InstructionReportPart struct {
	AssetID     flex.AssetID `json:"asset_id"`
	SiteID      flex.SiteID  `json:"site_id"`
	CalledAt    Time         `json:"called_at"`
	ReleasedAt  Time         `json:"released_at,omitzero"`
	CostPence   float64      `json:"cost_pence"`
	BaselineKWh []float64    `json:"baseline_kwh"`
	ExpectedKWh []float64    `json:"expected_kwh"`
	MeteredKWh  []*float64   `json:"metered_kwh"`
}

// InstructionsStopped answers POST /grid/instructions/stop.
type InstructionsStopped struct {
	NumStopped int `json:"num_stopped"`
}
