package adr

import (
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// withClock returns a service, and its clock in microseconds, which the test may set.
func withClock(t *testing.T) (*Service, *atomic.Int64) {
	t.Helper()
	clock := new(atomic.Int64)
	clock.Store(time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC).UnixMicro())
	now := func() time.Time { return time.UnixMicro(clock.Load()) }

	return &Service{DB: storetest.Open(t, storetest.SQLite(t), store.Options{Now: now})}, clock
}

// TestSilence_ClockSetBack: an address did not answer, and the clock is set back by two hours.
// It is called again. It was not for two hours, and each notice to it was given up meanwhile
// without having been sent.
func TestSilence_ClockSetBack(t *testing.T) {
	const url = "https://ven.example/notices"
	s, clock := withClock(t)

	s.silences.Store(url, silence{"it did not answer", s.DB.Now().Add(noticePause)})
	if _, silent := s.silence(url); !silent {
		t.Error("it is called at once")
	}

	clock.Add(-2 * time.Hour.Microseconds())
	if problem, silent := s.silence(url); silent {
		t.Errorf("it is not called: %s", problem)
	}
}

// TestSilence_Forgotten: many addresses did not answer once and are not called again. They are
// forgotten when another does not answer.
func TestSilence_Forgotten(t *testing.T) {
	s, clock := withClock(t)

	s.noteSilence("https://ven.example/1", "it did not answer")
	s.noteSilence("https://ven.example/2", "it did not answer")
	clock.Add((noticePause + time.Second).Microseconds())
	s.noteSilence("https://ven.example/3", "it did not answer")

	var left []string
	s.silences.Range(func(url, _ any) bool {
		left = append(left, url.(string))
		return true
	})

	if len(left) != 1 || left[0] != "https://ven.example/3" {
		t.Errorf("remembered: %q", left)
	}
}
