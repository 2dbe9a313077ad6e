package wire

import (
	"github.com/go-json-experiment/json/jsontext"

	"flexd/internal/flex"
)

// The structs of this file are ours: the interface has no such operations.

// DeliveryListQuery holds the parameters of GET /deliveries; what is not given takes all.
type DeliveryListQuery struct {
	AssetID flex.AssetID `json:"asset_id"`
	Kind    string       `json:"kind" wire:"enum=DeliveryKind"`
	Status  string       `json:"status" wire:"enum=DeliveryStatus"`
	Limit   int          `json:"limit" wire:"min=1,max=5000,default=10"`
	Offset  int          `json:"offset" wire:"min=0,default=0"`
}

// DeliveryPath holds the path parameter of a delivery: the event id of callbacks.
type DeliveryPath struct {
	ID flex.EventID `json:"id" wire:"required"`
}

// DeliveryResponse is one push to one endpoint.
type DeliveryResponse struct {
	ID             flex.EventID        `json:"id"`
	Kind           string              `json:"kind" wire:"enum=DeliveryKind"`
	AssetID        flex.AssetID        `json:"asset_id,omitzero"`
	EndpointID     flex.EndpointID     `json:"endpoint_id,omitzero"`
	Generation     int64               `json:"generation,omitzero"`
	Status         string              `json:"status" wire:"enum=DeliveryStatus"`
	CallbackStatus flex.CallbackStatus `json:"callback_status,omitzero" wire:"enum=EventStatus"`
	NumAttempts    int                 `json:"num_attempts"`
	CreatedAt      Time                `json:"created_at"`
	NextAttemptAt  Time                `json:"next_attempt_at,omitzero"`
	FinishedAt     Time                `json:"finished_at,omitzero"`
}

// DeliveryResponsePage is one page of deliveries, newest first.
type DeliveryResponsePage struct {
	Deliveries         []DeliveryResponse `json:"deliveries"`
	TotalNumDeliveries int                `json:"total_num_deliveries"`
	TotalNumPages      int                `json:"total_num_pages"`
	PageNumber         int                `json:"page_number"` // from 1
}

// DeliveryDetail answers GET /deliveries/{id}.
type DeliveryDetail struct {
	DeliveryResponse
	Payload  jsontext.Value    `json:"payload,omitzero"` // as it was, or would be, sent
	Attempts []DeliveryAttempt `json:"attempts"`
}

// DeliveryAttempt is one try. There is no status code where no answer came.
type DeliveryAttempt struct {
	At         Time    `json:"at"`
	URL        string  `json:"url,omitzero"`
	StatusCode int     `json:"status_code,omitzero"`
	DurationMS float64 `json:"duration_ms"`
	Error      string  `json:"error,omitzero"`
	Response   string  `json:"response,omitzero"` // its beginning
}

// EndpointRequest is the body of PUT /endpoints/schedule. The endpoint of the same URL is
// changed, or there is a new one.
type EndpointRequest struct {
	URL     string           `json:"url" wire:"required,nonempty,text=2083"`
	Headers []EndpointHeader `json:"headers,omitzero" wire:"items=20"`
	Secret  string           `json:"secret,omitzero"` // made if not given, and kept if there is one
	Bare    bool             `json:"bare"`            // the profile alone, without its connector
	Enabled *bool            `json:"enabled,omitzero"`
}

// EndpointHeader is a header field that every push bears.
type EndpointHeader struct {
	Name  string `json:"name" wire:"required,nonempty"`
	Value string `json:"value" wire:"required"`
}

// EndpointResponse is an endpoint that schedules are pushed to. Header fields show their
// names alone, and the secret is shown once, when it was made.
type EndpointResponse struct {
	ID          flex.EndpointID `json:"id"`
	URL         string          `json:"url"`
	HeaderNames []string        `json:"header_names"`
	Secret      string          `json:"secret,omitzero"`
	Bare        bool            `json:"bare"`
	Enabled     bool            `json:"enabled"`
	CreatedAt   Time            `json:"created_at"`
}

// EndpointsResponse answers GET /endpoints/schedule.
type EndpointsResponse struct {
	Endpoints []EndpointResponse `json:"endpoints"`
}

// EndpointTestResponse answers POST /endpoints/schedule/test: what became of the test
// message at each endpoint.
type EndpointTestResponse struct {
	Results []EndpointTestResult `json:"results"`
}

// EndpointTestResult is the attempt at one endpoint.
type EndpointTestResult struct {
	EndpointID flex.EndpointID `json:"endpoint_id"`
	Accepted   bool            `json:"accepted"`
	DeliveryAttempt
}
