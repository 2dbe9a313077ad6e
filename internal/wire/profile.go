package wire

import "flexd/internal/flex"

// SetChargingProfileRequest is a pushed schedule: OCPP 1.6, section 6.43.
type SetChargingProfileRequest struct {
	ConnectorID        int             `json:"connectorId"` // 0 is the whole charge point
	CSChargingProfiles ChargingProfile `json:"csChargingProfiles"`
}

// ChargingProfile is an OCPP 1.6 charging profile.
type ChargingProfile struct {
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
	Duration               *int                     `json:"duration,omitzero"`
	StartSchedule          Time                     `json:"startSchedule,omitzero"`
	ChargingRateUnit       string                   `json:"chargingRateUnit" wire:"enum=ChargingRateUnit"`
	ChargingSchedulePeriod []ChargingSchedulePeriod `json:"chargingSchedulePeriod"`
	MinChargingRate        *float64                 `json:"minChargingRate,omitzero"`
}

// ChargingSchedulePeriod is a limit from StartPeriod on, until the next one.
type ChargingSchedulePeriod struct {
	StartPeriod  int     `json:"startPeriod"`
	Limit        float64 `json:"limit"`
	NumberPhases int     `json:"numberPhases,omitzero"`
}

// DispatchEvent asks an asset for a power during a time. Positive draws from the grid.
type DispatchEvent struct {
	AssetID              flex.AssetID `json:"asset_id"`
	EventID              flex.EventID `json:"event_id"`
	IssuedTimestamp      Time         `json:"issued_timestamp"`
	EventTimestamp       Time         `json:"event_timestamp"`
	MarketID             string       `json:"market_id"`
	LevelKW              float64      `json:"level_kw"`
	FromTime             Time         `json:"from_time"`
	ToTime               Time         `json:"to_time"`
	UpdateStatusCallback string       `json:"update_status_callback" wire:"nonempty,text=2083"`
}

// DispatchBatch is a dispatch as one message for all its assets.
type DispatchBatch struct {
	EventID         flex.EventID         `json:"event_id"`
	IssuedTimestamp Time                 `json:"issued_timestamp"`
	StartTime       Time                 `json:"start_time"`
	EndTime         Time                 `json:"end_time"`
	Assets          []DispatchBatchAsset `json:"assets"`
}

// DispatchBatchAsset is one asset of a batch, with the power asked of it.
type DispatchBatchAsset struct {
	AssetID flex.AssetID `json:"asset_id"`
	PowerKW float64      `json:"power_kw"`
}
