package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
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
