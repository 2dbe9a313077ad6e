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

// endpointPath is the path of flexd's pushes, followed by the asset's external id.
const endpointPath = "/push/"

// pushMax is the largest accepted push, in bytes.
const pushMax = 1 << 20

// pushTarget is the schedule that flexd wants a connector to follow, and the progress of sending
// it.
type pushTarget struct {
	event   client.EventID
	profile ocpp.Profile

	// as the charger took it; without steps if it did not yet
	sent        profileFit
	sentAt      time.Time // or last repaired
	tries       int       // that failed without an answer
	isOver      bool      // the charger refused it, or failed too often
	reported    client.CallbackStatus
	resendCount int // how often a resend was requested
	// the forms that late answers refused, and how many of those answers said that the charger
	// supports no profiles
	refusedForms []form
	unknown      int

	contradicted bool      // the charger reported another limit
	repairedStep time.Time // the end of the step that was repaired last
	mends        int       // of it
}

// endpoint answers flexd's pushes. A push is accepted once it is stored. A callback later
// reports its result.
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

	switch err := b.deliver(r.PathValue("external_id"), &pushTarget{
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

// olderThan reports whether an event was created before another. Ids begin with their time in
// milliseconds.
func olderThan(a, b client.EventID) bool {
	return bytes.Compare(a[:6], b[:6]) < 0
}

var errNoSpace = errors.New("too many chargers have schedules and are not connected")

// deliver gives a schedule to the asset's connector. If no connector has the asset yet, the
// schedule waits for the charger that claims the name.
func (b *Bridge) deliver(name string, p *pushTarget) error {
	b.mu.Lock()
	at, ok := b.names[name]
	if ok {
		b.mu.Unlock()
		return at.want(at.number, p)
	}
	defer b.mu.Unlock()

	before, alreadyWaiting := b.waiting[name]
	if alreadyWaiting && olderThan(p.event, before.event) {
		return errOlder
	}
	if !alreadyWaiting && len(b.waiting) >= waitingMax {
		b.dropEnded()
		if len(b.waiting) >= waitingMax {
			return errNoSpace
		}
	}

	b.waiting[name] = p

	return nil
}

// dropEnded deletes the ended schedules of chargers that are not connected.
func (b *Bridge) dropEnded() {
	for name, p := range b.waiting {
		if !p.profile.Span().To.After(b.Now()) {
			delete(b.waiting, name)
		}
	}
}

// disclaim notes that an asset is no longer a connector.
func (b *Bridge) disclaim(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.names, name)
}

// claim notes which connector an asset is, and returns the schedule that waited for it.
func (b *Bridge) claim(name string, at socket) *pushTarget {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names[name] = at
	p := b.waiting[name]
	delete(b.waiting, name)

	return p
}
