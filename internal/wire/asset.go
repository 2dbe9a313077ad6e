package wire

import "flexd/internal/flex"

// AssetProperties are an asset's power, capacity, phases and firmware, the heat that it keeps, and how a car is discharged.
type AssetProperties struct {
	PowerKW     *float64 `json:"power_kw,omitzero" wire:"min=0,max=1000000"`
	CapacityKWh *float64 `json:"capacity_kwh,omitzero" wire:"min=0,max=1000000"`
	// How many phases it draws on, 1 or 3: a car takes 6 A on each at least, 1.38 kW on one and 4.14 kW on
	// three. If it was not given, power_kw above 8 means three, and anything else one. Null or 0 takes it away.
	//
	//openapi:addition
	//openapi:merge {"type": ["integer", "null"]}
	Phases *int `json:"phases,omitzero" wire:"min=0,max=3,null=0"`
	// Which of a site's three phases an asset on one phase is on: L1, L2 or L3, as its electrician has it. Not given, it counts as
	// being on each of them. Empty takes it away.
	//
	//openapi:addition
	Phase *string `json:"phase,omitzero" wire:"text=256"`
	// The version of the firmware that it runs, by which operators find and halt assets. Empty takes it away.
	//
	//openapi:addition
	Firmware *string `json:"firmware,omitzero" wire:"text=256"`
	// The most that a car gives back at this charger, on the grid's side: 0.5 at least. 0 takes it away: it is charged
	// alone. capacity_kwh is its battery then, and must be known.
	//
	//openapi:addition
	DischargePowerKW *float64 `json:"discharge_power_kw,omitzero" wire:"min=0,max=1000"`
	// What is to stay in the battery of a car that is discharged, in percent of capacity_kwh; 30 if neither this nor
	// reserve_kwh was given. The later one given counts.
	//
	//openapi:addition
	ReservePct *float64 `json:"reserve_pct,omitzero" wire:"min=0,max=100"`
	// The same as an energy, of at most capacity_kwh.
	//
	//openapi:addition
	ReserveKWh *float64 `json:"reserve_kwh,omitzero" wire:"min=0,max=1000000"`
	// What a kWh that the car, or a home battery, gives counts as wear of the battery, in pence. If it was not given, 5 of a car, and of a
	// home battery the organisation's `battery_wear_p_per_kwh`, which is 0 by default.
	//
	//openapi:addition
	WearPPerKWh *float64 `json:"wear_p_per_kwh,omitzero" wire:"min=0,max=1000"`
	// The heat that a heat pump or a tank keeps. What is given replaces all that was given before; null
	// or {} takes it away.
	//
	//openapi:addition
	//openapi:merge {"oneOf": [{"$ref": "#/components/schemas/HeatProperties"}, {"type": "null"}], "$ref": null}
	Heat *HeatProperties `json:"heat,omitzero" wire:"null={}"`
}

// HeatProperties are the comfort band of a heat pump's rooms or of a hot water tank, and how it is steered. A band
// is given by both of its ends. What is not given is assumed, and the explanation of a schedule says so.
//
//openapi:addition
type HeatProperties struct {
	// The bottom of the comfort band in degrees Celsius: 5 to 30 of a room, 30 to 75 of a tank.
	ComfortLowC *float64 `json:"comfort_low_c,omitzero" wire:"min=5,max=75"`
	// Its top: at least 0.5 degrees more of a room, 5 of a tank.
	ComfortHighC *float64 `json:"comfort_high_c,omitzero" wire:"min=5,max=75"`
	// The band of a room by night, from 22:00 to 06:00 in London; the one by day if it was not given.
	NightLowC  *float64 `json:"night_low_c,omitzero" wire:"min=5,max=30"`
	NightHighC *float64 `json:"night_high_c,omitzero" wire:"min=5,max=30"`
	// What a heat pump keeps a room at by itself; the middle of the band if it was not given.
	SetpointC *float64 `json:"setpoint_c,omitzero" wire:"min=5,max=30"`
	// Litres of a tank, by which it is known how much heat it holds where capacity_kwh was not given.
	VolumeL *float64 `json:"volume_l,omitzero" wire:"min=20,max=1000"`
	// On and off windows if it was not given, and for a tank; the states of SG Ready and offsets of the setpoint
	// are sent beside them in heat.
	Steering string `json:"steering,omitzero" wire:"enum=HeatSteering"`
}

// AssetRequest is the body of POST /entities/asset.
type AssetRequest struct {
	// The client's own id of the asset.
	ExternalID string           `json:"external_id" wire:"required,nonempty"`
	Type       flex.AssetType   `json:"type" wire:"required,enum=CreatableAssetType"`
	SiteID     flex.SiteID      `json:"site_id" wire:"required"`
	Properties *AssetProperties `json:"properties,omitzero"`
	// A name of the model catalogue.
	AssetModel       string `json:"asset_model,omitzero"`
	InstallationDate *Day   `json:"installation_date,omitzero"`
	SerialNumber     string `json:"serial_number,omitzero"`
}

// OnboardingAssetRequest is an asset of an onboarding, which knows its site.
type OnboardingAssetRequest struct {
	// The client's own id of the asset.
	ExternalID string           `json:"external_id" wire:"required,nonempty"`
	Type       flex.AssetType   `json:"type" wire:"required,enum=CreatableAssetType"`
	Properties *AssetProperties `json:"properties,omitzero"`
	// A name of the model catalogue.
	AssetModel       string `json:"asset_model,omitzero"`
	InstallationDate *Day   `json:"installation_date,omitzero"`
}

