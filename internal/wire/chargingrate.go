package wire

import "flexd/internal/flex"

// ChargingRateResponse answers GET /entities/asset/{asset_id}/charging-rate: the power that an
// asset is planned with, and what its readings taught of it.
type ChargingRateResponse struct {
	AssetID           flex.AssetID          `json:"asset_id"`
	NominalKW         float64               `json:"nominal_kw"`
	PlannedKW         float64               `json:"planned_kw"`
	Origin            string                `json:"origin"`
	Summary           string                `json:"summary"`
	PinnedKW          *float64              `json:"pinned_kw,omitzero"` // by an operator
	HalfHours         int                   `json:"half_hours"`
	Since             Time                  `json:"since,omitzero"`
	Certainty         string                `json:"certainty"`
	StartDelayMinutes float64               `json:"start_delay_minutes"`
	TailKWh           float64               `json:"tail_kwh"`
	Sessions          []ChargingRateSession `json:"sessions"` // the newest first
}

// ChargingRateSession is what one session taught.
type ChargingRateSession struct {
	SessionID      flex.SessionID `json:"session_id"`
	StartTimestamp Time           `json:"start_timestamp"`
	EndTimestamp   Time           `json:"end_timestamp"`
	HalfHours      int            `json:"half_hours"`        // that counted
	PowerKW        *float64       `json:"power_kw,omitzero"` // absent for all that is nominal, and where none counted
}
