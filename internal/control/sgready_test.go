package control_test

import (
	"fmt"
	"testing"
	"time"

	"flexd/internal/flex"
)

// longestLock plays a heat pump that is steered by states for some hours: it is planned again every few minutes on rooms that are read again, and
// each plan is accepted at once. It returns for how long it was in state 1 at a time.
func (h *fixture) longestLock(id flex.AssetID, every, lasting time.Duration, room func(i int) float64) (longest time.Duration, sent int) {
	h.Helper()
	locked := time.Duration(0)
	var generation int64
	for i := range int(lasting / every) {
		now := time.UnixMicro(h.micro.Load()).UTC()
		h.read(id, flex.RoomTemperature, now.Format(time.RFC3339), now.Format(time.RFC3339), room(i))
		h.runTanks()
		p := h.tankPlan(id)
		if p.Generation != generation {
			generation, sent = p.Generation, sent+1
		}

		for at := now; at.Before(now.Add(every)); at = at.Add(time.Minute) {
			off := false
			for k, s := range p.Steps {
				off = off || s.Contains(at) && p.Room.Signals[k] == flex.SGOff
			}
			if locked += time.Minute; !off {
				locked = 0
			}
			longest = max(longest, locked)
		}

		h.wait(every)
	}
	return longest, sent
}

// TestHeatPump_LockedOnce has a heat pump that is steered by SG Ready be in its state 1 for two hours at a time at most, whatever plans follow each other
// meanwhile: one that begins as another lock ends, or that takes the place of another within a lock, counts what was before.
func TestHeatPump_LockedOnce(t *testing.T) {
	for _, every := range []time.Duration{10 * time.Minute, flex.HalfHour, time.Hour} {
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			each(t, "2026-01-13T06:10:00Z", func(h *fixture) {
				id := h.pump(`{"low_mc":16000,"high_mc":24000,"setpoint_mc":20000,"steering":"sg_ready"}`)
				longest, sent := h.longestLock(id, every, 15*time.Hour, func(i int) float64 { return 18 + 0.7*float64(i%3) })
				t.Logf("in state 1 for %v, in %d plans", longest, sent)
				if longest > 2*time.Hour || longest < time.Hour || sent < 3 {
					t.Errorf("it is in state 1 for %v, in %d plans", longest, sent)
				}
			})
		})
	}
}
