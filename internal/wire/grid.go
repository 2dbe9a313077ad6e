package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no such operations.

// EnvelopeQuery holds the parameters of GET /grid/envelope. What is not given is not a bound.
type EnvelopeQuery struct {
	Group    string `json:"group" wire:"text=256"`
	GSPGroup string `json:"gsp_group" wire:"text=256"`
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

// ProfileQuery holds the parameters of POST /grid/profile.
type ProfileQuery struct {
	Parts bool `json:"parts"` // every asset's part
}

// ProfileRequest is the body of POST /grid/profile: can the assets of a scope draw this?
type ProfileRequest struct {
	Group     string        `json:"group,omitzero" wire:"text=256"`
	GSPGroup  string        `json:"gsp_group,omitzero" wire:"text=256"`
	HalfHours []ProfileHalf `json:"half_hours" wire:"required,nonempty,items=48"`
}

// ProfileHalf is what is to be drawn in a half-hour.
type ProfileHalf struct {
	StartTimestamp Time    `json:"start_timestamp" wire:"required,zoned"`
	EnergyKWh      float64 `json:"energy_kwh" wire:"required,min=0,max=1000000"`
}

// ProfileResponse answers POST /grid/profile.
type ProfileResponse struct {
	At              Time                `json:"at"`
	Group           string              `json:"group,omitzero"`
	GSPGroup        string              `json:"gsp_group,omitzero"`
	NumControlled   int                 `json:"num_controlled"`
	NumUncontrolled int                 `json:"num_uncontrolled"`
	Follows         bool                `json:"follows"`
	HalfHours       []EnvelopeWindow    `json:"half_hours"` // those that are asked of, in order
	Certificate     *ProfileCertificate `json:"certificate,omitzero"`
	Parts           []ProfilePart       `json:"parts,omitzero"`
}

// ProfileCertificate is the half-hours that prove that a profile cannot be followed.
type ProfileCertificate struct {
	StartTimestamps []Time  `json:"start_timestamps"`
	TooMuch         bool    `json:"too_much"` // else too little
	AskedKWh        float64 `json:"asked_kwh"`
	BoundKWh        float64 `json:"bound_kwh"`
	Text            string  `json:"text"`
}

// ProfilePart is what an asset draws of a profile, half-hour by half-hour.
type ProfilePart struct {
	AssetID   flex.AssetID `json:"asset_id"`
	EnergyKWh []float64    `json:"energy_kwh"`
}

// AheadQuery holds the parameters of GET /grid/ahead.
type AheadQuery struct {
	Group     string `json:"group" wire:"text=256"`
	GSPGroup  string `json:"gsp_group" wire:"text=256"`
	Day       *Day   `json:"day"`                                      // in London; tomorrow if it is not given
	HalfHours int    `json:"half_hours" wire:"min=1,max=48,default=1"` // of a window
	Format    string `json:"format" wire:"enum=EnvelopeFormat"`
}

// AheadResponse answers GET /grid/ahead: what a scope's cars will draw on a day, could leave out
// and could draw more, at least. Lists of five numbers are by the confidences.
type AheadResponse struct {
	At              Time          `json:"at"`
	Day             Day           `json:"day"`
	Group           string        `json:"group,omitzero"`
	GSPGroup        string        `json:"gsp_group,omitzero"`
	NumDays         int           `json:"num_days"`
	NumStays        int           `json:"num_stays"`
	NumUncontrolled int           `json:"num_uncontrolled"`
	Confidences     []int         `json:"confidences"`
	Reliability     []AheadJudged `json:"reliability"`
	Windows         []AheadWindow `json:"windows"`
}

// AheadJudged is how forecasts of past days did, by confidence, each made from the days before it.
type AheadJudged struct {
	Kind    string    `json:"kind"`
	NumDays int       `json:"num_days"`
	Kept    []float64 `json:"kept"`
	Volume  []float64 `json:"volume"`
}

// AheadWindow is what is expected of a window at least, and what came, once its day is over.
type AheadWindow struct {
	StartTimestamp Time      `json:"start_timestamp"`
	EndTimestamp   Time      `json:"end_timestamp"`
	LoadKW         []float64 `json:"load_kw"`
	TurnDownKW     []float64 `json:"turn_down_kw"`
	TurnUpKW       []float64 `json:"turn_up_kw"`
	LoadCameKW     *float64  `json:"load_came_kw,omitzero"`
	TurnDownCameKW *float64  `json:"turn_down_came_kw,omitzero"`
	TurnUpCameKW   *float64  `json:"turn_up_came_kw,omitzero"`
}
