package store_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// process is one of several on a database, whose machine's clock is off by some time.
type process struct {
	*queue
	off atomic.Int64
}

func (p *process) time() time.Time { return time.Now().Add(time.Duration(p.off.Load())) }

func newProcess(t *testing.T, url string, off time.Duration) *process {
	p := &process{queue: &queue{T: t}}
	p.off.Store(int64(off))
	p.db = storetest.Open(t, url, store.Options{Now: p.time, DatabaseClock: true})

	return p
}

// near says whether the process goes by the database's clock, which is this machine's.
func (p *process) near() bool { return time.Since(p.db.Now()).Abs() < 30*time.Second }

// reach waits until the process's clock shows an instant of another's: they differ by milliseconds.
func (p *process) reach(at time.Time) {
	p.Helper()

	for limit := time.Now().Add(time.Minute); p.db.Now().Before(at); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			p.Fatalf("at %s the other's clock shows %s", p.db.Now(), at)
		}
	}
}

// Of two processes whose clocks differ by minutes none takes the other's lease before its end,
// and none leaves what the other queued: a mail goes out once, and at once.
func TestClock_TwoProcesses(t *testing.T) {
	const apart = 5 * time.Minute
	for name, off := range map[string]time.Duration{"ahead": apart, "behind": -apart} {
		t.Run(name, func(t *testing.T) {
			url := storetest.Postgres(t)
			right := newProcess(t, url, 0)
			wrong := newProcess(t, url, off)
			right.Seed = storetest.NewSeed(t, right.db, url)
			right.site = right.Site()
			wrong.Seed, wrong.site = right.Seed, right.site

			for subject, both := range map[string][2]*process{"first": {right, wrong}, "second": {wrong, right}} {
				both[0].add(subject)
				both[1].reach(both[0].db.Now())
				both[1].claim(1, subject)
				both[0].claim(1)
				both[1].claim(1)

				request := [32]byte{1}
				if _, _, err := both[0].db.ClaimKey(t.Context(), right.Org, subject, request); err != nil {
					t.Fatal(err)
				}
				if _, _, err := both[1].db.ClaimKey(t.Context(), right.Org, subject, request); flex.KindOf(err) != flex.Conflict {
					t.Errorf("a key that another holds is claimed: %v", err)
				}
			}

			if got := wrong.db.ClockOff(); !wrong.near() || (got-off).Abs() > 30*time.Second {
				t.Errorf("a clock that is %s off is taken to be %s off, and gives %s", off, got, wrong.db.Now())
			}
			if !right.near() || right.db.ClockOff().Abs() > 30*time.Second {
				t.Errorf("the right clock is taken to be %s off", right.db.ClockOff())
			}
		})
	}
}

// A clock that is moved while the process runs is found out, and so is that it is right again.
func TestClock_Moved(t *testing.T) {
	p := newProcess(t, storetest.Postgres(t), 0)
	ctx, stop := context.WithCancel(t.Context())
	began, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		p.db.Watch(ctx, func() { close(began) }, func(error) {})
	}()
	<-began

	for _, off := range []time.Duration{time.Hour, -time.Hour, 0} {
		p.off.Store(int64(off))
		for limit := time.Now().Add(2 * time.Minute); !p.near(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("a clock that is %s off gives %s", off, p.db.Now())
			}
		}
	}

	stop()
	<-ended
}

// A clock that is given is gone by as it is, unless it is a machine's; on SQLite there is no other.
func TestClock_OfOptions(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return at }})
		if !db.Now().Equal(at) || db.ClockOff() != 0 {
			t.Errorf("%s is given as %s, %s off", at, db.Now(), db.ClockOff())
		}
	})
}
