package wire

import (
	"github.com/go-json-experiment/json/jsontext"

	"flexd/internal/flex"
)

// The structs of this file are ours: the interface has no such operations.

// DeliveryListQuery holds the parameters of GET /deliveries; what is not given takes all.
//
//openapi:client
type DeliveryListQuery struct {
	// Only of this asset.
	AssetID flex.AssetID `json:"asset_id"`
	// Only of this kind.
	Kind string `json:"kind" wire:"enum=DeliveryKind"`
	// Only in this state.
	Status string `json:"status" wire:"enum=DeliveryStatus"`
	// Only to this endpoint.
	Endpoint string `json:"endpoint" wire:"enum=EndpointName"`
	// Only what was queued since.
	Since Time `json:"since"`
	// The page that follows this delivery, as an answer's next says.
	Before flex.EventID `json:"before"`
	// Most items on the page.
	Limit int `json:"limit" wire:"min=1,max=5000,default=10"`
}

// DeliveryPath holds the path parameter of a delivery: the event id of callbacks.
type DeliveryPath struct {
	// The push's id, which callbacks call event_id.
	//
	//openapi:merge {"example": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f33"}
	ID flex.EventID `json:"id" wire:"required"`
}

// DeliveryResponse is one push.
//
//openapi:addition
type DeliveryResponse struct {
	// The event id of callbacks and the webhook-id of every attempt.
	ID       flex.EventID `json:"id"`
	Kind     string       `json:"kind" wire:"enum=DeliveryKind"`
	AssetID  flex.AssetID `json:"asset_id,omitzero"`
	Endpoint string       `json:"endpoint" wire:"enum=EndpointName"`
	// Of the schedule.
	Generation     int64               `json:"generation,omitzero"`
	Status         string              `json:"status" wire:"enum=DeliveryStatus"`
	CallbackStatus flex.CallbackStatus `json:"callback_status,omitzero" wire:"enum=EventStatus"`
	NumAttempts    int                 `json:"num_attempts"`
	CreatedAt      Time                `json:"created_at"`
	NextAttemptAt  Time                `json:"next_attempt_at,omitzero"`
	FinishedAt     Time                `json:"finished_at,omitzero"`
}

// DeliveryResponsePage is one page of deliveries, newest first.
//
//openapi:addition
type DeliveryResponsePage struct {
	Deliveries []DeliveryResponse `json:"deliveries"`
	// The next page's before, absent on the last.
	Next flex.EventID `json:"next,omitzero"`
}

// DeliveryDetail answers GET /deliveries/{id}.
//
//openapi:addition
type DeliveryDetail struct {
	DeliveryResponse
	// As it is called now.
	URL string `json:"url,omitzero"`
	// The body as it is sent.
	//
	//openapi:merge {"type": null}
	Payload   jsontext.Value     `json:"payload,omitzero"`
	Attempts  []DeliveryAttempt  `json:"attempts"`
	Callbacks []DeliveryCallback `json:"callbacks"`
	// Of a dispatch: the times of each asset in which a newer dispatch took its place, the first first.
	Replaced []DispatchReplaced `json:"replaced,omitzero"`
}

// DispatchReplaced is a time of an asset's part in a dispatch in which a newer one took its place.
//
//openapi:addition
type DispatchReplaced struct {
	AssetID  flex.AssetID `json:"asset_id"`
	FromTime Time         `json:"from_time"`
	ToTime   Time         `json:"to_time"`
}

// DeliveryCallback is one report of a client's, with the time that it gave.
//
//openapi:addition
type DeliveryCallback struct {
	AssetID flex.AssetID        `json:"asset_id"`
	Status  flex.CallbackStatus `json:"status" wire:"enum=EventStatus"`
	// As the client gave it.
	Timestamp  Time `json:"timestamp"`
	ReceivedAt Time `json:"received_at"`
}

// DeliveryAttempt is one try. There is no status code where no answer came.
//
//openapi:addition
type DeliveryAttempt struct {
	At Time `json:"at"`
	// Absent where no answer came.
	StatusCode int     `json:"status_code,omitzero"`
	DurationMS float64 `json:"duration_ms"`
	Error      string  `json:"error,omitzero"`
	// The beginning of the answer's body.
	Response string `json:"response,omitzero"`
}

// EndpointPath holds the path parameter of an endpoint.
type EndpointPath struct {
	// schedule takes charging profiles, dispatch takes dispatch events.
	//
	//openapi:merge {"example": "schedule"}
	Name string `json:"name" wire:"required,enum=EndpointName"`
}

// EndpointRequest is the body of PUT /endpoints/{name}. Headers, secret, rate and
// concurrency stay as they are where they are not given.
//
//openapi:addition
type EndpointRequest struct {
	// May hold {asset_id}, {external_id} and {site_id}.
	URL     string           `json:"url" wire:"required,nonempty,text=2048"`
	Headers []EndpointHeader `json:"headers,omitzero" wire:"items=20"`
	// Signs every push. Made if there is none, and kept if not given.
	Secret string `json:"secret,omitzero"`
	// Whether the charging profile is sent alone, without connectorId.
	//
	//openapi:merge {"default": false}
	Bare bool `json:"bare"`
	// Whether members of a profile that have no value are sent as null instead of left out. OCPP
	// knows no null there, and strict libraries refuse it.
	//
	//openapi:merge {"default": false}
	Nulls bool `json:"nulls"`
	// Whether a dispatch is one message for all its assets.
	//
	//openapi:merge {"default": false}
	Batch bool `json:"batch"`
	// How it takes schedules by which a car discharges: none, or periods with limits below zero. OCPP 1.6 knows
	// none: say negative_limits only of what understands them.
	//
	//openapi:merge {"default": "none"}
	Discharge string `json:"discharge,omitzero" wire:"enum=DischargeForm"`
	Enabled   *bool  `json:"enabled,omitzero"`
	// Pushes a second at most; 1000 if never said.
	Rate int `json:"rate,omitzero" wire:"min=1,max=100000"`
	// Pushes under way at once at most; 64 if never said.
	Concurrency int `json:"concurrency,omitzero" wire:"min=1,max=512"`
}

// EndpointHeader is a header field that every push bears.
//
//openapi:addition
type EndpointHeader struct {
	Name  string `json:"name" wire:"required,nonempty"`
	Value string `json:"value" wire:"required"`
}

// EndpointResponse is where pushes go. Header fields show their names alone, and the secret
// is shown once, when it was made.
//
//openapi:addition
type EndpointResponse struct {
	ID          flex.EndpointID `json:"id"`
	Name        string          `json:"name" wire:"enum=EndpointName"`
	URL         string          `json:"url"`
	HeaderNames []string        `json:"header_names"`
	// Shown once, when it was made.
	Secret string `json:"secret,omitzero"`
	// The secret before signs as well until then.
	OldSecretUntil Time `json:"old_secret_until,omitzero"`
	Bare           bool `json:"bare"`
	Nulls          bool `json:"nulls"`
	Batch          bool `json:"batch"`
	// Absent where it takes none.
	Discharge      string `json:"discharge,omitzero" wire:"enum=DischargeForm"`
	Enabled        bool   `json:"enabled"`
	DisabledReason string `json:"disabled_reason,omitzero"`
	Rate           int    `json:"rate"`
	Concurrency    int    `json:"concurrency"`
	CreatedAt      Time   `json:"created_at"`
}

// EndpointTestResponse answers POST /endpoints/{name}/test: the test message as a delivery.
//
//openapi:addition
type EndpointTestResponse struct {
	Accepted bool           `json:"accepted"`
	Delivery DeliveryDetail `json:"delivery"`
}
