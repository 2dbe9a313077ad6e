package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no such operations.

// EnvelopeQuery holds the parameters of GET /grid/envelope. What is not given is not a bound.
//
//openapi:client
type EnvelopeQuery struct {
	// Sites of a constraint group alone.
	Group string `json:"group" wire:"text=256"`
	// Sites of a GSP group alone, by the list of metering points.
	//
	//openapi:merge {"example": "_C"}
	GSPGroup string `json:"gsp_group" wire:"text=256"`
	// Every window of half-hours too.
	Windows bool `json:"windows"`
	// As JSON, unless asked for as CSV: a row for each half-hour, or for each window.
	Format string `json:"format" wire:"enum=EnvelopeFormat"`
}

// EnvelopeResponse answers GET /grid/envelope.
//
//openapi:addition
type EnvelopeResponse struct {
	// Now, by the organisation's clock.
	At       Time   `json:"at"`
	Group    string `json:"group,omitzero"`
	GSPGroup string `json:"gsp_group,omitzero"`
	// Assets in the numbers.
	NumControlled int `json:"num_controlled"`
	// Assets that are plugged in without a schedule in force; they are in no number.
	NumUncontrolled int `json:"num_uncontrolled"`
	// Assets that cannot have what they need, even at full power.
	NumShort int `json:"num_short"`
	// Home batteries that are in the numbers of batteries.
	NumBatteries int `json:"num_batteries,omitzero"`
	// Hot-water tanks and heat pumps that are in the numbers of heaters.
	NumHeaters int `json:"num_heaters,omitzero"`
	// The first is the rest of the running one.
	HalfHours []EnvelopeWindow `json:"half_hours"`
	// By their beginning, then by their length.
	Windows []EnvelopeWindow `json:"windows,omitzero"`
}

// EnvelopeWindow is one or more half-hours on end; the first begins now.
//
//openapi:addition
type EnvelopeWindow struct {
	StartTimestamp Time `json:"start_timestamp"`
	EndTimestamp   Time `json:"end_timestamp"`
	// By the schedules in force.
	PlannedKWh float64 `json:"planned_kwh"`
	// That must be drawn then, if every need is to be met.
	LeastKWh float64 `json:"least_kwh"`
	// That can be drawn then.
	MostKWh float64 `json:"most_kwh"`
	// What home batteries do then beside the cars; nothing without any.
	Batteries *EnvelopeBatteries `json:"batteries,omitzero"`
	// What hot-water tanks and heat pumps do then beside the cars; nothing without any.
	Heaters *EnvelopeHeaters `json:"heaters,omitzero"`
}

// EnvelopeBatteries is what home batteries draw in a window; what they give is below zero.
//
//openapi:addition
type EnvelopeBatteries struct {
	// By their plans.
	PlannedKWh float64 `json:"planned_kwh"`
	// As little as they can draw, or as much as they can give.
	LeastKWh float64 `json:"least_kwh"`
	// As much as they can draw.
	MostKWh float64 `json:"most_kwh"`
}

// EnvelopeHeaters is what hot-water tanks and heat pumps draw in a window.
//
//openapi:addition
type EnvelopeHeaters struct {
	// By their plans.
	PlannedKWh float64 `json:"planned_kwh"`
	// As little as they can draw with their comfort kept.
	LeastKWh float64 `json:"least_kwh"`
	// As much as they can draw with their comfort kept.
	MostKWh float64 `json:"most_kwh"`
}

// ProfileQuery holds the parameters of POST /grid/profile.
//
//openapi:client
type ProfileQuery struct {
	// Every asset's part too.
	Parts bool `json:"parts"`
}

// ProfileRequest is the body of POST /grid/profile: can the assets of a scope draw this?
//
//openapi:addition
type ProfileRequest struct {
	// Sites of a constraint group alone.
	Group string `json:"group,omitzero" wire:"text=256"`
	// Sites of a GSP group alone.
	GSPGroup string `json:"gsp_group,omitzero" wire:"text=256"`
	// Among the 48 from now on.
	HalfHours []ProfileHalf `json:"half_hours" wire:"required,nonempty,items=48"`
}

// ProfileHalf is what is to be drawn in a half-hour.
//
//openapi:addition
type ProfileHalf struct {
	StartTimestamp Time `json:"start_timestamp" wire:"required,zoned"`
	// To be drawn in the half-hour; in the running one, in the rest of it.
	EnergyKWh float64 `json:"energy_kwh" wire:"required,min=0,max=1000000"`
}

