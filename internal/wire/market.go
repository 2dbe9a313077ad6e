package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no such operations.

// CurvesQuery holds the parameters of GET /market/curves. Without a day it is today in
// London; without a source, all sources.
//
//openapi:client
type CurvesQuery struct {
	// In London. Today if not given.
	//
	//openapi:merge {"example": "2026-01-15"}
	Day *Day `json:"day"`
	// Only publications of this source.
	Source string `json:"source"`
}

// CurvesResponse answers it: the curve in force for the day, and every publication that it
// could be made from, newest first.
//
//openapi:addition
type CurvesResponse struct {
	Day          Day           `json:"day"`
	Prices       []CurvePrice  `json:"prices"`
	Publications []Publication `json:"publications"`
}

// CurvePrice is one half-hour of a curve. A price or intensity that is not known is null.
//
//openapi:addition
type CurvePrice struct {
	StartTimestamp    Time     `json:"start_timestamp"`
	PriceGBPPerMWh    *float64 `json:"price_gbp_per_mwh"`
	CarbonGramsPerKWh *float64 `json:"carbon_g_per_kwh"`
	// Where the price comes from.
	PublicationID     flex.PublicationID `json:"publication_id,omitzero"`
	DerivedFromHourly bool               `json:"derived_from_hourly"`
}

// Publication is one version of a stretch of prices.
//
//openapi:addition
type Publication struct {
	ID     flex.PublicationID `json:"id"`
	Source string             `json:"source"`
	// From then on it counts as known.
	PublishedAt    Time `json:"published_at"`
	FetchedAt      Time `json:"fetched_at"`
	StartTimestamp Time `json:"start_timestamp"`
	EndTimestamp   Time `json:"end_timestamp"`
	// Half-hours without a price.
	NumMissing int `json:"num_missing"`
}

// GapsQuery holds the parameters of GET /data/gaps: London days, both included, at most 62.
//
//openapi:client
type GapsQuery struct {
	// The site.
	//
	//openapi:merge {"example": "a1b2c3d4-e5f6-7890-abcd-ef1234567890"}
	SiteID flex.SiteID `json:"site_id" wire:"required"`
	// The first day, in London. A week before the last if not given.
	//
	//openapi:merge {"example": "2026-01-01"}
	From *Day `json:"from"`
	// The last day. Today if not given.
	//
	//openapi:merge {"example": "2026-01-31"}
	To *Day `json:"to"`
}

// GapsResponse answers it.
//
//openapi:addition
type GapsResponse struct {
	SiteID flex.SiteID `json:"site_id"`
	Gaps   []Gap       `json:"gaps"`
}

// Gap is a day on which readings of an asset and a label are missing.
//
//openapi:addition
type Gap struct {
	AssetID flex.AssetID `json:"asset_id"`
	Label   flex.Label   `json:"label" wire:"enum=ReadingLabel"`
	Day     Day          `json:"day"`
	// Half-hours of the day: 46, 48 or 50.
	NumExpected int `json:"num_expected"`
	NumMissing  int `json:"num_missing"`
	// Of those missing the half-hours that a reading tells of which is held back.
	NumHeldBack  int  `json:"num_held_back"`
	FirstMissing Time `json:"first_missing"`
	// Those missing because what was read lies beyond what the device or the connection can
	// carry.
	Beyond []GapBeyond `json:"beyond_rating"`
}

// GapBeyond is a half-hour that is missing because what was read cannot have been: it lies
// beyond what the device or the connection can carry.
//
//openapi:addition
type GapBeyond struct {
	StartTimestamp Time       `json:"start_timestamp"`
	Label          flex.Label `json:"label" wire:"enum=ReadingLabel"`
	// As it was read. Below zero where energy was given.
	EnergyKWh float64 `json:"energy_kwh"`
	// What can be taken in a half-hour, or given if energy was given.
	LimitKWh float64 `json:"limit_kwh"`
}

// HeldListQuery holds the parameters of GET /data/readings/held; what is not given takes all.
//
//openapi:client
type HeldListQuery struct {
	// Only of this asset.
	AssetID flex.AssetID `json:"asset_id"`
	// Only of this label.
	Label flex.Label `json:"label" wire:"enum=ReadingLabel"`
	// Only readings that end then or later.
	From Time `json:"from" wire:"zoned"`
	// Only readings that begin before.
	To Time `json:"to" wire:"zoned"`
	// Only in this state; what waits for a decision is `waiting`.
	State string `json:"state" wire:"enum=HeldState"`
	// The page that follows this reading, as an answer's next says.
	Before flex.HeldID `json:"before"`
	// Most items on the page.
	Limit int `json:"limit" wire:"min=1,max=5000,default=10"`
}

// HeldPath holds the path parameter of a reading that was held back.
type HeldPath struct {
	// The held reading's id.
	//
	//openapi:merge {"example": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f44"}
	ID flex.HeldID `json:"id" wire:"required"`
}

// HeldReadingPage is a page of readings that were held back, the newest first.
//
//openapi:addition
type HeldReadingPage struct {
	Readings []HeldReading `json:"readings"`
	// How many the filters choose on all pages.
	NumTotal int `json:"num_total"`
	// Pass it as `before` for the page that follows.
	Next flex.HeldID `json:"next,omitzero"`
}

// HeldReading is a reading that no device or connection can have measured.
//
//openapi:addition
type HeldReading struct {
	ID             flex.HeldID  `json:"id"`
	AssetID        flex.AssetID `json:"asset_id"`
	Label          flex.Label   `json:"label" wire:"enum=ReadingLabel"`
	StartTimestamp Time         `json:"start_timestamp"`
	// Equal to start_timestamp for a register, which is read at an instant.
	EndTimestamp Time `json:"end_timestamp"`
	// kWh or kW, as its label says.
	Value float64 `json:"value"`
	// Why it is held back in one word.
	Reason string `json:"reason"`
	// Why it is held back, as the answer to the sender said.
	Detail    string `json:"detail"`
	HeldAt    Time   `json:"held_at"`
	State     string `json:"state" wire:"enum=HeldState"`
	DecidedAt Time   `json:"decided_at,omitzero"`
}

// HeldReleaseRequest is the body of POST /data/readings/held/{id}/release.
//
//openapi:addition
type HeldReleaseRequest struct {
	// Why it counts. It is kept in the audit log.
	Reason string `json:"reason" wire:"required,nonempty,text=500"`
	// Of a register: it started again with this reading, as the meter was replaced or reset.
	MeterReplaced bool `json:"meter_replaced"`
}

// ClockResponse answers GET and POST /sandbox/clock.
//
//openapi:addition
type ClockResponse struct {
	Now Time `json:"now"`
	// Whether the organisation has taken the clock into its own hands.
	Held bool `json:"held"`
}

// ClockRequest is the body of POST /sandbox/clock: one of an instant, an ISO 8601 duration
// such as PT8H, and a time of day such as 18:00. Forward only.
//
// One of the three.
//
//openapi:addition
type ClockRequest struct {
	// With an offset; not before the clock's own time.
	Now Time `json:"now,omitzero" wire:"zoned"`
	// An ISO 8601 duration, such as PT8H.
	Advance string `json:"advance,omitzero"`
	// A time of day in London, such as 18:00:00: on to the next instant at which its clocks show
	// it.
	LocalTime *WallTime `json:"local_time,omitzero"`
}
