package wire

import "flexd/internal/flex"

// KnownHeatResponse answers GET /entities/asset/{asset_id}/heat: what a heat pump or a hot-water tank is planned with, and what its
// readings taught of it.
//
//openapi:addition
type KnownHeatResponse struct {
	AssetID flex.AssetID `json:"asset_id"`
	// In plain words.
	Summary string `json:"summary"`
	// Days of readings that it was learned from; 0 if it is assumed.
	LearnedDays int `json:"learned_days"`
	// The first of them, in London.
	Since *Day `json:"since,omitzero"`
	// none, low, medium or high.
	Certainty string `json:"certainty"`
	// When it was last forgotten: earlier readings do not count. Absent if it never was.
	ResetAt Time `json:"reset_at,omitzero"`
	// Of a heat pump.
	Building *KnownBuilding `json:"building,omitzero"`
	// Of a hot-water tank.
	Tank *KnownTank `json:"tank,omitzero"`
}

// KnownBuilding is what is known of the building of a heat pump.
//
//openapi:addition
type KnownBuilding struct {
	// Heat that it loses for each degree that the rooms are warmer than the outdoors.
	LossWPerK float64 `json:"loss_w_per_k"`
	// Heat that it keeps for each degree of its rooms.
	CapacityKWhPerK float64 `json:"capacity_kwh_per_k"`
	// Heat from people, appliances and the sun.
	GainW float64 `json:"gain_w"`
	// How far a forecast of three hours was off, in degrees Celsius. Absent if it is assumed.
	ForecastErrorC *float64 `json:"forecast_error_c,omitzero"`
}

// KnownTank is what is known of a hot-water tank.
//
//openapi:addition
type KnownTank struct {
	// Heat that is drawn from it and lost in a day.
	UsedInADayKWh float64 `json:"used_in_a_day_kwh"`
	// The most heat that is kept for more than that.
	KeptForMoreKWh float64 `json:"kept_for_more_kwh"`
}
