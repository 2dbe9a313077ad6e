package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no such operations.

// ScheduleResponse answers GET /entities/asset/{asset_id}/schedule: the schedule that is
// committed for the asset.
type ScheduleResponse struct {
	AssetID            flex.AssetID     `json:"asset_id"`
	SessionID          flex.SessionID   `json:"session_id,omitzero"`
	EventID            flex.EventID     `json:"event_id,omitzero"` // of its push, as callbacks name it
	Generation         int64            `json:"generation"`
	AcceptedGeneration *int64           `json:"accepted_generation,omitzero"` // the newest that the client has taken
	MadeAt             Time             `json:"made_at"`
	ReadyBy            Time             `json:"ready_by,omitzero"`
	Periods            []SchedulePeriod `json:"periods"`
}

// SchedulePeriod is the most power that an asset may draw during a time; 99999 is no limit.
type SchedulePeriod struct {
	StartTimestamp Time    `json:"start_timestamp"`
	EndTimestamp   Time    `json:"end_timestamp"`
	LimitW         float64 `json:"limit_w"`
}

// ScheduleQuery says as of when a schedule is asked for; now if it is zero.
type ScheduleQuery struct {
	AsOf Time `json:"as_of"`
}

// ScheduleExplanation answers GET /entities/asset/{asset_id}/schedule/explanation: why the
// schedule is as it is.
type ScheduleExplanation struct {
	AssetID                 flex.AssetID      `json:"asset_id"`
	Generation              int64             `json:"generation"`
	AcceptedGeneration      *int64            `json:"accepted_generation,omitzero"`
	MadeAt                  Time              `json:"made_at"`
	Summary                 string            `json:"summary"` // in plain words
	Plan                    PlanFigures       `json:"plan"`
	ThresholdPriceGBPPerMWh *float64          `json:"threshold_price_gbp_per_mwh,omitzero"` // bought at or below it
	Periods                 []ExplainedPeriod `json:"periods"`
	Inputs                  []EffectiveInput  `json:"inputs"`
	BindingLimits           []SchedulePeriod  `json:"binding_limits"` // the room that caps left; none if all
	BindingCaps             []BindingCap      `json:"binding_caps"`
}

// BindingCap is a cap that held a schedule back for a time.
type BindingCap struct {
	StartTimestamp Time     `json:"start_timestamp"`
	EndTimestamp   Time     `json:"end_timestamp"`
	Group          string   `json:"group,omitzero"` // the constraint group; absent for the fleet's cap
	Bound          string   `json:"bound" wire:"enum=CapBound"`
	CapKW          *float64 `json:"cap_kw,omitzero"`
	PriceGBPPerMWh *float64 `json:"price_gbp_per_mwh,omitzero"` // what more room would be worth, once the fleet was planned together
}

// PlanFigures are what a plan comes to.
type PlanFigures struct {
	EnergyKWh       float64  `json:"energy_kwh"`
	ShortfallKWh    float64  `json:"shortfall_kwh"` // of the need
	CostPence       float64  `json:"cost_pence"`
	LowerBoundPence *float64 `json:"lower_bound_pence,omitzero"` // no plan under the same duties costs less
}

// ExplainedPeriod is what was decided for one period, and why.
type ExplainedPeriod struct {
	StartTimestamp Time     `json:"start_timestamp"`
	EndTimestamp   Time     `json:"end_timestamp"`
	EnergyKWh      float64  `json:"energy_kwh"`
	PriceGBPPerMWh *float64 `json:"price_gbp_per_mwh"` // null if it is not known
	OffPeak        bool     `json:"off_peak"`
	Reason         string   `json:"reason"`
}

// EffectiveInput is one input of a plan as it was used: where it comes from is told by
// Origin, such as "event", "asset", "site" or "default".
type EffectiveInput struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	Detail string `json:"detail,omitzero"` // what the origin says more: from how many half-hours a power was learned
}

// SessionResponse is one plug session.
type SessionResponse struct {
	SessionID      flex.SessionID `json:"session_id"`
	AssetID        flex.AssetID   `json:"asset_id"`
	PluggedInAt    Time           `json:"plugged_in_at"`
	PluggedOutAt   Time           `json:"plugged_out_at,omitzero"` // absent while plugged in
	ReadyBy        Time           `json:"ready_by,omitzero"`
	ChargingRateKW *float64       `json:"charging_rate_kw,omitzero"`
}

// SessionResponsePage answers GET /entities/asset/{asset_id}/sessions, newest first.
type SessionResponsePage struct {
	Sessions         []SessionResponse `json:"sessions"`
	TotalNumSessions int               `json:"total_num_sessions"`
	TotalNumPages    int               `json:"total_num_pages"`
	PageNumber       int               `json:"page_number"` // from 1
}

// WhatIfRequest is the body of POST /what-if: what is not given is as it is now.
type WhatIfRequest struct {
	AssetIDs []flex.AssetID    `json:"asset_ids" wire:"required,nonempty,unique,items=1000"`
	Intent   *WhatIfIntent     `json:"intent,omitzero"`
	Tariff   *Tariff           `json:"tariff,omitzero"`
	PowerKW  *float64          `json:"power_kw,omitzero" wire:"min=0,max=1000000"`
	Prices   []HalfHourlyPrice `json:"prices,omitzero" wire:"items=192"`
}

// WhatIfIntent is the part of an intent that is to be changed.
type WhatIfIntent struct {
	EnergyRequiredKWh *float64          `json:"energy_required_kwh,omitzero" wire:"min=0,max=1000000"`
	ReadyByLocalTime  *WallTime         `json:"ready_by_local_time,omitzero"`
	MayChargePeak     *bool             `json:"may_charge_peak,omitzero"`
	ChargingMode      flex.ChargingMode `json:"charging_mode,omitzero" wire:"enum=ChargingMode"`
}

// WhatIfResponse answers it, one result for each asset in the request's order.
type WhatIfResponse struct {
	Results []WhatIfResult `json:"results"`
}

// WhatIfResult compares the plan of an asset as it is with what it would be. Error says why
// there is none.
type WhatIfResult struct {
	AssetID             flex.AssetID      `json:"asset_id"`
	Current             *PlanFigures      `json:"current,omitzero"`
	Proposed            *PlanFigures      `json:"proposed,omitzero"`
	CostDifferencePence *float64          `json:"cost_difference_pence,omitzero"`
	EnergyDifferenceKWh *float64          `json:"energy_difference_kwh,omitzero"`
	ReplacesSchedule    *bool             `json:"replaces_schedule,omitzero"` // the proposed plan would be sent
	Periods             []ExplainedPeriod `json:"periods,omitzero"`           // as proposed
	Error               string            `json:"error,omitzero"`
}