// AssetUpdateRequest is the body of PATCH /entities/asset/{asset_id}; what is nil stays.
//
// What is not given stays as it is.
type AssetUpdateRequest struct {
	Properties       *AssetProperties `json:"properties,omitzero"`
	AssetModel       *string          `json:"asset_model,omitzero"`
	InstallationDate *Day             `json:"installation_date,omitzero"`
	// The London day from which power_kw counts, today or earlier, and later than what was
	// settled of the site; from now on if it is not given.
	//
	//openapi:addition
	PowerFrom *Day `json:"power_from,omitzero"`
}

// AssetResponse is an asset.
type AssetResponse struct {
	ID         flex.AssetID     `json:"id"`
	ExternalID string           `json:"external_id"`
	Type       flex.AssetType   `json:"type" wire:"enum=AssetType"`
	SiteID     flex.SiteID      `json:"site_id"`
	Properties *AssetProperties `json:"properties,omitzero"`
}

// PageQuery holds the parameters of GET /entities/asset.
type PageQuery struct {
	// Most items on the page.
	Limit int `json:"limit" wire:"min=1,max=5000,default=10"`
	// Items to pass over.
	Offset int `json:"offset" wire:"min=0,default=0"`
}

// AssetResponsePage is one page of assets.
type AssetResponsePage struct {
	Assets         []AssetResponse `json:"assets"`
	TotalNumAssets int             `json:"total_num_assets"`
	TotalNumPages  int             `json:"total_num_pages"`
	// From 1.
	PageNumber int `json:"page_number"`
}

// AssetPath holds the path parameter of an asset.
type AssetPath struct {
	// The asset's id.
	//
	//openapi:merge {"example": "b2c3d4e5-f6a7-8901-bcde-f23456789012"}
	AssetID flex.AssetID `json:"asset_id" wire:"required"`
}

// ExternalIDPath holds the path parameter of GET /entities/asset/external-id/{external_id}.
type ExternalIDPath struct {
	// The client's own id.
	//
	//openapi:merge {"example": "charger-001"}
	ExternalID string `json:"external_id" wire:"required,nonempty"`
}

// CallbackPath holds the path parameters of a callback. AssetID is a uuid as it was
// written, for it may be an external id.
type CallbackPath struct {
	// The asset's id.
	//
	//openapi:merge {"example": "b2c3d4e5-f6a7-8901-bcde-f23456789012"}
	AssetID string `json:"asset_id" wire:"required,like=uuid"`
	// The id of a push or a dispatch.
	//
	//openapi:merge {"example": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f33"}
	EventID string `json:"event_id" wire:"required,nonempty"`
}

// CallbackQuery holds the query parameter of a callback.
type CallbackQuery struct {
	// Whether asset_id is the client's own, which must be a uuid then.
	//
	//openapi:merge {"default": false}
	AssetIDIsExternal bool `json:"asset_id_is_external"`
}

// EventResponse is the body of a callback: what an asset's controller did with an event.
type EventResponse struct {
	Timestamp Time                `json:"timestamp" wire:"required"`
	Status    flex.CallbackStatus `json:"status" wire:"required,enum=EventStatus"`
}

// BatteryScheduleResponse answers GET /entities/asset/{asset_id}/battery-schedule.
type BatteryScheduleResponse struct {
	ScheduleSteps       []BatteryScheduleStep `json:"schedule_steps"`
	ScheduleLastUpdated Time                  `json:"schedule_last_updated"`
}

// BatteryScheduleStep is one step of a battery's schedule: charge_max, discharge_max,
// avoid_export or avoid_import, from which the battery may depart if AllowDeviation.
type BatteryScheduleStep struct {
	StartTimestamp Time   `json:"start_timestamp"`
	EndTimestamp   Time   `json:"end_timestamp"`
	Action         string `json:"action" wire:"enum=BatteryAction"`
	// The battery may depart from the step.
	AllowDeviation bool `json:"allow_deviation"`
}

// PlainDispatchScheduleResponse answers GET /entities/asset/{asset_id}/todays-dispatch-schedule.
type PlainDispatchScheduleResponse struct {
	Periods []PlainDispatchPeriod `json:"periods"`
}

// PlainDispatchPeriod is one period of a dispatch plan, in UK time: CHARGE, DISCHARGE,
// LOCK, FEED_IN or SELF_USE.
type PlainDispatchPeriod struct {
	// In UK time.
	//
	//openapi:merge {"type": "string", "format": "date-time", "$ref": null}
	StartTimestamp LondonTime `json:"start_timestamp"`
	// In UK time.
	//
	//openapi:merge {"type": "string", "format": "date-time", "$ref": null}
	EndTimestamp LondonTime `json:"end_timestamp"`
	Action       string     `json:"action" wire:"enum=DispatchAction"`
}

// PriceCurveResponse answers the price-curve operations of assets and sites.
type PriceCurveResponse struct {
	HalfHourlyTradedPrices []HalfHourlyPrice `json:"half_hourly_traded_prices"`
}

// HalfHourlyPrice is the price of one half-hour, to two decimals. A price that is not known
// is null, and the name stays.
type HalfHourlyPrice struct {
	StartTimestamp Time `json:"start_timestamp" wire:"required,zoned"`
	// Two decimals; null where no price is known or the asset is not in the market.
	//
	//openapi:required
	PriceGBPPerMWh *float64 `json:"price_gbp_per_mwh" wire:"min=-100000,max=100000"`
}
