package ocppserver

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
	"flexd/internal/web"
)

// endpointPath is where pushes arrive, followed by the asset's external id.
const endpointPath = "/push/"

// pushMax is the largest push that is read.
const pushMax = 1 << 20

// wanted is a schedule that flexd wants a connector to follow, and how far it has come.
type wanted struct {
	event   client.EventID
	profile ocpp.Profile

	// as the charger took it; without steps if it did not yet
	sent     fitted
	sentAt   time.Time // or last mended
	tries    int       // that failed without an answer
	over     bool      // the charger refused it, or failed too often
	reported client.CallbackStatus
	again    int // it counts how often it was to be sent once more
	// the forms that were refused by late answers, and how many of those said that the charger
	// takes no profiles
	refused []form
	unknown int

	contradicted bool      // the charger said that it will do otherwise
	mended       time.Time // the end of the step that was mended last
	mends        int       // of it
}

// endpoint answers flexd's pushes. A push is accepted once it is stored; a callback reports
// its result.
func (b *Bridge) endpoint() *web.Mux {
	mux := web.NewMux()
	mux.HandleFunc("POST "+endpointPath+"{external_id}", b.takePush)
	return mux
}

func (b *Bridge) takePush(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, pushMax))
	if err != nil {
		http.Error(
			w,
			"the body is too large or broke off",
			http.StatusBadRequest,
		)

		return
	}

	id, err := client.VerifyWebhook(b.secret, r.Header, body, b.trueNow())
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}

	event, err := flex.ParseID[struct{}](id)
	if err != nil {
		http.Error(
			w,
			"webhook-id is not an event id",
			http.StatusUnprocessableEntity,
		)

		return
	}

	p, err := ocpp.ParseDischarging(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}

	switch err := b.deliver(r.PathValue("external_id"), &wanted{
		event:   client.EventID(event),
		profile: p,
	}); {
	case errors.Is(err, errNoSpace):
		w.Header().Set("Retry-After", "60")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)

		return

	case err != nil:
		b.Log.Warn(
			"a push was refused",
			"external_id",
			r.PathValue("external_id"),
			"event",
			id,
			"err",
			err,
		)

		http.Error(w, err.Error(), http.StatusConflict)

		return
	}

	w.WriteHeader(http.StatusNoContent)
}

// olderThan reports whether an event was made before another: ids begin with their milliseconds.
func olderThan(a, b client.EventID) bool {
	return bytes.Compare(a[:6], b[:6]) < 0
}

var errNoSpace = errors.New("too many chargers have schedules and are not connected")

// deliver gives a schedule to the connector that its asset is, or keeps it for the charger
// that will claim the name.
func (b *Bridge) deliver(name string, p *wanted) error {
	b.mu.Lock()
	at, ok := b.names[name]
	if ok {
		b.mu.Unlock()
		return at.want(at.number, p)
	}
	defer b.mu.Unlock()

	before, again := b.waiting[name]
	if again && olderThan(p.event, before.event) {
		return errOlder
	}
	if !again && len(b.waiting) >= waitingMax {
		b.dropEnded()
		if len(b.waiting) >= waitingMax {
			return errNoSpace
		}
	}

	b.waiting[name] = p

	return nil
}

// dropEnded deletes the schedules of chargers not connected that have ended.
func (b *Bridge) dropEnded() {
	for name, p := range b.waiting {
		if !p.profile.Span().To.After(b.Now()) {
			delete(b.waiting, name)
		}
	}
}

// disclaim says that an asset is no connector any more.
func (b *Bridge) disclaim(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.names, name)
}

// claim says which connector an asset is, and returns the schedule that waited for it.
func (b *Bridge) claim(name string, at socket) *wanted {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names[name] = at
	p := b.waiting[name]
	delete(b.waiting, name)

	return p
}
