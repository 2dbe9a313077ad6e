package control_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// follows has instructions be followed after a while, and so many assets be called or released.
func (h *fixture) follows(after time.Duration, want int) {
	h.Helper()
	h.wait(after)
	if r, err := h.service.FollowInstructions(h.Context()); err != nil || r.Count != want {
		h.Errorf("%d changed, not %d: %v", r.Count, want, err)
	}
}

// TestInstruction_Freed has control of a called car end while it stays plugged in. It charges as it likes from then on: another is
// called in its place, and the report expects of it what it was to draw without.
func TestInstruction_Freed(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		h.evening(5, 22.2)
		sent := h.send(peak(-13_000))
		for _, a := range sent.Assets {
			h.at(a.AssetID).accept()
		}

		h.goTo("2026-01-15T17:45:00Z")
		h.follows(0, 0)
		gone := sent.Assets[0].AssetID
		h.write(func(tx *store.Tx) error { return tx.StopScheduling(h.Context(), gone) })
		h.follows(5*time.Second, 1)

		report, err := h.service.ReportInstruction(h.Context(), h.Org, sent.ID)
		if err != nil || len(report.Assets) != 3 {
			h.Fatal(report, err)
		}

		for _, a := range report.Assets {
			let := !a.ReleasedAt.IsZero()
			draws := a.Expected[1] > 0
			if let != (a.AssetID == gone) || draws != let {
				h.Errorf(
					"%v was let go: %v, and is expected to draw %v",
					a.AssetID,
					let,
					a.Expected[1],
				)
			}
		}
	})
}

// TestInstruction_PluggedInAgain has a called car leave, and a car come to its charger while the instruction lasts: it leaves the rest of
// the time out too, until that is stopped.
func TestInstruction_PluggedInAgain(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		assets := h.evening(2, 22.2)
		sent := h.send(peak(-14_000))
		if len(sent.Assets) != 2 {
			h.Fatalf("%d are called", len(sent.Assets))
		}

		h.goTo("2026-01-15T17:40:00Z")
		h.at(assets[0]).event(control.Event{Kind: control.PlugOut})
		h.wait(10 * time.Minute)
		h.event(control.Event{Kind: control.PlugIn, Intent: need(22.2, flex.Minimise), Tariff: &flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate}})
		if n := h.drawing(assets, "2026-01-15T18:00:00Z"); n != 0 {
			h.Errorf("%d draw in the time of the instruction", n)
		}
		if n := h.short(assets[:1], 22.2); n > 0 {
			h.Error("the need is not met")
		}

		if _, err := h.service.StopInstruction(h.Context(), h.Org, sent.ID, "Bob"); err != nil {
			h.Fatal(err)
		}
		if n := h.drawing(assets, "2026-01-15T18:00:00Z"); n != 2 {
			h.Errorf("%d draw after it was stopped, not 2", n)
		}
	})
}

// TestInstruction_PluggedInUrgently has a car come at 17:50, for 20:00, to a charger whose car was called until 19:00: what it needs, and
// charge-now, go before the instruction.
func TestInstruction_PluggedInUrgently(t *testing.T) {
	for _, c := range []struct {
		name  string
		first float64 // kWh
		then  control.Event
		draws int // at 18:00
		need  float64
	}{
		{"it can wait", 7.4, control.Event{}, 0, 7.4},
		{"it needs all the time", 16, control.Event{}, 1, 16},
		{"it needs more of it than there is left", 7.4, control.Event{Kind: control.IntentUpdate, Intent: need(7.4*13, flex.Minimise)}, 1, 7.4 * 13},
		{"charge-now", 7.4, control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-15T18:30:00Z")}, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
				assets := h.evening(1, 22.2)
				if sent := h.send(peak(-7_000)); len(sent.Assets) != 1 {
					h.Fatalf("%d are called", len(sent.Assets))
				}

				h.goTo("2026-01-15T17:40:00Z")
				h.event(control.Event{Kind: control.PlugOut})
				h.wait(10 * time.Minute)
				by := flex.WallTime(20 * time.Hour)
				in := need(c.first, flex.Minimise)
				in.ReadyByLocal = &by
				h.event(control.Event{Kind: control.PlugIn, Intent: in, Tariff: &flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate}})
				if c.then.Kind != "" {
					h.wait(time.Minute)
					h.event(c.then)
				}

				if n := h.drawing(assets, "2026-01-15T18:00:00Z"); n != c.draws {
					h.Errorf(
						"%d draw at 18:00, not %d: %v",
						n,
						c.draws,
						h.look().Current.Steps,
					)
				}
				if h.short(assets, c.need) != 0 {
					h.Errorf("its need is not met: %v", h.look().Current.Steps)
				}
			})
		})
	}
}

