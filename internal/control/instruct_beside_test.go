package control_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// quarter asks for less in so many minutes from an instant on.
func quarter(from string, minutes int, watts flex.Watts) flex.Instruction {
	in := peak(watts)
	in.From = at(from)
	in.To = in.From.Add(time.Duration(minutes) * time.Minute)

	return in
}

// TestInstruction_Beside: an instruction of 15 minutes holds its cars for its half-hours alone: another one of the
// evening calls them too. Each stays when the other is stopped.
func TestInstruction_Beside(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		assets := h.evening(3, 22.2) // three hours each
		const first, second = "2026-01-15T17:40:00Z", "2026-01-15T18:45:00Z"
		called := func(in flex.Instruction, calls, busy int) *control.Preview {
			h.Helper()
			p := h.send(in)
			if len(p.Assets) != calls || p.NumBusy != busy {
				h.Errorf("%s calls %d, %d are busy, want %d and %d", in.From, len(p.Assets), p.NumBusy, calls, busy)
			}
			return p
		}

		stands := func(when string, inFirst, inSecond int) {
			h.Helper()
			if a, b := h.drawing(assets, first), h.drawing(assets, second); a != inFirst || b != inSecond {
				h.Errorf("%s: %d and %d draw, want %d and %d", when, a, b, inFirst, inSecond)
			}
			if n := h.short(assets, 22.2); n > 0 {
				h.Errorf("%s: %d needs are not met", when, n)
			}
		}

		a := called(quarter("2026-01-15T17:35:00Z", 15, -22_200), 3, 0)
		stands("the first", 0, 3)
		called(quarter("2026-01-15T17:50:00Z", 10, -22_200), 0, 3) // in the same half-hour
		b := called(quarter("2026-01-15T18:30:00Z", 30, -22_200), 3, 0)
		stands("both", 0, 0)

		if _, err := h.service.StopInstruction(h.Context(), h.Org, a.ID, "Ann"); err != nil {
			h.Fatal(err)
		}
		stands("the first is stopped", 3, 0)

		called(quarter("2026-01-15T17:35:00Z", 15, -22_200), 3, 0) // before the other in time
		stands("the first again", 0, 0)
		if _, err := h.service.StopInstruction(h.Context(), h.Org, b.ID, "Ann"); err != nil {
			h.Fatal(err)
		}
		if n := h.drawing(assets, first); n != 0 {
			h.Errorf("%d draw in the first when the second is stopped", n)
		}
		if _, err := h.service.StopInstructions(h.Context(), h.Org, "Ann"); err != nil {
			h.Fatal(err)
		}
		stands("none", 3, 3)

		if findings, err := h.db.Verify(h.Context()); err != nil || len(findings) > 0 {
			h.Errorf("verify: %v, %v", findings, err)
		}
	})
}

// All instructions are stopped while another process sends one: that one is stopped, too.
func TestInstruction_StopAllBeside(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := open(t, url, "2026-01-15T17:00:00Z")
		h.evening(3, 22.2)
		locks := storetest.At(t, h.db, url)
		done := make(chan error, 1)

		var stopped int
		err := h.db.Write(t.Context(), h.Org, func(tx *store.Tx) error {
			if _, err := h.service.InstructWithin(t.Context(), tx, peak(-7400)); err != nil {
				return err
			}
			go func() {
				var err error
				stopped, err = h.service.StopInstructions(context.Background(), h.Org, "Bob")
				done <- err
			}()

			for h.db.Engine() == "postgres" && len(done) == 0 {
				if locks.Count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
					break
				}
				runtime.Gosched()
			}
			return nil
		})

		if err = errors.Join(err, <-done); err != nil {
			t.Fatal(err)
		}
		if n := h.Count(`SELECT count(*) FROM instruction WHERE stopped_at IS NULL`); n != 0 || stopped != 1 {
			t.Errorf("%d stopped, %d are active still", stopped, n)
		}
	})
}
