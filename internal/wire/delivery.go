package wire

import (
	"github.com/go-json-experiment/json/jsontext"

	"flexd/internal/flex"
)

// The structs of this file are ours: the interface has no such operations.

// DeliveryListQuery holds the parameters of GET /deliveries; what is not given takes all.
type DeliveryListQuery struct {
	AssetID  flex.AssetID `json:"asset_id"`
	Kind     string       `json:"kind" wire:"enum=DeliveryKind"`
	Status   string       `json:"status" wire:"enum=DeliveryStatus"`
	Endpoint string       `json:"endpoint" wire:"enum=EndpointName"`
	Since    Time         `json:"since"`
	Before   flex.EventID `json:"before"` // the page that follows the delivery of that id
	Limit    int          `json:"limit" wire:"min=1,max=5000,default=10"`
}

// DeliveryPath holds the path parameter of a delivery: the event id of callbacks.
type DeliveryPath struct {
	ID flex.EventID `json:"id" wire:"required"`
}

// DeliveryResponse is one push.
type DeliveryResponse struct {
	ID             flex.EventID        `json:"id"`
	Kind           string              `json:"kind" wire:"enum=DeliveryKind"`
	AssetID        flex.AssetID        `json:"asset_id,omitzero"`
	Endpoint       string              `json:"endpoint" wire:"enum=EndpointName"`
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
	Deliveries []DeliveryResponse `json:"deliveries"`
	Next       flex.EventID       `json:"next,omitzero"` // the next page's "before", absent on the last
}

// DeliveryDetail answers GET /deliveries/{id}.
type DeliveryDetail struct {
	DeliveryResponse
	URL       string             `json:"url,omitzero"`     // as it is called now
	Payload   jsontext.Value     `json:"payload,omitzero"` // as it was, or would be, sent
	Attempts  []DeliveryAttempt  `json:"attempts"`
	Callbacks []DeliveryCallback `json:"callbacks"`
}

// DeliveryCallback is one report of a client's, with the time that it gave.
type DeliveryCallback struct {
	AssetID    flex.AssetID        `json:"asset_id"`
	Status     flex.CallbackStatus `json:"status" wire:"enum=EventStatus"`
	Timestamp  Time                `json:"timestamp"`
	ReceivedAt Time                `json:"received_at"`
}

// DeliveryAttempt is one try. There is no status code where no answer came.
type DeliveryAttempt struct {
	At         Time    `json:"at"`
	StatusCode int     `json:"status_code,omitzero"`
	DurationMS float64 `json:"duration_ms"`
	Error      string  `json:"error,omitzero"`
	Response   string  `json:"response,omitzero"` // its beginning
}

// EndpointPath holds the path parameter of an endpoint.
type EndpointPath struct {
	Name string `json:"name" wire:"required,enum=EndpointName"`
}

// EndpointRequest is the body of PUT /endpoints/{name}. Headers, secret, rate and
// concurrency stay as they are where they are not given.
type EndpointRequest struct {
	URL         string           `json:"url" wire:"required,nonempty,text=2048"`
	Headers     []EndpointHeader `json:"headers,omitzero" wire:"items=20"`
	Secret      string           `json:"secret,omitzero"` // made if there is none
	Bare        bool             `json:"bare"`            // a schedule is the profile alone, without its connector
	Nulls       bool             `json:"nulls"`           // members of a profile without a value are null, not left out
	Batch       bool             `json:"batch"`           // a dispatch is one message for all its assets
	Enabled     *bool            `json:"enabled,omitzero"`
	Rate        int              `json:"rate,omitzero" wire:"min=1,max=100000"`     // pushes a second
	Concurrency int              `json:"concurrency,omitzero" wire:"min=1,max=512"` // attempts under way at once
}

// EndpointHeader is a header field that every push bears.
type EndpointHeader struct {
	Name  string `json:"name" wire:"required,nonempty"`
	Value string `json:"value" wire:"required"`
}

// EndpointResponse is where pushes go. Header fields show their names alone, and the secret
// is shown once, when it was made.
type EndpointResponse struct {
	ID             flex.EndpointID `json:"id"`
	Name           string          `json:"name" wire:"enum=EndpointName"`
	URL            string          `json:"url"`
	HeaderNames    []string        `json:"header_names"`
	Secret         string          `json:"secret,omitzero"`
	OldSecretUntil Time            `json:"old_secret_until,omitzero"` // the secret before signs as well until then
	Bare           bool            `json:"bare"`
	Nulls          bool            `json:"nulls"`
	Batch          bool            `json:"batch"`
	Enabled        bool            `json:"enabled"`
	DisabledReason string          `json:"disabled_reason,omitzero"`
	Rate           int             `json:"rate"`
	Concurrency    int             `json:"concurrency"`
	CreatedAt      Time            `json:"created_at"`
}

// EndpointTestResponse answers POST /endpoints/{name}/test: the test message as a delivery.
type EndpointTestResponse struct {
	Accepted bool           `json:"accepted"`
	Delivery DeliveryDetail `json:"delivery"`
}
