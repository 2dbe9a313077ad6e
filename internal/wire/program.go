package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no OpenADR.

// Programs answers GET /grid/programs.
//
//openapi:addition
type Programs struct {
	Programs []Program `json:"programs"`
}

// Program is an OpenADR program, and for which part of the fleet its events are.
//
//openapi:addition
type Program struct {
	ID   flex.ADRObjectID `json:"id"`
	Name string           `json:"name"`
	// Absent of one whose events are for VENs alone.
	Binding *ProgramBinding `json:"binding,omitzero"`
}

// ProgramBinding says what the events of a program become.
//
//openapi:addition
type ProgramBinding struct {
	Kind           string  `json:"kind" wire:"enum=ProgramBindingKind"`
	Service        string  `json:"service" wire:"enum=InstructionService"`
	PriceGBPPerMWh float64 `json:"price_gbp_per_mwh,omitzero"`
	// At the levels 1, 2 and so on of SIMPLE; negative to draw less.
	SimpleKW []float64 `json:"simple_kw"`
	Group    string    `json:"group,omitzero"`
	GSPGroup string    `json:"gsp_group,omitzero"`
	Who      string    `json:"who"`
	MadeAt   Time      `json:"made_at"`
}

// ProgramPath holds the path parameter of a program.
type ProgramPath struct {
	// The program's id.
	//
	//openapi:merge {"example": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f77"}
	ID flex.ADRObjectID `json:"id" wire:"required"`
}

// ProgramBindingQuery holds the parameter of a change of a binding.
//
//openapi:client
type ProgramBindingQuery struct {
	// Only say what the change would do.
	DryRun bool `json:"dry_run"`
}

// ProgramBindingRequest is the body of PUT /grid/programs/{id}/binding.
//
//openapi:addition
type ProgramBindingRequest struct {
	// An instruction if it is not given; limit: a limit of what the group draws or gives; import_limit: of what it draws alone.
	Kind string `json:"kind,omitzero" wire:"enum=ProgramBindingKind"`
	// other if it is not given.
	Service string `json:"service,omitzero" wire:"enum=InstructionService"`
	// What its instructions pay for what they ask for.
	PriceGBPPerMWh float64 `json:"price_gbp_per_mwh,omitzero" wire:"min=0,max=6000"`
	// The change at the levels 1, 2 and so on of SIMPLE; negative to draw less.
	SimpleKW []float64 `json:"simple_kw,omitzero" wire:"items=100"`
	Group    string    `json:"group,omitzero" wire:"text=256"`
	GSPGroup string    `json:"gsp_group,omitzero" wire:"text=256"`
}

// ProgramBound is what a change of a binding did, or would do.
//
//openapi:addition
type ProgramBound struct {
	Program Program `json:"program"`
	// What its events ask for now and did not before.
	Asked []ProgramOrder `json:"asked"`
	// What is not asked for any more: its instructions are stopped, its limits end.
	Withdrawn []ProgramOrder `json:"withdrawn"`
	NumStays  int            `json:"num_stays"` // that is asked for as before
}

// ProgramOrder is what an interval of an event asks for.
//
//openapi:addition
type ProgramOrder struct {
	EventID        flex.ADRObjectID `json:"event_id"`
	Interval       int              `json:"interval"`
	StartTimestamp Time             `json:"start_timestamp"`
	EndTimestamp   Time             `json:"end_timestamp"`
	// Against the plan, negative for less; absent of a limit, and of what cannot be read.
	ChangeKW  float64  `json:"change_kw,omitzero"`
	LimitKW   *float64 `json:"limit_kw,omitzero"`
	Direction string   `json:"direction,omitzero" wire:"enum=LimitDirection"`
	State     string   `json:"state" wire:"enum=ProgramOrderState"`
	// Why it is not carried out.
	Problem string `json:"problem,omitzero"`
}
