package sim

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"flexd/client"
)

// Endpoint is a client's endpoint for charging profiles: it verifies each push, hands the
// profile to the charger named by the last part of the path, and answers. A push that it
// has seen before is answered and passed over.
type Endpoint struct {
	Secret string
	Now    func() time.Time // nil means time.Now
	// called with each new push; may be nil
	Received func(Received)
	// takes the pushes to all other chargers; without, they are refused
	Others   func(externalID, eventID string, body []byte)
	charger  map[string]*Charger
	mu       sync.Mutex
	received map[string]bool
}

// Received is a push that arrived.
type Received struct {
	Charger *Charger
	EventID string
	Body    []byte
	At      time.Time
}

// bodyMax is the largest push that is read.
const bodyMax = 1 << 20

// NewEndpoint returns an endpoint for the chargers.
func NewEndpoint(secret string, chargers ...*Charger) *Endpoint {
	e := &Endpoint{
		Secret:   secret,
		charger:  map[string]*Charger{},
		received: map[string]bool{},
	}

	for _, c := range chargers {
		e.charger[c.ExternalID] = c
	}

	return e
}

// ServeHTTP takes a push.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	if e.Now != nil {
		now = e.Now()
	}

	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if err != nil {
		http.Error(
			w,
			"the body is too large or broke off",
			http.StatusBadRequest,
		)

		return
	}

	id, err := client.VerifyWebhook(e.Secret, r.Header, body, now)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}

	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]

	e.mu.Lock()
	c := e.charger[name]
	e.mu.Unlock()

	if c == nil {
		e.other(w, name, id, body)
		return
	}

	if e.again(id) {
		w.WriteHeader(http.StatusNoContent)
		return
	}

	if err := c.Receive(body); err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}

	if e.Received != nil {
		e.Received(Received{c, id, body, now})
	}

	w.WriteHeader(http.StatusNoContent)
}

// other takes a push to a charger that is not its own, if anybody wants it.
func (e *Endpoint) other(
	w http.ResponseWriter,
	name, id string,
	body []byte,
) {
	if e.Others == nil {
		http.Error(w, "no such charger", http.StatusNotFound)
		return
	}

	if !e.again(id) {
		e.Others(name, id, body)
	}

	w.WriteHeader(http.StatusNoContent)
}

// again reports whether the push was seen before, and remembers it.
func (e *Endpoint) again(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.received[id] {
		return true
	}
	e.received[id] = true

	return false
}

// Add lets the endpoint take profiles for one more charger.
func (e *Endpoint) Add(c *Charger) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.charger[c.ExternalID] = c
}
