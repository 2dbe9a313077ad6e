package operations_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/operations"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// outageWatch is a process whose database can be made to fail.
type outageWatch struct {
	*watch
	service       *operations.Service
	works, closed *store.DB
}

func eachOutage(t *testing.T, test func(w *outageWatch)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) {
		w := &outageWatch{watch: newWatch(t, url)}
		w.service = w.services[0]
		w.works = w.service.DB

		var err error
		w.closed, err = store.Open(t.Context(), url, store.Options{Environment: flex.Sandbox, Keys: storetest.Keys(t), Now: w.now})
		w.check(err)
		w.check(w.closed.Close())

		test(w)
	})
}

// look has the process look at its database, failing or not, and returns what was sent.
func (w *outageWatch) look(fails bool) []received {
	w.Helper()
	w.service.DB = w.works
	if fails {
		w.service.DB = w.closed
	}
	_, err := w.service.WatchDatabase(w.Context())
	w.check(err)

	return w.take()
}

// TestOutage: a database that fails for a minute is told of without it, once by each route that gets the alerts of all
// organisations, and its end likewise.
func TestOutage(t *testing.T) {
	eachOutage(t, func(w *outageWatch) {
		w.addRoutes()
		if got := w.look(false); len(got) != 0 {
			t.Fatalf("nothing fails, and %v was sent", got)
		}

		w.look(true)
		w.wait(time.Minute - time.Microsecond)
		if got := w.look(true); len(got) != 0 {
			t.Errorf("sent before the minute is over: %v", got)
		}

		w.wait(time.Microsecond)
		got := w.look(true)
		if len(got) != 3 || w.emails.Load() != 1 {
			t.Fatalf("%d messages and %d e-mails were sent, not 3 and 1", len(got), w.emails.Load())
		}
		for i, want := range []string{`"kind":"database_failing"`, `"type":"alert.firing"`, `"event_action":"trigger"`} {
			if !strings.Contains(got[i].body, want) || !strings.Contains(got[i].body, "cannot be reached") {
				t.Errorf("%s got %s", got[i].path, got[i].body)
			}
		}

		w.wait(time.Hour)
		if got := w.look(true); len(got) != 0 {
			t.Errorf("sent again: %v", got)
		}

		got = w.look(false)
		if len(got) != 3 || w.emails.Load() != 2 {
			t.Fatalf("%d messages and %d e-mails say that it is over", len(got), w.emails.Load()-1)
		}
		if !strings.Contains(got[1].body, `"alert.resolved"`) || !strings.Contains(got[2].body, `"resolve"`) {
			t.Errorf("sent at the end: %v", got)
		}
		if got := w.look(false); len(got) != 0 {
			t.Errorf("the end was sent again: %v", got)
		}
	})
}

// TestOutage_Again: a failure that is over within the minute is not told of, and the minute of the next one begins anew.
func TestOutage_Again(t *testing.T) {
	eachOutage(t, func(w *outageWatch) {
		w.addRoutes()
		for range 5 {
			if got := append(w.look(false), w.look(true)...); len(got) != 0 {
				t.Errorf("%v was sent", got)
			}
			w.wait(45 * time.Second)
			if got := w.look(true); len(got) != 0 {
				t.Errorf("%v was sent after 45 s", got)
			}
		}
	})
}

// TestOutage_NotTaken: a route that takes nothing is tried again, and is not told of the end of what it never heard of.
func TestOutage_NotTaken(t *testing.T) {
	eachOutage(t, func(w *outageWatch) {
		w.addRoutes()
		w.look(false)
		w.look(true)
		w.wait(time.Minute)

		w.answer(http.StatusBadGateway)
		first := w.look(true)
		again := w.look(true)
		if len(first) != 3 || len(again) != 3 || first[1].header.Get("Webhook-Id") != again[1].header.Get("Webhook-Id") {
			t.Errorf("%d messages were tried, then %d", len(first), len(again))
		}
		for range 20 {
			again = append(again, w.look(true)...)
		}
		if len(again) != 11*3 {
			t.Errorf("tried %d times again, not 11 for each of three", len(again))
		}

		w.answer(http.StatusAccepted)
		if got := w.look(false); len(got) != 0 || w.emails.Load() != 2 {
			t.Errorf("%v and %d e-mails were sent, and only the e-mail's begin was taken", got, w.emails.Load())
		}
	})
}

// TestOutage_Off: where the rule is off nothing is sent, and a route of one organisation gets nothing.
func TestOutage_Off(t *testing.T) {
	eachOutage(t, func(w *outageWatch) {
		var org flex.Org
		w.check(w.works.WriteAll(w.Context(), func(all *store.All) (err error) {
			org, err = all.AddOrg(w.Context(), "one")
			return err
		}))
		route := &store.AlertRoute{Name: "o", Kind: operations.RouteWebhook, Target: w.url + "/one", Org: org.ID}
		w.check(w.service.AddRoute(w.Context(), route))

		w.look(false)
		w.look(true)
		w.wait(time.Minute)
		if got := w.look(true); len(got) != 0 {
			t.Errorf("a route of one organisation was sent %v", got)
		}
		w.look(false)

		w.addRoutes()
		w.check(w.service.SetAlertRule(w.Context(), operations.AlertRule{Kind: operations.DatabaseFailing, Threshold: 1}))
		w.look(false)
		w.look(true)
		w.wait(time.Hour)
		if got := append(w.look(true), w.look(false)...); len(got) != 0 || w.emails.Load() != 0 {
			t.Errorf("the rule is off, and %v was sent", got)
		}
	})
}
