package control_test

import (
	"slices"
	"strings"
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// spoils has the record of a battery's plan be one that cannot be read.
func (h *fixture) spoils(id flex.AssetID) {
	h.Helper()
	h.Exec(`UPDATE battery_plan SET guess_read = 'broken' WHERE asset_id = $1`, id.Bytes())
}

// mends has it be one that can be read again.
func (h *fixture) mends(id flex.AssetID) {
	h.Helper()
	h.Exec(`UPDATE battery_plan SET guess_read = '' WHERE asset_id = $1`, id.Bytes())
}

// runsBut plans the batteries that are due, of which one cannot be read, and returns how many are planned.
func (h *fixture) runsBut(broken flex.AssetID) int {
	h.Helper()
	r, err := h.service.PlanBatteries(h.Context())
	if err == nil || !strings.Contains(err.Error(), broken.String()) {
		h.Errorf("the job says %v, and does not name %v", err, broken)
	}

	return r.Count
}

// TestBatteries_Unread has the record of one of three batteries be one that cannot be read, in each place among them: the others are
// planned together as if it covered nothing, and the job names it.
func TestBatteries_Unread(t *testing.T) {
	for broken := range 3 {
		each(t, "2026-01-14T18:00:00Z", func(h *fixture) {
			ids := []flex.AssetID{h.sized(3000, 10_000, 60), h.sized(3000, 8000, 60), h.sized(2000, 6000, 60)}
			h.runBatteries()
			h.spoils(ids[broken])

			rest := append(append([]flex.AssetID{}, ids[:broken]...), ids[broken+1:]...)
			h.wait(flex.HalfHour)
			if n := h.runsBut(ids[broken]); n != 2 {
				t.Errorf("%d plans", n)
			}
			if d := h.day(rest...); d.served < 1 || d.over > 0.02 {
				t.Errorf("the other two serve %.2f kWh, and give %.2f beyond the load", d.served, d.over)
			}

			h.mends(ids[broken])
			h.wait(flex.HalfHour)
			if n := h.runBatteries(); n != 3 {
				t.Errorf("once it can be read there are %d plans", n)
			}
		})
	}
}

// TestBatteries_UnreadFuse has one of two batteries be unreadable behind a fuse that carries one of them: it counts with its full power, so
// that the other one does not charge. A car that is plugged in at the site gets its schedule.
func TestBatteries_UnreadFuse(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		h.setSupply(5000, 5000)
		ids := []flex.AssetID{h.sized(3000, 10_000, 10), h.sized(3000, 10_000, 10)}
		h.runBatteries()
		if h.chargeSpans(ids[0])+h.chargeSpans(ids[1]) == 0 {
			t.Fatal("no battery charges: nothing is shown")
		}

		h.spoils(ids[0])
		h.wait(flex.HalfHour)
		h.runsBut(ids[0])
		if n := h.chargeSpans(ids[1]); n != 0 {
			t.Errorf("the other one charges in %d half-hours", n)
		}

		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(4, flex.Minimise)})
		if len(h.charges()) == 0 {
			t.Error("the car is not charged")
		}

		h.mends(ids[0]) // the checks at the end read it
	})
}

// chargeSpans is in how many spans of its schedule a battery charges.
func (h *fixture) chargeSpans(id flex.AssetID) int {
	h.Helper()
	return strings.Count(h.sentTo(id), "CHARGE") - strings.Count(h.sentTo(id), "DISCHARGE")
}

// TestBatteries_UnreadSchedule has one of two batteries be unreadable behind a fuse: the other one's client gets its schedule, with the charging
// of the half-hours that are fixed.
func TestBatteries_UnreadSchedule(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		h.setSupply(5000, 5000)
		ids := []flex.AssetID{h.sized(3000, 10_000, 10), h.sized(3000, 10_000, 10)}
		h.runBatteries()
		if h.chargeSpans(ids[1]) == 0 {
			slices.Reverse(ids)
		}

		before, _, err := h.service.BatterySteps(h.Context(), h.Org, ids[1])
		if err != nil || h.chargeSpans(ids[1]) == 0 {
			t.Fatalf("it is sent %v, %v: nothing is shown", before, err)
		}

		h.spoils(ids[0])
		after, _, err := h.service.BatterySteps(h.Context(), h.Org, ids[1])
		if err != nil || !slices.Equal(after, before) {
			t.Errorf("it is sent %v, and before that %v: %v", after, before, err)
		}

		h.mends(ids[0]) // the checks at the end read it
	})
}
