package control_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
)

// TestOwnLoad_ManySessions has a charger without a meter. A car charged in a night two weeks ago, and since then the charger has reported
// more than a hundred short stays. What the home itself drew in that night is not known, however many stays followed.
func TestOwnLoad_ManySessions(t *testing.T) {
	each(t, "2026-01-14T18:00:00Z", func(h *fixture) {
		day := flex.DayAt(at("2026-01-14T18:00:00Z"))
		h.Consent(day.Add(-30).Start())
		h.reads(h.Asset(h.site, flex.BoundaryMeter, 0), flex.BoundaryImportPower, day, atNight(7.5, 0.5))

		night := day.Add(-15).Start()
		stays := []flex.Span{{From: night, To: night.Add(5 * time.Hour)}}
		for n := range 120 {
			begin := day.Add(-10).Start().Add(time.Duration(n) * time.Hour)
			stays = append(stays, flex.Span{From: begin, To: begin.Add(time.Minute)})
		}

		h.Rows("session", strings.Fields("id org_id asset_id site_id number plugged_in_at plugged_out_at generation"), len(stays), func(i int) []any {
			id := flex.MakeID[struct{}](time.UnixMilli(2), [10]byte{8: byte(i >> 8), 9: byte(i)})
			return []any{id[:], h.Org.Bytes(), h.asset.Bytes(), h.site.Bytes(), 1 + i, stays[i].From.UnixMicro(), stays[i].To.UnixMicro(), 0}
		})
		h.QueueEnded()

		if got := h.ownLoad(day, 15, 4); got != -1 {
			t.Errorf("the home itself drew %d W while a car may have charged", got)
		}
		if got := h.ownLoad(day, 15, 14); got != 500 {
			t.Errorf("the home itself drew %d W while no car was there, not 500", got)
		}
	})
}

// TestOwnLoad_ReplacedMeter has a meter at the boundary that was replaced three days ago: what each of the two counted is known.
func TestOwnLoad_ReplacedMeter(t *testing.T) {
	each(t, "2026-01-14T18:00:00Z", func(h *fixture) {
		day := flex.DayAt(at("2026-01-14T18:00:00Z"))
		h.Consent(day.Add(-30).Start())
		old := h.Asset(h.site, flex.BoundaryMeter, 0)
		h.reads(old, flex.BoundaryImportPower, day, func(back, _ int) (float64, bool) { return 0.5, back > 3 })
		h.drop(old)
		h.reads(h.Asset(h.site, flex.BoundaryMeter, 0), flex.BoundaryImportPower, day, func(back, _ int) (float64, bool) { return 1, back <= 3 })

		for back, want := range map[int]int{1: 1000, 3: 1000, 4: 500} {
			if got := h.ownLoad(day, back, 4); got != want {
				t.Errorf("%d days ago the home drew %d W, not %d", back, got, want)
			}
		}
	})
}

// TestSolar_RoofTakenAway has a roof of 3 kW that was taken away: from beside one of 2 kW, which is all that is expected then, and in
// exchange for another inverter of the same panels, by which they give as much as before.
func TestSolar_RoofTakenAway(t *testing.T) {
	for _, c := range []struct {
		name  string
		kw    float64 // of the roof that is there
		since int     // for so many days
		want  flex.WattHours
	}{
		{"from beside another", 2, 20, 1000},
		{"from beside one that came a week before", 2, 10, 1000},
		{"in exchange", 3, 3, 1500},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, "2026-01-14T18:00:00Z", func(h *fixture) {
				day := flex.DayAt(at("2026-01-14T18:00:00Z"))
				old := h.Asset(h.site, flex.PVInverter, 3000)
				h.reads(old, flex.SolarPower, day, func(back, n int) (float64, bool) { return lit(n, 3), back > 3 })
				h.reads(h.Asset(h.site, flex.PVInverter, 3000), flex.SolarPower, day, func(back, n int) (float64, bool) { return lit(n, c.kw), back <= c.since })
				h.drop(old)
				h.Exec(`UPDATE former_asset SET gone_at = $2 WHERE id = $1`, old.Bytes(), day.Add(-3).Start().UnixMicro())

				o, err := h.service.Solar(h.Context(), h.Org, h.site)
				if err != nil {
					t.Fatal(err)
				}

				noon := flex.PeriodAt(at("2026-01-15T12:00:00Z"))
				for _, half := range o.HalfHours {
					if half.Period == noon && half.Energy != c.want {
						t.Errorf("%d Wh are expected at noon, not %d", half.Energy, c.want)
					}
				}
			})
		})
	}
}
