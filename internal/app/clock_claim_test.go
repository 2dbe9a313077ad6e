package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestAdvance_TwoProcesses: while one process advances a clock another waits. Beside each
// other, one would skip what the other's work makes due, or set the clock back. One that works
// for longer than its claim lasts, and loses it, moves the clock no more.
func TestAdvance_TwoProcesses(t *testing.T) {
	url := storetest.Postgres(t)
	start := time.Date(2026, time.March, 3, 9, 10, 0, 0, time.UTC)
	s := openClocked(t, url, start, "")
	defer storetest.Close(t, s.app.DB)
	defer s.app.Push.Close()

	other := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return start }})
	reads := func(want time.Time) {
		t.Helper()
		if now, _, err := s.app.Clock(t.Context(), s.Org); !now.Equal(want) || err != nil {
			t.Errorf("the clock reads %s, want %s: %v", now, want, err)
		}
	}

	theirs, err := other.ClaimClock(t.Context(), s.Org)
	if err != nil {
		t.Fatal(err)
	}

	soon, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := s.app.Advance(soon, s.Org, start.Add(time.Minute)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside another process: %v", err)
	}
	reads(start)

	theirs.Free(t.Context())
	if err := s.app.Advance(t.Context(), s.Org, start.Add(time.Minute)); err != nil {
		t.Errorf("after another process: %v", err)
	}
	reads(start.Add(time.Minute))

	adv := advance{App: s.app, org: s.Org}
	if adv.claim, err = s.app.DB.ClaimClock(t.Context(), s.Org); err != nil {
		t.Fatal(err)
	}
	s.Exec(`UPDATE idempotency SET expires_at = 0`) // it works for long
	if err := adv.set(t.Context(), start.Add(2*time.Minute)); err != nil {
		t.Errorf("nobody else has the clock: %v", err)
	}

	s.Exec(`UPDATE idempotency SET expires_at = 0`)
	if _, err := other.ClaimClock(t.Context(), s.Org); err != nil {
		t.Fatal(err)
	}
	if err := adv.set(t.Context(), start.Add(3*time.Minute)); flex.KindOf(err) != flex.Unavailable {
		t.Errorf("another process has the clock: %v", err)
	}
	reads(start.Add(2 * time.Minute))
}
