package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestHome_BaseLoad_Heat has a heater that draws 1.2 of a home's 1.7 kW: what it was metered to take is not the home's
// own load, as the plan of the heater counts under the fuse by itself.
func TestHome_BaseLoad_Heat(t *testing.T) {
	cases := []struct {
		name    string
		heater  flex.AssetType
		from    int // of the days back, the first and the last that the heater was metered on
		to      int
		missing int        // half-hours of each of these days of which it reports nothing
		drawn   flex.Micro // by the heater
		want    float64    // kW
	}{
		{"a heat pump", flex.HeatPump, 20, 1, 0, 1_200_000, 0.5},
		{"a tank", flex.HotWaterTank, 20, 1, 0, 1_200_000, 0.5},
		{"some half-hours missing", flex.HeatPump, 20, 1, 20, 1_200_000, 0.5},
		{"metered for a week", flex.HeatPump, 7, 1, 0, 1_200_000, 0.5},
		{"metered since yesterday", flex.HeatPump, 2, 1, 0, 1_200_000, 2},
		{"never metered", flex.HeatPump, 0, 1, 0, 0, 2},
		{"metered to take more than all", flex.HeatPump, 20, 1, 0, 2_500_000, 0.001}, // it is known that it draws nothing
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			one(t, "2026-01-14T18:00:00Z", func(h *fixture) {
				car := h.fuse(10, 7400)[0]
				day := flex.DayAt(at("2026-01-14T18:00:00Z"))
				h.Consent(day.Add(-30).Start())
				h.draws(h.Asset(h.site, flex.BoundaryMeter, 0), day, 1700)

				heater := h.Asset(h.site, c.heater, 3000)
				var rs []flex.Reading
				for k := c.from; k >= c.to; k-- {
					for n := 1 + c.missing; n <= 48; n++ {
						rs = append(rs, flex.Reading{AssetID: heater, Span: day.Add(-k).Period(n).Span(), Label: flex.HeatPower, Value: c.drawn})
					}
				}
				h.write(func(tx *store.Tx) error { return tx.PutReadings(h.Context(), rs) })

				h.wait(5 * time.Minute)
				h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(22, flex.Minimise)})
				a, err := h.service.SiteAhead(h.Context(), h.site)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range a.Periods {
					if p.Home != c.want {
						t.Fatalf("%g kW are kept for the home in %v, not %g", p.Home, p.Span(), c.want)
					}
				}
			})
		})
	}
}
