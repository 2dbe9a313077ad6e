package wire

import "flexd/internal/flex"

// The structs of this file are ours: the interface has no such operations.

// CurvesQuery holds the parameters of GET /market/curves. Without a day it is today in
// London; without a source, all sources.
type CurvesQuery struct {
	Day    *Day   `json:"day"`
	Source string `json:"source"`
}

// CurvesResponse answers it: the curve in force for the day, and every publication that it
// could be made from, newest first.
type CurvesResponse struct {
	Day          Day           `json:"day"`
	Prices       []CurvePrice  `json:"prices"`
	Publications []Publication `json:"publications"`
}

// CurvePrice is one half-hour of a curve. A price or intensity that is not known is null.
type CurvePrice struct {
	StartTimestamp    Time               `json:"start_timestamp"`
	PriceGBPPerMWh    *float64           `json:"price_gbp_per_mwh"`
	CarbonGramsPerKWh *float64           `json:"carbon_g_per_kwh"`
	PublicationID     flex.PublicationID `json:"publication_id,omitzero"`
	DerivedFromHourly bool               `json:"derived_from_hourly"`
}

// Publication is one version of a stretch of prices.
type Publication struct {
	ID             flex.PublicationID `json:"id"`
	Source         string             `json:"source"`
	PublishedAt    Time               `json:"published_at"` // from then on it counts as known
	FetchedAt      Time               `json:"fetched_at"`
	StartTimestamp Time               `json:"start_timestamp"`
	EndTimestamp   Time               `json:"end_timestamp"`
	NumMissing     int                `json:"num_missing"` // half-hours without a price
}

// GapsQuery holds the parameters of GET /data/gaps: London days, both included, at most 62.
type GapsQuery struct {
	SiteID flex.SiteID `json:"site_id" wire:"required"`
	From   *Day        `json:"from"`
	To     *Day        `json:"to"`
}

// GapsResponse answers it.
type GapsResponse struct {
	SiteID flex.SiteID `json:"site_id"`
	Gaps   []Gap       `json:"gaps"`
}

// Gap is a day on which readings of an asset and a label are missing.
type Gap struct {
	AssetID      flex.AssetID `json:"asset_id"`
	Label        flex.Label   `json:"label" wire:"enum=ReadingLabel"`
	Day          Day          `json:"day"`
	NumExpected  int          `json:"num_expected"` // half-hours of the day
	NumMissing   int          `json:"num_missing"`
	NumHeldBack  int          `json:"num_held_back"`
	FirstMissing Time         `json:"first_missing"`
	Beyond       []GapBeyond  `json:"beyond_rating"`
}

// GapBeyond is a half-hour that is missing because what was read cannot have been: it lies
// beyond what the device or the connection can carry.
type GapBeyond struct {
	StartTimestamp Time       `json:"start_timestamp"`
	Label          flex.Label `json:"label" wire:"enum=ReadingLabel"`
	EnergyKWh      float64    `json:"energy_kwh"` // below zero where energy was given
	LimitKWh       float64    `json:"limit_kwh"`
}

// HeldListQuery holds the parameters of GET /data/readings/held; what is not given takes all.
type HeldListQuery struct {
	AssetID flex.AssetID `json:"asset_id"`
	Label   flex.Label   `json:"label" wire:"enum=ReadingLabel"`
	From    Time         `json:"from" wire:"zoned"` // readings that end then or later
	To      Time         `json:"to" wire:"zoned"`   // readings that begin before
	State   string       `json:"state" wire:"enum=HeldState"`
	Before  flex.HeldID  `json:"before"` // the page that follows the reading of that id
	Limit   int          `json:"limit" wire:"min=1,max=5000,default=10"`
}

// HeldPath holds the path parameter of a reading that was held back.
type HeldPath struct {
	ID flex.HeldID `json:"id" wire:"required"`
}

// HeldReadingPage is a page of readings that were held back, the newest first.
type HeldReadingPage struct {
	Readings []HeldReading `json:"readings"`
	NumTotal int           `json:"num_total"` // that the filters choose, on all pages
	Next     flex.HeldID   `json:"next,omitzero"`
}

// HeldReading is a reading that no device or connection can have measured.
type HeldReading struct {
	ID             flex.HeldID  `json:"id"`
	AssetID        flex.AssetID `json:"asset_id"`
	Label          flex.Label   `json:"label" wire:"enum=ReadingLabel"`
	StartTimestamp Time         `json:"start_timestamp"`
	EndTimestamp   Time         `json:"end_timestamp"`
	Value          float64      `json:"value"`  // kWh or kW, as its label says
	Reason         string       `json:"reason"` // one word
	Detail         string       `json:"detail"` // as the sender was answered
	HeldAt         Time         `json:"held_at"`
	State          string       `json:"state" wire:"enum=HeldState"`
	DecidedAt      Time         `json:"decided_at,omitzero"`
}

// HeldReleaseRequest is the body of POST /data/readings/held/{id}/release.
type HeldReleaseRequest struct {
	Reason        string `json:"reason" wire:"required,nonempty,text=500"` // for the audit log
	MeterReplaced bool   `json:"meter_replaced"`                           // the register began anew with it
}

// ClockResponse answers GET and POST /sandbox/clock.
type ClockResponse struct {
	Now  Time `json:"now"`
	Held bool `json:"held"` // the organisation has taken the clock into its own hands
}

// ClockRequest is the body of POST /sandbox/clock: one of an instant, an ISO 8601 duration
// such as PT8H, and a time of day such as 18:00. Forward only.
type ClockRequest struct {
	Now       Time      `json:"now,omitzero" wire:"zoned"`
	Advance   string    `json:"advance,omitzero"`
	LocalTime *WallTime `json:"local_time,omitzero"` // the next time that London's clocks show it
}
