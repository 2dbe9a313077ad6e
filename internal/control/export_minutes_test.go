package control_test

import (
	"testing"

	"flexd/internal/flex"
)

// TestLimits_EndWithinHalfHour has what an operator dispatched for the time after a limit, in the half-hour in which it ends, stay: it was
// not refused. A limit that lasts longer takes it back.
func TestLimits_EndWithinHalfHour(t *testing.T) {
	for _, c := range []struct {
		power     flex.Watts
		direction flex.Direction
	}{{-2000, flex.Export}, {2000, flex.Import}} {
		each(t, "2026-01-14T20:02:00Z", func(h *fixture) {
			id := h.homeSite()
			h.setCaps(flex.Caps{Groups: []flex.CapGroup{{Name: "north", Sites: []flex.SiteID{h.site}}}})
			h.listen()
			h.runBatteries()

			limit := func(to string) {
				l := exportLimit("north", 0, "2026-01-14T20:00:00Z", to)
				l.Direction = c.direction
				h.limitTo(l)
				for range 2 {
					h.runBatteries()
				}
			}

			limit("2026-01-14T20:10:00Z")
			h.order(c.power, "2026-01-14T20:10:00Z", "2026-01-14T20:30:00Z", id)
			h.runBatteries()
			const back = `SELECT count(*) FROM dispatch d JOIN dispatch_asset a ON a.event_id = d.event_id WHERE a.power_w = 0 AND d.own`
			if n := h.Count(back); n != 0 {
				t.Errorf("%d W after the limit's end are taken back %d times", c.power, n)
			}

			limit("2026-01-14T20:11:00Z")
			if n := h.Count(back); n != 1 {
				t.Errorf("%d W within the limit are taken back %d times", c.power, n)
			}
		})
	}
}
