package wire

import "flexd/internal/flex"

// ReadingsDataPoints is the body of POST /data/readings. The transport reads it with Readings,
// one at a time.
type ReadingsDataPoints struct {
	Readings []ReadingDataPoint `json:"readings" wire:"required,items=1000000"`
}

// ReadingDataPoint is one reading.
type ReadingDataPoint struct {
	AssetID flex.AssetID `json:"asset_id" wire:"required"`
	// With an offset.
	StartTimestamp Time `json:"start_timestamp" wire:"required,zoned"`
	// With an offset. The same as the start for what is measured at an instant.
	EndTimestamp Time       `json:"end_timestamp" wire:"required,zoned"`
	Label        flex.Label `json:"label" wire:"required,enum=ReadingLabel"`
	Value        float64    `json:"value" wire:"required,min=-1000000000,max=1000000000"`
}

// ReadingsResponse answers it, with one verdict for each reading in the request's order.
type ReadingsResponse struct {
	Responses []ReadingResponse `json:"responses"`
}

// ReadingResponse is the verdict on one reading; Error says why it was not accepted.
type ReadingResponse struct {
	AssetID        flex.AssetID `json:"asset_id"`
	StartTimestamp Time         `json:"start_timestamp"`
	EndTimestamp   Time         `json:"end_timestamp"`
	Label          flex.Label   `json:"label" wire:"enum=ReadingLabel"`
	Accepted       bool         `json:"accepted"`
	// Why it was not accepted.
	Error string `json:"error,omitzero"`
}
