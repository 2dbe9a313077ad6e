package operations

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestOutlook_Fuse has two cars of 7.4 kW at one site, read by two parts, which charge one after the other from 02:00
// on and could begin at midnight: together they could draw 14.8 kW, and no more than their main fuse carries, of 3 x 25 A
// 5.75 kW on each phase.
func TestOutlook_Fuse(t *testing.T) {
	now := time.Date(2026, 1, 14, 18, 0, 0, 0, time.UTC)
	midnight := now.Add(6 * time.Hour)
	site := flex.SiteID{9}
	onL1 := flex.Wiring{Phases: 1, Phase: 1}

	for name, c := range map[string]struct {
		fuse           flex.Watts // 0 for one that was not set
		phases         int
		wired          [2]flex.Wiring
		first, planned float64 // the most, in the first half-hour after midnight and after 02:00
	}{
		"not set":                   {0, 0, [2]flex.Wiring{}, 14.8, 14.8},
		"of 10 kW":                  {10_000, 0, [2]flex.Wiring{}, 10, 10},
		"less than what is planned": {5_000, 0, [2]flex.Wiring{}, 5, 7.4},
		"both on one phase":         {17_250, 3, [2]flex.Wiring{onL1, onL1}, 5.7, 7.4},
		"nobody knows the phases":   {17_250, 3, [2]flex.Wiring{{Phases: 1}, {Phases: 1}}, 5.7, 7.4},
		"on two phases":             {17_250, 3, [2]flex.Wiring{onL1, {Phases: 1, Phase: 2}}, 11.5, 13.1},
		"on three phases":           {17_250, 3, [2]flex.Wiring{{Phases: 3}, {Phases: 3}}, 14.8, 14.8},
	} {
		t.Run(name, func(t *testing.T) {
			whole := newOutlook(now)

			for i := range 2 {
				part := newOutlook(now)
				id := flex.AssetID{byte(i + 1)}
				if c.fuse > 0 {
					part.behind = map[flex.AssetID]store.FusedCar{
						id: {AssetID: id, Site: site, Fuse: c.fuse, Phases: c.phases, Wired: c.wired[i]},
					}
				}

				begins := midnight.Add(time.Duration(2+i) * time.Hour)
				part.add(&store.Plugged{
					AssetID: id, PluggedInAt: now, Planned: true, ReadyBy: now.Add(13 * time.Hour), Need: 7400, Power: 7400,
					Steps:  []flex.Step{{Span: flex.Span{From: begins, To: begins.Add(time.Hour)}, Limit: flex.NoLimit}},
					Tariff: flex.Tariff{OffPeak: "00:00-05:00", Zone: "Europe/London", Type: flex.DualRate},
				})
				whole.join(part)
			}

			whole.keepFuses()
			most := map[time.Time]float64{}
			for _, l := range whole.Lines() {
				most[l.Start] = l.Highest
			}

			if got := most[midnight]; got != c.first {
				t.Errorf("%v kW at midnight, not %v", got, c.first)
			}
			if got := most[midnight.Add(2*time.Hour)]; got != c.planned {
				t.Errorf("%v kW at 02:00, not %v", got, c.planned)
			}
		})
	}
}
