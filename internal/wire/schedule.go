package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no such operations.

// ScheduleResponse answers GET /entities/asset/{asset_id}/schedule: the schedule that is
// committed for the asset.
//
//openapi:addition
type ScheduleResponse struct {
	AssetID   flex.AssetID   `json:"asset_id"`
	SessionID flex.SessionID `json:"session_id,omitzero"`
	// Of its push.
	EventID flex.EventID `json:"event_id,omitzero"`
	// A later one replaces all of an earlier one.
	Generation int64 `json:"generation"`
	// The newest that the client has taken.
	AcceptedGeneration *int64           `json:"accepted_generation,omitzero"`
	MadeAt             Time             `json:"made_at"`
	ReadyBy            Time             `json:"ready_by,omitzero"`
	Periods            []SchedulePeriod `json:"periods"`
}

// SchedulePeriod is the most power that an asset may draw during a time; 99999 is no limit.
//
//openapi:addition
type SchedulePeriod struct {
	StartTimestamp Time `json:"start_timestamp"`
	EndTimestamp   Time `json:"end_timestamp"`
	// 99999 leaves the asset to its rated power; one of 100 kW or more has its power named. Below zero its car gives so many watts.
	LimitW float64 `json:"limit_w"`
	// The state of SG Ready of a heat pump that is steered so: 1 is off, 2 is as it likes, 3 recommends that it
	// runs, 4 tells it to.
	//
	//openapi:addition
	SGReadyState *int `json:"sg_ready_state,omitzero" wire:"min=1,max=4"`
	// By how many kelvins the setpoint of a heat pump is moved that is steered so.
	//
	//openapi:addition
	OffsetK *int `json:"offset_k,omitzero" wire:"min=-3,max=3"`
}

// ScheduleQuery says as of when a schedule is asked for; now if it is zero.
//
//openapi:client
type ScheduleQuery struct {
	// What the client had accepted as of this instant, in place of the schedule in force.
	AsOf Time `json:"as_of"`
}

// ScheduleExplanation answers GET /entities/asset/{asset_id}/schedule/explanation: why the
// schedule is as it is.
//
//openapi:addition
type ScheduleExplanation struct {
	AssetID            flex.AssetID `json:"asset_id"`
	Generation         int64        `json:"generation"`
	AcceptedGeneration *int64       `json:"accepted_generation,omitzero"`
	MadeAt             Time         `json:"made_at"`
	Summary            string       `json:"summary"` // in plain words
	Plan               PlanFigures  `json:"plan"`
	// The deciding price. Energy was bought at or below it.
	ThresholdPriceGBPPerMWh *float64          `json:"threshold_price_gbp_per_mwh,omitzero"`
	Periods                 []ExplainedPeriod `json:"periods"`
	Inputs                  []EffectiveInput  `json:"inputs"`
	// The headroom that caps left. None if they left all that could be used.
	BindingLimits []SchedulePeriod `json:"binding_limits"`
	BindingCaps   []BindingCap     `json:"binding_caps"`
}

// BindingCap is a cap that held a schedule back for a time.
//
// A cap that held a schedule back for a time.
//
//openapi:addition
type BindingCap struct {
	StartTimestamp Time `json:"start_timestamp"`
	EndTimestamp   Time `json:"end_timestamp"`
	// The constraint group. Absent for the cap of the fleet.
	Group string   `json:"group,omitzero"`
	Bound string   `json:"bound" wire:"enum=CapBound"`
	CapKW *float64 `json:"cap_kw,omitzero"`
	// What more headroom would be worth, once the fleet was planned together.
	PriceGBPPerMWh *float64 `json:"price_gbp_per_mwh,omitzero"`
}

// PlanFigures are what a plan comes to.
//
//openapi:addition
type PlanFigures struct {
	EnergyKWh float64 `json:"energy_kwh"`
	// Of the need, where time or permission ran out.
	ShortfallKWh float64 `json:"shortfall_kwh"`
	// At market prices.
	CostPence float64 `json:"cost_pence"`
	// Proven: no plan under the same duties costs less. Absent for a car that gives.
	LowerBoundPence *float64 `json:"lower_bound_pence,omitzero"`
}

