package control_test

import (
	"slices"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// BenchmarkExportLimit plans 200 batteries behind one feeder whose export is limited, and says what one takes.
func BenchmarkExportLimit(b *testing.B) {
	const batteries = 200
	for _, limited := range []bool{false, true} {
		b.Run(map[bool]string{false: "free", true: "limited"}[limited], func(b *testing.B) {
			h := open(b, storetest.SQLite(b), "2026-01-14T18:10:00Z")
			h.publish("2026-01-14T18:00:00Z", slices.Repeat([]float64{100, 500}, 96)...)
			g := flex.CapGroup{Name: "north"}
			for range batteries {
				h.site = h.Site(flex.FullScheduleMethod)
				g.Sites = append(g.Sites, h.site)
				h.tariff(h.battery(), flex.Tariff{Type: flex.DynamicTariff})
			}

			h.setCaps(flex.Caps{Groups: []flex.CapGroup{g}})
			h.runBatteries()
			if limited {
				limit := exportLimit("north", 90_000, "2026-01-14T18:00:00Z", "2026-01-16T18:00:00Z")
				if err := h.service.ImportLimits(b.Context(), h.Org, []flex.CapLimit{limit}); err != nil {
					b.Fatal(err)
				}
			}

			for b.Loop() {
				h.Exec(`UPDATE battery_plan SET again = TRUE`)
				if n := h.runBatteries(); n < batteries {
					b.Fatalf("%d plans", n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N*batteries), "ms/battery")
		})
	}
}