// TestInstruction_PlannedAgain has a called car be planned again: nobody is called in its place as long as its client has the time to
// accept that.
func TestInstruction_PlannedAgain(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		h.evening(5, 22.2)
		sent := h.send(peak(-13_000))
		for _, a := range sent.Assets {
			h.at(a.AssetID).accept()
		}

		h.goTo("2026-01-15T17:40:00Z")
		h.at(sent.Assets[0].AssetID).event(control.Event{Kind: control.IntentUpdate, Intent: need(29.6, flex.Minimise)})
		h.follows(5*time.Second, 0)
		h.follows(10*time.Second, 1)
	})
}

// TestInstruction_NeverAccepted has a called car accept nothing, and another be called in its place. Planned again, the first has the time to
// accept that, but as long as it has not, the one that follows is not released.
func TestInstruction_NeverAccepted(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		h.evening(5, 22.2)
		sent := h.send(peak(-13_000))
		h.at(sent.Assets[0].AssetID).accept()
		h.follows(15*time.Second, 1)

		report, err := h.service.ReportInstruction(h.Context(), h.Org, sent.ID)
		if err != nil || len(report.Assets) != 3 {
			h.Fatal(report, err)
		}

		silent := sent.Assets[1].AssetID
		for _, a := range report.Assets {
			if a.AssetID != silent && a.AssetID != sent.Assets[0].AssetID {
				h.at(a.AssetID).accept()
			}
		}
		h.follows(5*time.Second, 0)

		h.at(silent).event(control.Event{Kind: control.IntentUpdate, Intent: need(29.6, flex.Minimise)})
		h.follows(5*time.Second, 0)
		h.follows(10*time.Second, 0)

		h.at(silent).accept()
		h.follows(5*time.Second, 1)
	})
}

// TestInstruction_Halted has nobody accept what they are called with, as pushes are halted: nobody else is called, as nobody else would get
// to know it. After the halt they have the time to accept it.
func TestInstruction_Halted(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		h.evening(5, 22.2)
		sent := h.send(peak(-13_000))
		halts := func(do func(*store.All) error) {
			h.Helper()
			if err := h.db.WriteAll(h.Context(), do); err != nil {
				h.Fatal(err)
			}
		}

		halts(func(all *store.All) error {
			return all.Halt(h.Context(), store.Halt{Who: "Ann", Reason: "a fault"})
		})
		h.follows(15*time.Second, 0)
		h.follows(time.Minute, 0)

		says := func(want bool) {
			h.Helper()
			p, err := h.service.PreviewInstruction(h.Context(), h.Org, peak(-3000))
			if err != nil {
				h.Fatal(err)
			}
			if why := p.Why(); strings.Contains(why, "pushes are halted") != want {
				h.Errorf("a preview says %q", why)
			}
		}

		says(true)
		halts(func(all *store.All) error {
			return all.Resume(h.Context(), store.HaltScope{})
		})
		says(false)
		h.follows(5*time.Second, 0)
		h.at(sent.Assets[0].AssetID).accept()
		h.follows(10*time.Second, 1) // the second has not accepted
	})
}