// ProfileResponse answers POST /grid/profile.
//
//openapi:addition
type ProfileResponse struct {
	At              Time   `json:"at"`
	Group           string `json:"group,omitzero"`
	GSPGroup        string `json:"gsp_group,omitzero"`
	NumControlled   int    `json:"num_controlled"`
	NumUncontrolled int    `json:"num_uncontrolled"`
	Follows         bool   `json:"follows"`
	// Those that are asked of, in order.
	HalfHours   []EnvelopeWindow    `json:"half_hours"`
	Certificate *ProfileCertificate `json:"certificate,omitzero"`
	Parts       []ProfilePart       `json:"parts,omitzero"`
}

// ProfileCertificate is the half-hours that prove that a profile cannot be followed.
//
//openapi:addition
type ProfileCertificate struct {
	// Half-hours in which the profile cannot be followed.
	StartTimestamps []Time `json:"start_timestamps"`
	// More is asked for than can be drawn; else less than must be.
	TooMuch bool `json:"too_much"`
	// In these half-hours, together.
	AskedKWh float64 `json:"asked_kwh"`
	// The most that can be drawn in them, or the least that must be.
	BoundKWh float64 `json:"bound_kwh"`
	Text     string  `json:"text"`
}

// ProfilePart is what an asset draws of a profile, half-hour by half-hour.
//
//openapi:addition
type ProfilePart struct {
	AssetID flex.AssetID `json:"asset_id"`
	// Of each half-hour that is asked of, in order; charge-now apart.
	EnergyKWh []float64 `json:"energy_kwh"`
}

// AheadQuery holds the parameters of GET /grid/ahead.
//
//openapi:client
type AheadQuery struct {
	// Sites of a constraint group alone.
	Group string `json:"group" wire:"text=256"`
	// Sites of a GSP group alone, by the list of metering points.
	//
	//openapi:merge {"example": "_C"}
	GSPGroup string `json:"gsp_group" wire:"text=256"`
	// In London, from 90 days ago to tomorrow. Tomorrow if not given.
	Day *Day `json:"day"`
	// How many half-hours a window has. What can be left out for two hours is less than in each of
	// them.
	HalfHours int `json:"half_hours" wire:"min=1,max=48,default=1"`
	// As JSON, unless asked for as CSV: a row for each kind of each window.
	Format string `json:"format" wire:"enum=EnvelopeFormat"`
}

// AheadResponse answers GET /grid/ahead: what a scope's cars will draw on a day, and what cars and home
// batteries could draw less and more, at least. Lists of five numbers are by the confidences.
//
//openapi:addition
type AheadResponse struct {
	// Now, by the organisation's clock.
	At       Time   `json:"at"`
	Day      Day    `json:"day"`
	Group    string `json:"group,omitzero"`
	GSPGroup string `json:"gsp_group,omitzero"`
	// Days that were learned from.
	NumDays int `json:"num_days"`
	// Plug sessions with a schedule in them.
	NumStays int `json:"num_stays"`
	// Plug sessions without one; they are in no number.
	NumUncontrolled int `json:"num_uncontrolled"`
	// Home batteries whose days are in turn_down and turn_up.
	NumBatteries int `json:"num_batteries,omitzero"`
	// Tanks and heat pumps whose days are in turn_down and turn_up.
	NumHeaters int `json:"num_heaters,omitzero"`
	// Of 100 times, how often at least what is said is to come; lists of five numbers are in
	// this order.
	Confidences []int `json:"confidences"`
	// Of load, turn_down and turn_up.
	Reliability []AheadJudged `json:"reliability"`
	// Within the day.
	Windows []AheadWindow `json:"windows"`
}

// AheadJudged is how forecasts of past days did, by confidence, each made from the days before it.
//
//openapi:addition
type AheadJudged struct {
	// load, turn_down or turn_up.
	Kind string `json:"kind"`
	// Past days that were forecast from the days before them.
	NumDays int `json:"num_days"`
	// Share of their windows in which at least the forecast came.
	Kept []float64 `json:"kept"`
	// What was forecast in sum, of what came.
	Volume []float64 `json:"volume"`
}

// AheadWindow is what is expected of a window at least, and what came, once its day is over.
//
//openapi:addition
type AheadWindow struct {
	StartTimestamp Time `json:"start_timestamp"`
	EndTimestamp   Time `json:"end_timestamp"`
	// What cars draw at least, on average.
	LoadKW []float64 `json:"load_kw"`
	// What of it can be left out at least, with every need met, with what home batteries can draw less or give.
	TurnDownKW []float64 `json:"turn_down_kw"`
	// What can be drawn more at least, by cars and home batteries.
	TurnUpKW []float64 `json:"turn_up_kw"`
	// What came, once the day is over.
	LoadCameKW     *float64 `json:"load_came_kw,omitzero"`
	TurnDownCameKW *float64 `json:"turn_down_came_kw,omitzero"`
	TurnUpCameKW   *float64 `json:"turn_up_came_kw,omitzero"`
}