// ExplainedPeriod is what was decided for one period, and why.
//
//openapi:addition
type ExplainedPeriod struct {
	StartTimestamp Time    `json:"start_timestamp"`
	EndTimestamp   Time    `json:"end_timestamp"`
	EnergyKWh      float64 `json:"energy_kwh"`
	// null if it is not known
	PriceGBPPerMWh *float64 `json:"price_gbp_per_mwh"`
	OffPeak        bool     `json:"off_peak"`
	Reason         string   `json:"reason"`
	// Of a heat pump: what its rooms are expected to have at the end.
	RoomC *float64 `json:"room_c,omitzero"`
	// Of a heat pump: what is expected outdoors.
	OutdoorC *float64 `json:"outdoor_c,omitzero"`
}

// EffectiveInput is one input of a plan as it was used: where it comes from is named by
// Origin, such as "event", "asset", "site" or "default".
//
//openapi:addition
type EffectiveInput struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Where it comes from: event, asset, site, organisation, default, readings or operator.
	Origin string `json:"origin"`
	// What the origin says more: from how many half-hours a power was learned, since when and
	// how certain. Absent where there is no more to say.
	Detail string `json:"detail,omitzero"`
}

// SessionResponse is one plug session.
//
//openapi:addition
type SessionResponse struct {
	SessionID   flex.SessionID `json:"session_id"`
	AssetID     flex.AssetID   `json:"asset_id"`
	PluggedInAt Time           `json:"plugged_in_at"`
	// Absent while plugged in.
	PluggedOutAt   Time     `json:"plugged_out_at,omitzero"`
	ReadyBy        Time     `json:"ready_by,omitzero"`
	ChargingRateKW *float64 `json:"charging_rate_kw,omitzero"`
}

// SessionResponsePage answers GET /entities/asset/{asset_id}/sessions, newest first.
//
//openapi:addition
type SessionResponsePage struct {
	Sessions         []SessionResponse `json:"sessions"`
	TotalNumSessions int               `json:"total_num_sessions"`
	TotalNumPages    int               `json:"total_num_pages"`
	// From 1.
	PageNumber int `json:"page_number"`
}

// WhatIfRequest is the body of POST /what-if: what is not given is as it is now.
//
// What is not given is as it is now.
//
//openapi:addition
type WhatIfRequest struct {
	AssetIDs []flex.AssetID    `json:"asset_ids" wire:"required,nonempty,unique,items=1000"`
	Intent   *WhatIfIntent     `json:"intent,omitzero"`
	Tariff   *Tariff           `json:"tariff,omitzero"`
	PowerKW  *float64          `json:"power_kw,omitzero" wire:"min=0,max=1000000"`
	Prices   []HalfHourlyPrice `json:"prices,omitzero" wire:"items=192"`
}

// WhatIfIntent is the part of an intent that is to be changed.
//
//openapi:addition
type WhatIfIntent struct {
	EnergyRequiredKWh *float64          `json:"energy_required_kwh,omitzero" wire:"min=0,max=2000"`
	ReadyByLocalTime  *WallTime         `json:"ready_by_local_time,omitzero"`
	MayChargePeak     *bool             `json:"may_charge_peak,omitzero"`
	ChargingMode      flex.ChargingMode `json:"charging_mode,omitzero" wire:"enum=ChargingMode"`
}

// WhatIfResponse answers it, one result for each asset in the request's order.
//
//openapi:addition
type WhatIfResponse struct {
	Results []WhatIfResult `json:"results"`
}

// WhatIfResult compares the plan of an asset as it is with what it would be. Error says why
// there is none.
//
//openapi:addition
type WhatIfResult struct {
	AssetID  flex.AssetID `json:"asset_id"`
	Current  *PlanFigures `json:"current,omitzero"`
	Proposed *PlanFigures `json:"proposed,omitzero"`
	// Proposed less current.
	CostDifferencePence *float64 `json:"cost_difference_pence,omitzero"`
	// Proposed less current.
	EnergyDifferenceKWh *float64 `json:"energy_difference_kwh,omitzero"`
	// The proposed plan would be sent in the place of the schedule in force. One that saves less
	// than the threshold is not.
	ReplacesSchedule *bool `json:"replaces_schedule,omitzero"`
	// As proposed.
	Periods []ExplainedPeriod `json:"periods,omitzero"`
	// The schedule in force was made together with batteries of the site, or with what shares its main fuse.
	// Both plans here are of the asset alone, in what these leave: their figures are not those of the
	// explanation.
	PlannedAlone bool `json:"planned_alone,omitzero"`
	// Why there is no result.
	Error string `json:"error,omitzero"`
}
