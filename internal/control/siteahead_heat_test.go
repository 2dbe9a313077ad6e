package control_test

import (
	"math"
	"testing"

	"flexd/internal/flex"
)

// TestSiteAhead_Heaters has a tank at a site: what its plan draws is among the site's devices, and passes its meter.
func TestSiteAhead_Heaters(t *testing.T) {
	each(t, "2026-01-13T17:00:00Z", func(h *fixture) {
		id := h.tank()
		h.Exec(`UPDATE asset SET capacity_wh = 10000 WHERE id = $1`, id.Bytes())
		h.runTanks()

		a, err := h.service.SiteAhead(h.Context(), h.site)
		if err != nil || len(a.Devices) != 1 || a.Devices[0].ID != id {
			t.Fatalf("devices %v, %v", a.Devices, err)
		}

		var drawn, metered, want float64
		for i := range a.Periods {
			p := &a.Periods[i]
			drawn += p.Devices[0] / 2
			metered += (p.Meter - p.Home) / 2
		}

		plan := h.tankPlan(id)
		day := flex.Span{From: at("2026-01-13T17:00:00Z"), To: at("2026-01-14T17:00:00Z")}
		for _, d := range plan.Draws() {
			want += d.Power.KW() * max(0, d.Meet(day).Len()).Hours()
		}
		if want == 0 || math.Abs(drawn-want) > 0.1 || math.Abs(metered-want) > 0.1 {
			t.Errorf("%g kWh drawn and %g metered, want the plan's %g", drawn, metered, want)
		}
	})
}
