package flex

import "time"

// DeliveryState is what has become of a push.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending  DeliveryState = "pending"  // to be tried, or tried again
	DeliveryAccepted DeliveryState = "accepted" // the client has taken it
	DeliveryRejected DeliveryState = "rejected" // the client refused it for good
	// a newer schedule replaced it first
	DeliverySuperseded DeliveryState = "superseded"
	DeliveryExpired    DeliveryState = "expired"   // its time was over first
	DeliveryRetracted  DeliveryState = "retracted" // it was taken back first
)

// EndpointName says which of an organisation's endpoints a push goes to.
type EndpointName string

// The endpoints that an organisation may have.
const (
	ScheduleEndpoint EndpointName = "schedule"
	DispatchEndpoint EndpointName = "dispatch"
	// of what households are invited to
	InvitationEndpoint EndpointName = "invitation"
)

// FormerSecret is a secret of an endpoint that signs as well until its time is over.
type FormerSecret struct {
	Secret Secret
	Until  time.Time
}

// Endpoint is where an organisation's pushes go.
type Endpoint struct {
	ID      EndpointID
	Org     OrgID
	Name    EndpointName
	URL     string // may hold {asset_id}, {external_id} and {site_id}
	Headers []EndpointHeader
	Secret  Secret // "whsec_" and base64
	// the one before it, which signs as well until OldUntil
	OldSecret   Secret
	OldUntil    time.Time
	Former      []FormerSecret // those before that one, the newest first
	Bare        bool           // a schedule is sent as the profile alone
	Nulls       bool           // members of a profile without a value are sent as null
	Batch       bool           // a dispatch is sent as one message for all its assets
	Discharge   DischargeForm
	Enabled     bool
	Reason      string // why it is not enabled
	Rate        int    // pushes a second at most
	Concurrency int    // pushes under way at once at most
	CreatedAt   time.Time
	Version     int64 // greater each time it is set
}
