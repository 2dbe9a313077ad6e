package control_test

import (
	"fmt"
	"slices"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// BenchmarkOffer prices batteries for an offer, behind a feeder that nobody limits, under a cap, and behind one whose export is limited,
// and says what one takes.
func BenchmarkOffer(b *testing.B) {
	for _, under := range []string{"free", "cap", "limit"} {
		for _, batteries := range []int{100, 200, 400} {
			b.Run(fmt.Sprintf("%s/%d", under, batteries), func(b *testing.B) { benchOffer(b, under, batteries) })
		}
	}
}

func benchOffer(b *testing.B, under string, batteries int) {
	h := open(b, storetest.SQLite(b), "2026-01-14T18:10:00Z")
	h.publish("2026-01-14T18:00:00Z", slices.Repeat([]float64{100, 500}, 96)...)
	h.listen()
	g := flex.CapGroup{Name: "north"}
	if under == "cap" {
		g.Power = new(flex.Watts(10_000_000))
	}

	for range batteries {
		h.site = h.Site(flex.FullScheduleMethod)
		g.Sites = append(g.Sites, h.site)
		h.tariff(h.battery(), flex.Tariff{Type: flex.DynamicTariff})
	}

	h.setCaps(flex.Caps{Groups: []flex.CapGroup{g}})
	h.runBatteries()
	if under == "limit" {
		limit := exportLimit("north", 10_000_000, "2026-01-14T18:00:00Z", "2026-01-16T18:00:00Z")
		if err := h.service.ImportLimits(b.Context(), h.Org, []flex.CapLimit{limit}); err != nil {
			b.Fatal(err)
		}
	}

	window := flex.Span{From: at("2026-01-14T22:00:00Z"), To: at("2026-01-14T23:00:00Z")}
	for b.Loop() {
		err := h.db.Read(b.Context(), h.Org, func(tx *store.Tx) error {
			moves, err := h.service.DeviceMoves(b.Context(), tx, &flex.Instruction{Span: window, Service: "dno", Change: -1})
			if err == nil && len(moves) < batteries/2 {
				err = fmt.Errorf("%d batteries of %d move", len(moves), batteries)
			}

			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*batteries), "µs/battery")
}
