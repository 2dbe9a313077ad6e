package ocppserver

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"flexd/client"
)

// TestConnector_FlickerReportedLate: a plug that flickered is one car's still, though the end
// of its transaction is reported long afterwards. A car that leaves later, and comes again, is
// another.
func TestConnector_FlickerReportedLate(t *testing.T) {
	const patience = 30 * time.Second
	n := &connector{}
	say := func(word string, after time.Duration) {
		at := night.Add(after)
		n.takeStatus(word, at, at)
		n.tookStatus(word, at, patience)
	}

	say(statusCharging, 0)
	n.reported, n.reportedAt = reportedIn, night
	say(statusAvailable, time.Hour)
	say(statusPreparing, time.Hour+10*time.Second)
	say(statusCharging, time.Hour+40*time.Second)
	n.carGone(night.Add(time.Hour), patience)
	n.carBack(night.Add(time.Hour+40*time.Second), patience)
	if n.another {
		t.Error("the car counts as another after a flicker")
	}

	n.carGone(night.Add(2*time.Hour), patience)
	n.carBack(night.Add(3*time.Hour), patience)
	if !n.another {
		t.Error("another car counts as the first")
	}
}

// TestConnector_StateOfEarlierRelease: the end of an earlier car's transaction, reported late,
// does not concern the present car, also where the state was saved by a release that did not
// save when that car was reported. When the next car can be reported is saved too.
func TestConnector_StateOfEarlierRelease(t *testing.T) {
	n := &connector{}
	n.restore(savedConnector{Plugged: true, Reported: reportedIn, Since: night})
	n.carGone(night.Add(-time.Hour), time.Minute)
	n.carBack(night.Add(time.Hour), time.Minute)
	if n.another {
		t.Error("the car counts as another")
	}

	n.reported, n.nextAt = reportedOut, night.Add(apartFor)
	var again connector
	again.restore(n.snapshot())
	if again.due(night, time.Minute) != reportedNothing || again.due(night.Add(apartFor), time.Minute) != reportedIn {
		t.Error("the next car is reported at another time than before")
	}
}

// TestConnector_SlowAnswer: flexd's answer to a plug-in takes three hours, in which that car
// left and the next one came. The report was of the instant at which it was made, so the car
// that is there is another.
func TestConnector_SlowAnswer(t *testing.T) {
	now := night
	flexd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/auth/token" {
			_, _ = w.Write([]byte(`{"access_token":"x","expires_in":3600}`))
			return
		}

		now = now.Add(3 * time.Hour)
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(flexd.Close)

	b := New(Settings{Client: client.New(flexd.URL, "acme", "x"), Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
	c := &charger{b: b, id: "CP1"}
	n := &connector{asset: client.AssetResponse{ID: client.AssetID{1}}}
	n.plug(true, night)

	if err := c.sendPlug(t.Context(), n); err != nil {
		t.Fatal(err)
	}

	n.carGone(night.Add(time.Hour), time.Minute)
	n.carBack(night.Add(2*time.Hour), time.Minute)
	if !n.another {
		t.Error("the next car counts as the first")
	}
}

// TestConnector_NextCarBeforeTheAnswer: a car leaves and the next one comes, and says all that
// it says, before flexd has answered to a plug. The next car is another, and is reported no
// sooner than flexd would take it for one.
func TestConnector_NextCarBeforeTheAnswer(t *testing.T) {
	for _, due := range []plugState{reportedIn, reportedOut} {
		var c *charger
		now := night
		n := &connector{asset: client.AssetResponse{ID: client.AssetID{1}}}
		flexd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/auth/token-form" {
				_, _ = w.Write([]byte(`{"access_token":"x","expires_in":3600}`))
				return
			}

			c.mu.Lock()
			defer c.mu.Unlock()
			now = now.Add(3 * time.Hour)
			n.plug(false, night.Add(time.Hour))
			n.carGone(night.Add(time.Hour), time.Minute)
			n.plug(true, night.Add(2*time.Hour))
			n.carBack(night.Add(2*time.Hour), time.Minute)
			_, _ = w.Write([]byte(`{}`))
		}))
		t.Cleanup(flexd.Close)

		b := New(Settings{Client: client.New(flexd.URL, "acme", "x"), Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
		c = &charger{b: b, id: "CP1"}
		n.plug(due == reportedIn, night.Add(-time.Hour))
		if due == reportedOut {
			n.reported, n.reportedAt = reportedIn, night.Add(-2*time.Hour)
		}

		if err := c.sendPlug(t.Context(), n); err != nil || n.reported != due {
			t.Fatalf("%d is reported, %v", n.reported, err)
		}
		if due == reportedIn && !n.another {
			t.Error("the next car counts as the first")
		}

		soon, later := n.due(now, time.Minute), n.due(now.Add(apartFor), time.Minute)
		if due == reportedOut && (soon != reportedNothing || later != reportedIn) {
			t.Errorf("the next car: %d at once, %d a minute later", soon, later)
		}
	}
}
