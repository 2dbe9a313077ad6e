package flex

import "time"

// Term is one of an organisation's terms from a day on.
type Term struct {
	Name  string
	From  Day    // London; zero: from the beginning
	Value string // as `flexd org set` takes it; empty: the default
	SetAt time.Time
	SetBy string
}

// Callback is what a client reports of an event.
type Callback struct {
	EventID    EventID
	AssetID    AssetID
	Status     CallbackStatus
	ReportedAt time.Time // as the client says; when it came, if it does not say
	ReceivedAt time.Time // by the organisation's clock
}

// EndpointHeader is a header field that every push bears. Its value is often a credential.
type EndpointHeader struct {
	Name  string
	Value Secret
}

// Carbon is the carbon dioxide that electricity of a half-hour carries.
type Carbon struct {
	Period Period
	Grams  int  // per kilowatt-hour
	Actual bool // measured, not forecast
}
