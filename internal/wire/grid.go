package wire

// The structs of this file are ours: the interface has no such operations.

// EnvelopeQuery holds the parameters of GET /grid/envelope. What is not given is not a bound.
type EnvelopeQuery struct {
	Group    string `json:"group" wire:"text=256"`
	GSPGroup string `json:"gsp_group" wire:"text=8"`
	Windows  bool   `json:"windows"` // every window, not half-hours alone
	Format   string `json:"format" wire:"enum=EnvelopeFormat"`
}

// EnvelopeResponse answers GET /grid/envelope.
type EnvelopeResponse struct {
	At              Time             `json:"at"`
	Group           string           `json:"group,omitzero"`
	GSPGroup        string           `json:"gsp_group,omitzero"`
	NumControlled   int              `json:"num_controlled"`
	NumUncontrolled int              `json:"num_uncontrolled"`
	NumShort        int              `json:"num_short"`
	HalfHours       []EnvelopeWindow `json:"half_hours"`
	Windows         []EnvelopeWindow `json:"windows,omitzero"`
}

// EnvelopeWindow is one or more half-hours on end; the first begins now.
type EnvelopeWindow struct {
	StartTimestamp Time    `json:"start_timestamp"`
	EndTimestamp   Time    `json:"end_timestamp"`
	PlannedKWh     float64 `json:"planned_kwh"`
	LeastKWh       float64 `json:"least_kwh"`
	MostKWh        float64 `json:"most_kwh"`
}
