package wire

import "flexd/internal/flex"

// SetChargingProfileRequest is a pushed schedule: OCPP 1.6, section 6.43.
type SetChargingProfileRequest struct {
	// 0 is the whole charge point.
	//
	//openapi:required
	ConnectorID int `json:"connectorId"`
	//openapi:required
	CSChargingProfiles ChargingProfile `json:"csChargingProfiles"`
	// Of a heat pump that is steered by SG Ready or offsets alone. Where a schedule of one has none, it is free:
	// state 2, or an offset of 0.
	//
	//openapi:addition
	Heat *HeatSteering `json:"heat,omitzero"`
}

// HeatSteering is what steers a heat pump in each period of the profile beside it. After the profile's duration
// it is free.
//
//openapi:addition
type HeatSteering struct {
	Steering string              `json:"steering" wire:"enum=HeatSteering"`
	Periods  []HeatSteeredPeriod `json:"periods"`
}

// HeatSteeredPeriod is a state of SG Ready or an offset from StartPeriod on, until the next one.
//
//openapi:addition
type HeatSteeredPeriod struct {
	// Seconds after the schedule's start.
	StartPeriod int `json:"startPeriod"`
	// 1 is off, 2 is as it likes, 3 recommends that it runs, 4 tells it to.
	SGReadyState *int `json:"sg_ready_state,omitzero" wire:"min=1,max=4"`
	// By how many kelvins its setpoint is moved.
	OffsetK *int `json:"offset_k,omitzero" wire:"min=-3,max=3"`
}

// ChargingProfile is an OCPP 1.6 charging profile.
type ChargingProfile struct {
	// The same for all profiles of an asset.
	ChargingProfileID      int              `json:"chargingProfileId"`
	TransactionID          *int             `json:"transactionId,omitzero"`
	StackLevel             int              `json:"stackLevel"`
	ChargingProfilePurpose string           `json:"chargingProfilePurpose" wire:"enum=ProfilePurpose"`
	ChargingProfileKind    string           `json:"chargingProfileKind" wire:"enum=ProfileKind"`
	RecurrencyKind         string           `json:"recurrencyKind,omitzero" wire:"enum=RecurrencyKind"`
	ValidFrom              Time             `json:"validFrom,omitzero"`
	ValidTo                Time             `json:"validTo,omitzero"`
	ChargingSchedule       ChargingSchedule `json:"chargingSchedule"`
}

// ChargingSchedule is the limits of a profile, in seconds from its start.
type ChargingSchedule struct {
	// Seconds; after them the charger is free.
	Duration               *int                     `json:"duration,omitzero"`
	StartSchedule          Time                     `json:"startSchedule,omitzero"`
	ChargingRateUnit       string                   `json:"chargingRateUnit" wire:"enum=ChargingRateUnit"`
	ChargingSchedulePeriod []ChargingSchedulePeriod `json:"chargingSchedulePeriod"`
	MinChargingRate        *float64                 `json:"minChargingRate,omitzero"`
}

// ChargingSchedulePeriod is a limit from StartPeriod on, until the next one.
type ChargingSchedulePeriod struct {
	// Seconds after the schedule's start.
	StartPeriod int `json:"startPeriod"`
	// 99999.0 W leaves the charger to its rated power; one of 100 kW or more has its power named.
	Limit        float64 `json:"limit"`
	NumberPhases int     `json:"numberPhases,omitzero"`
}

// DispatchEvent asks an asset for a power during a time. Positive draws from the grid.
type DispatchEvent struct {
	AssetID flex.AssetID `json:"asset_id"`
	// Named in the callback.
	EventID         flex.EventID `json:"event_id"`
	IssuedTimestamp Time         `json:"issued_timestamp"`
	EventTimestamp  Time         `json:"event_timestamp"`
	MarketID        string       `json:"market_id"`
	// Positive draws from the grid.
	LevelKW  float64 `json:"level_kw"`
	FromTime Time    `json:"from_time"`
	ToTime   Time    `json:"to_time"`
	// Where the controller reports what it did.
	UpdateStatusCallback string `json:"update_status_callback" wire:"nonempty,text=2083"`
}

// DispatchBatch is a dispatch as one message for all its assets.
//
//openapi:addition
type DispatchBatch struct {
	// Named in the callback.
	EventID         flex.EventID         `json:"event_id"`
	IssuedTimestamp Time                 `json:"issued_timestamp"`
	StartTime       Time                 `json:"start_time"`
	EndTime         Time                 `json:"end_time"`
	Assets          []DispatchBatchAsset `json:"assets"`
}

// DispatchBatchAsset is one asset of a batch, with the power asked of it.
//
//openapi:addition
type DispatchBatchAsset struct {
	AssetID flex.AssetID `json:"asset_id"`
	// Positive draws from the grid.
	PowerKW float64 `json:"power_kw"`
}
