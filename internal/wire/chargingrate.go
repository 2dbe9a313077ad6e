package wire

import "flexd/internal/flex"

// ChargingRateResponse answers GET /entities/asset/{asset_id}/charging-rate: the power that an
// asset is planned with, and what its readings taught of it.
//
//openapi:addition
type ChargingRateResponse struct {
	AssetID flex.AssetID `json:"asset_id"`
	// The lower of charger and car, or the default.
	NominalKW float64 `json:"nominal_kw"`
	PlannedKW float64 `json:"planned_kw"`
	// Of planned_kw: readings, operator, event, asset or default.
	Origin string `json:"origin"`
	// In plain words.
	Summary string `json:"summary"`
	// Set by an operator. Absent if none was.
	PinnedKW *float64 `json:"pinned_kw,omitzero"`
	// That it was learned from.
	HalfHours int  `json:"half_hours"`
	Since     Time `json:"since,omitzero"`
	// none, low, medium or high.
	Certainty         string  `json:"certainty"`
	StartDelayMinutes float64 `json:"start_delay_minutes"`
	// What it falls short of its power while its battery becomes full.
	TailKWh float64 `json:"tail_kwh"`
	// The newest first.
	Sessions []ChargingRateSession `json:"sessions"`
}

// ChargingRateSession is what one session taught.
//
//openapi:addition
type ChargingRateSession struct {
	SessionID      flex.SessionID `json:"session_id"`
	StartTimestamp Time           `json:"start_timestamp"`
	EndTimestamp   Time           `json:"end_timestamp"`
	// That counted.
	HalfHours int `json:"half_hours"`
	// Absent where all that is nominal was drawn, and where none counted.
	PowerKW *float64 `json:"power_kw,omitzero"`
}
