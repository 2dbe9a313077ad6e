package wire

// The structs of this file are ours: the interface has no such operations.

// SolarForecast is the body of PUT /entities/site/{site_id}/solar-forecast: what somebody
// says that a site's roof will give.
//
//openapi:addition
type SolarForecast struct {
	// Who says so.
	Source    string          `json:"source" wire:"required,nonempty,text=256"`
	HalfHours []SolarHalfHour `json:"half_hours" wire:"required,items=720"`
}

// SolarHalfHour is the energy of a half-hour.
//
//openapi:addition
type SolarHalfHour struct {
	// Of a half-hour.
	StartTimestamp Time    `json:"start_timestamp" wire:"required,zoned"`
	EnergyKWh      float64 `json:"energy_kwh" wire:"required,min=0,max=100"`
}

// SolarForecastResponse answers it and GET /entities/site/{site_id}/solar-forecast: what the
// site's batteries are planned on.
//
//openapi:addition
type SolarForecastResponse struct {
	// Of what was given, if anything was.
	Source    string           `json:"source,omitzero"`
	GivenAt   *Time            `json:"given_at,omitzero"`
	HalfHours []SolarExpecting `json:"half_hours"`
}

// SolarExpecting is what is expected of a half-hour: given, metered (guessed from what the
// roof gave before), or none if no roof is known of.
//
//openapi:addition
//openapi:merge {"type": "object"}
type SolarExpecting struct {
	SolarHalfHour
	Origin string `json:"origin" wire:"enum=SolarOrigin"`
}

// ForecastQuery holds the parameter of GET /entities/site/{site_id}/forecast: a day in
// London, today if not given.
//
//openapi:client
type ForecastQuery struct {
	// In London. Today if not given.
	//
	//openapi:merge {"example": "2026-01-15"}
	Day *Day `json:"day"`
}

// ForecastResponse answers it: what a home was expected to draw and its roof to give when the
// day began, and what was metered of it since.
//
//openapi:addition
type ForecastResponse struct {
	Day       Day                `json:"day"`
	HalfHours []ForecastHalfHour `json:"half_hours"`
}

// ForecastHalfHour is a half-hour of it. The load is what the home draws, whatever its
// battery takes and its roof gives.
//
//openapi:addition
type ForecastHalfHour struct {
	StartTimestamp  Time    `json:"start_timestamp"`
	LoadForecastKWh float64 `json:"load_forecast_kwh"`
	// Null if it is not known.
	LoadKWh          *float64 `json:"load_kwh"`
	SolarForecastKWh float64  `json:"solar_forecast_kwh"`
	// Null if it is not known.
	SolarKWh    *float64 `json:"solar_kwh"`
	SolarOrigin string   `json:"solar_origin" wire:"enum=SolarOrigin"`
}
