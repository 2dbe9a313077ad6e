package main

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/operations"
	"flexd/internal/store/storetest"
)

// TestExceptions_WithdrawalByItsClock: a withdrawal waits by the clock of its organisation,
// which was advanced by a day.
func TestExceptions_WithdrawalByItsClock(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := &troubles{T: t, database: database, now: time.Now().Truncate(time.Second)}
		h := s.serve()
		defer h.Close()
		s.Seed = storetest.NewSeed(t, h.DB, database)
		s.withdraw(s.now.UnixMicro())

		_, program := s.browse(h)
		if text := program("/operations/exceptions"); strings.Contains(text, "payout_waiting") {
			t.Errorf("at once a program reads %s", text)
		}

		s.Exec(`UPDATE org SET clock_offset = $1, clock_held = TRUE`, operations.PayoutLate.Microseconds())
		if text := program("/operations/exceptions"); !strings.Contains(text, "1 withdrawal waiting for approval") {
			t.Errorf("a day later by its clock a program reads %s", text)
		}
	})
}
