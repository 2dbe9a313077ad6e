package ocppserver_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/ocppserver"
)

// trap is a log that panics at a message about a charger, so often, and counts what was logged
// of failures.
type trap struct {
	slog.Handler
	message, charger string
	left             *atomic.Int64
	failures         *atomic.Int64
}

func newTrap(t *testing.T, message, charger string, often int) *trap {
	tr := &trap{slog.NewTextHandler(t.Output(), nil), message, charger, &atomic.Int64{}, &atomic.Int64{}}
	tr.left.Store(int64(often))
	return tr
}

// Handle is slog.Handler's.
func (t *trap) Handle(ctx context.Context, r slog.Record) error {
	of := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "charger" {
			of = a.Value.String()
		}
		return true
	})

	if strings.HasPrefix(r.Message, "the work for a charger failed") {
		t.failures.Add(1)
	} else if r.Message == t.message && of == t.charger && t.left.Add(-1) >= 0 {
		panic("planted at " + t.message)
	}

	return t.Handler.Handle(ctx, r)
}

// TestBridge_PanicOfOneCharger: a panic in the work for a charger, or in its connection,
// closes that connection. The other charger goes on, the one that failed is served again when
// it connects, and the bridge ends as ever.
func TestBridge_PanicOfOneCharger(t *testing.T) {
	for _, message := range []string{
		"a charger takes profiles in this form", // in its worker
		"charger connected",                     // in its connection
		"a charger's state is not saved: it would be lost if the bridge ended now", // with its lock held
	} {
		t.Run(message, func(t *testing.T) {
			trap := newTrap(t, message, "CP1", 1)
			listened := ocppserver.Settings{Log: slog.New(trap), State: t.TempDir(), OfficeToken: officeToken, Timing: bootless}
			s := open(t, ocppserver.Settings{})
			s.halt()
			office := s.listen()
			listened.Office = office
			s.bridge(listened)
			if strings.Contains(message, "not saved") {
				s.must(os.RemoveAll(listened.State))
			}

			other := newSim(t, s.url, "CP2", s.now)
			other.connect()
			c := newSim(t, s.url, "CP1", s.now)
			c.connect()
			gone := c.gone
			if message != "charger connected" {
				c.say("Preparing")
			}

			select {
			case <-gone:
			case <-time.After(patience):
				t.Fatal("the connection of the charger that failed stays")
			}

			other.must("Heartbeat", `{}`)
			c.connect()
			c.say("Preparing")
			c.given()
			c.start(1000)
			c.given()

			s.eventually("the failure is logged", func() bool { return trap.failures.Load() > 0 }) // which is after the connection's end
			if n := trap.failures.Load(); n != 1 {
				t.Errorf("%d failures are logged", n)
			}
			_, list := fetch(s, "GET", "http://"+office.Addr().String()+"/chargers", "", officeToken)
			if !strings.Contains(list, `"id":"CP1","connected":true,"ocpp":"1.6","failures":1`) {
				t.Errorf("the chargers are %s", list)
			}

			s.tick(time.Minute)
			s.eventually("the car is plugged in at flexd", s.plugged)
			s.halt() // within the time of a test
		})
	}
}
