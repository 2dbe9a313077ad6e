package delivery

import (
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// While a claim is under way a record says that something is due. What the claim saw may be
// older, and does not count for more, in whichever order the two are heard of.
func TestDispatcher_CrossedAnswers(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	d := &Service{DB: db}
	d.begin()
	e := flex.Endpoint{Name: flex.ScheduleEndpoint, Enabled: true, Secret: egress.NewSecret(make([]byte, egress.SecretMade)), Concurrency: 1}
	now := db.Now()

	for name, at := range map[string]time.Time{"now": now, "soon": now.Add(time.Hour)} {
		l := newDispatcher(d, e)
		l.claimer.busy = true
		recordResult{nextDue: at}.apply(l)
		claimed{claim: store.Claim{Endpoint: e}, nextDue: now.Add(2 * time.Hour)}.apply(l)
		if due := at.Equal(now); l.due != due || !due && !l.dueAt.Equal(at) {
			t.Errorf("%s: due %t, else at %v", name, l.due, l.dueAt)
		}
	}
}

// While nothing is claimed, as the service is closing or too much waits to be recorded, a
// dispatcher sleeps until something happens.
func TestDispatcher_Sleeps(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	for what, plant := range map[string]func(*Service, *dispatcher){
		"the service is closing": func(s *Service, _ *dispatcher) { s.Close() },
		"too much is recorded": func(_ *Service, d *dispatcher) {
			d.recorder = recorder{busy: true, outcomes: make([]store.Outcome, recordMax+1)}
		},
	} {
		s := &Service{DB: db}

		s.begin()
		d := newDispatcher(s, flex.Endpoint{Name: flex.ScheduleEndpoint, Enabled: true, Concurrency: 2})
		d.due, d.sending = true, 1
		plant(s, d)
		if p := d.pause(); p != idleWait {
			t.Errorf("%s: it sleeps for %v", what, p)
		}
	}
}

// TestDispatcher_ClockSetBack: the clock was an hour ahead, and is set back while nothing may
// be claimed. It may be claimed as soon as it might have been without that. A dispatcher sent
// nothing for an hour, new schedules neither.
func TestDispatcher_ClockSetBack(t *testing.T) {
	const wait = 5 * time.Second

	for what, plant := range map[string]func(*dispatcher, time.Time){
		"the rate is used up": func(d *dispatcher, until time.Time) { d.block(until) },
		"the endpoint rests": func(d *dispatcher, until time.Time) {
			d.breaker = breaker{failures: openAfter, trips: 1, until: until}
			d.restsUntil.Store(until.UnixMicro())
		},
		"few attempts are free": func(d *dispatcher, until time.Time) {
			d.sending = 3
			d.claimer.at = until.Add(-claimPause)
		},
	} {
		var clock atomic.Int64
		clock.Store(time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC).UnixMicro())

		now := func() time.Time { return time.UnixMicro(clock.Load()) }
		s := &Service{DB: storetest.Open(t, storetest.SQLite(t), store.Options{Now: now})}

		s.begin()
		d := newDispatcher(s, flex.Endpoint{Name: flex.ScheduleEndpoint, Enabled: true, Concurrency: 4})
		d.due = true
		d.followClock()
		plant(d, d.now().Add(wait))

		clock.Add(-time.Hour.Microseconds())
		d.followClock()
		if d.mayClaim() {
			t.Errorf("%s: it claims at once", what)
		}

		clock.Add(wait.Microseconds())
		d.followClock()
		if !d.mayClaim() || d.now().UnixMicro() < d.restsUntil.Load() {
			t.Errorf("%s: it claims nothing %v later", what, wait)
		}
	}
}

// TestDispatcher_OrgMoved: the dispatcher of an organisation that has moved to another cell
// ends. In a sandbox it found no such organisation, and asked again each second.
func TestDispatcher_OrgMoved(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := &Service{DB: db}
		s.begin()
		d := newDispatcher(s, flex.Endpoint{Org: flex.OrgID{1}, Name: flex.ScheduleEndpoint, Enabled: true, Concurrency: 1})
		push := store.ClaimedPush{
			Push:    store.Push{AssetID: flex.AssetID{2}, EventID: flex.EventID{3}, Kind: store.SchedulePush, Generation: 1},
			Subject: flex.AssetID{2}, Holder: 1, QueuedAt: db.Now(), LeasedTo: db.Now().Add(time.Minute),
		}
		outcome := store.Outcome{Push: push, State: store.PushAccepted, Attempt: store.Attempt{At: db.Now(), Status: 200}}
		if err := d.write([]store.Outcome{outcome}); err != nil {
			t.Errorf("an outcome that belongs elsewhere is tried again: %v", err)
		}

		d.claim()
		(<-d.events).apply(d)
		if d.due || !d.isDisabled {
			t.Errorf("it claims again: due %t, disabled %t", d.due, d.isDisabled)
		}
	})
}

// TestService_CloseMax: a store that does not answer, as PostgreSQL that hangs when nothing
// watches it any more, does not keep the process from ending.
func TestService_CloseMax(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Service{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
		s.begin()

		answers := make(chan struct{})
		s.wait.Go(func() { <-answers })
		start := time.Now()
		s.Close()
		if took := time.Since(start); took != CloseMax {
			t.Errorf("closed after %s", took)
		}
		close(answers)
	})
}
