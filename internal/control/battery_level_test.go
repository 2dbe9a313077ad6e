package control

import (
	"runtime"
	"testing"
	"time"

	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestExpectedLevel_Old projects a plan over 96 half-hours and no further, and asks nothing of a battery that was never planned, however long ago
// its plan's records say that it began.
func TestExpectedLevel_Old(t *testing.T) {
	began := flex.PeriodAt(time.Date(2026, 1, 14, 18, 0, 0, 0, time.UTC))
	device := home.Battery{Power: 3000, Capacity: 10_000}
	plan := &store.BatteryPlan{StoredAt: began, Stored: 5000, PlannedAt: began.Start()}

	for name, c := range map[string]struct {
		plan *store.BatteryPlan
		at   time.Time
		want bool
	}{
		"as it begins":      {plan, began.Start(), true},
		"before":            {plan, began.Start().Add(-time.Hour), true},
		"96 half-hours":     {plan, began.Add(96).Start(), true},
		"a second more":     {plan, began.Add(96).Start().Add(time.Second), false},
		"never planned":     {&store.BatteryPlan{}, began.Start(), false},
		"planned years ago": {&store.BatteryPlan{PlannedAt: time.Unix(0, 0)}, began.Start(), false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, known := expectedLevel(c.plan, device, c.at, false); known != c.want {
				t.Errorf("known: %v", known)
			}

			// A list of every half-hour since 1970 is one of a million.
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			expectedLevel(c.plan, device, c.at, false)
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1_000_000 {
				t.Errorf("%d bytes were allocated", allocated)
			}
		})
	}
}
