package operations

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestOutlook_Causes has a car of 7.4 kW, plugged in at 18:00 and ready by 07:00, that may
// charge from 00:00 to 05:00: 37 kWh off-peak, 96.2 kWh in all.
func TestOutlook_Causes(t *testing.T) {
	now := time.Date(2026, 1, 14, 18, 0, 0, 0, time.UTC)
	midnight := now.Add(6 * time.Hour)
	ready := now.Add(13 * time.Hour)
	full := []flex.Step{{Span: flex.Span{From: midnight, To: midnight.Add(5 * time.Hour)}, Limit: flex.NoLimit}}
	half := []flex.Step{{Span: full[0].Span, Limit: 3700}}

	for name, c := range map[string]struct {
		need    flex.WattHours
		steps   []flex.Step
		short   bool
		cause   Cause
		missing flex.WattHours
	}{
		"the need is met":               {37_000, full, false, 0, 0},
		"a minute of it is missing":     {37_000 + 123, full, false, 0, 0},
		"more than a minute is missing": {37_000 + 124, full, true, ShortOfOffPeak, 124},
		"off-peak does not suffice":     {50_000, full, true, ShortOfOffPeak, 13_000},
		"nothing would suffice":         {100_000, full, true, ShortOfTime, 63_000},
		"a cap leaves half":             {30_000, half, true, ShortOfHeadroom, 11_500},
	} {
		t.Run(name, func(t *testing.T) {
			f := newOutlook(now)
			f.add(&store.Plugged{
				AssetID: flex.AssetID{1}, PluggedInAt: now, Planned: true, ReadyBy: ready, Need: c.need, Power: 7400, Steps: c.steps,
				Tariff: flex.Tariff{OffPeak: "00:00-05:00", Zone: "Europe/London", Type: flex.DualRate},
			})

			if (f.Short() == 1) != c.short {
				t.Fatalf("short: %d", f.Short())
			}
			if !c.short {
				return
			}
			if got := f.short[c.cause]; got.count != 1 || got.energy != c.missing || got.worst[0].id != (flex.AssetID{1}) {
				t.Errorf("cause %d: %+v of %+v", c.cause, got, f.short)
			}
		})
	}
}

// TestOutlook_AfterReadyBy has a car that lacks energy and stays plugged in: it is short until ready-by, and not later.
func TestOutlook_AfterReadyBy(t *testing.T) {
	plugged := time.Date(2026, 1, 14, 18, 0, 0, 0, time.UTC)
	ready := plugged.Add(2 * time.Hour)
	for now, want := range map[time.Time]int{
		plugged:              1,
		ready.Add(-1):        1,
		ready:                0,
		ready.Add(time.Hour): 0,
	} {
		f := newOutlook(now)
		f.add(&store.Plugged{
			AssetID: flex.AssetID{1}, PluggedInAt: plugged, Planned: true, ReadyBy: ready, Need: 60_000, Power: 7400,
			Steps:  []flex.Step{{Span: flex.Span{From: plugged, To: ready}}},
			Tariff: flex.Tariff{OffPeak: "00:00-05:00", Zone: "Europe/London", Type: flex.DualRate},
		})

		if got := f.Short(); got != want {
			t.Errorf("at %v: %d are short, not %d", now, got, want)
		}
	}
}

// TestShortfall_Worst keeps those that lack most, whatever the order in which they come, and
// counts them all.
func TestShortfall_Worst(t *testing.T) {
	const n = 10 * examplesMax
	for _, step := range []int{1, 7, n - 1} {
		var whole shortfall
		for part := range 2 {
			var s shortfall
			for i := part; i < n; i += 2 {
				missing := i * step % n
				s.add(flex.AssetID{byte(missing)}, flex.WattHours(missing))
			}
			whole.join(s)
		}

		if whole.count != n || whole.energy != n*(n-1)/2 || len(whole.worst) != examplesMax {
			t.Errorf("step %d: %d assets, %d Wh, %d named", step, whole.count, whole.energy, len(whole.worst))
		}
		for i, w := range whole.worst {
			if want := flex.WattHours(n - 1 - i); w.missing != want {
				t.Errorf("step %d: place %d lacks %d Wh, want %d", step, i, w.missing, want)
			}
		}
	}
}
