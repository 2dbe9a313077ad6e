package ocppserver

import (
	"io"
	"net/http"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
)

// endpointPath is where pushes arrive, followed by the asset's external id.
const endpointPath = "/push/"

// pushMax is the largest push that is read.
const pushMax = 1 << 20

// wanted is a schedule that flexd wants a connector to follow, and how far it has come.
type wanted struct {
	event   client.EventID
	profile ocpp.Profile

	sent  fitted // as the charger took it; without steps if it did not yet
	tries int    // that failed without an answer
	over  bool   // the charger refused it, or failed too often
	told  client.CallbackStatus
}

// endpoint answers flexd's pushes. A push is taken when it is remembered; what becomes of
// it is told by callback.
func (b *Bridge) endpoint() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+endpointPath+"{external_id}", b.takePush)
	return mux
}

func (b *Bridge) takePush(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, pushMax))
	if err != nil {
		http.Error(w, "the body is too large or broke off", http.StatusBadRequest)
		return
	}

	id, err := client.VerifyWebhook(b.secret, r.Header, body, b.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}

	event, err := flex.ParseID[struct{}](id)
	if err != nil {
		http.Error(w, "webhook-id is not an event id", http.StatusUnprocessableEntity)
		return
	}

	p, err := ocpp.Parse(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}

	if !b.deliver(r.PathValue("external_id"), &wanted{event: client.EventID(event), profile: p}) {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many chargers have schedules and are not connected", http.StatusServiceUnavailable)
		return
	}

	w.WriteHeader(http.StatusNoContent)
}

// deliver gives a schedule to the connector that its asset is, or keeps it for the charger
// that will claim the name. It is false if there is no room.
func (b *Bridge) deliver(name string, p *wanted) bool {
	b.mu.Lock()

	at, ok := b.names[name]
	if !ok {
		defer b.mu.Unlock()

		if _, again := b.held[name]; !again && len(b.held) >= heldMax {
			b.dropEnded()
			if len(b.held) >= heldMax {
				return false
			}
		}

		b.held[name] = p
		return true
	}

	b.mu.Unlock()
	at.want(at.number, p)
	return true
}

// dropEnded forgets the schedules of chargers not connected that have ended.
func (b *Bridge) dropEnded() {
	for name, p := range b.held {
		if !p.profile.Span().To.After(b.Now()) {
			delete(b.held, name)
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
	p := b.held[name]
	delete(b.held, name)
	return p
}
