package console_test

import (
	"slices"
	"testing"
	"time"

	"flexd/internal/console"
	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
)

// TestBatteryReason_Cap: a battery with more power than a cap is empty all day. It waits for
// the cap while energy is cheap, and for nothing at times at which it would not charge anyway.
func TestBatteryReason_Cap(t *testing.T) {
	first := flex.PeriodAt(time.Date(2026, 1, 15, 5, 0, 0, 0, time.UTC))
	w := control.BatteryWhy{Power: 5000, Capacity: 10_000}
	for i, buy := range []float64{9, 28, 28} {
		w.Periods = append(w.Periods, control.BatteryPeriod{Period: first.Add(i), Mode: battery.ModeLock, Buy: buy, Sell: 5, Waits: control.WaitsForCap})
	}

	want := []string{"waits, because a cap leaves it less than its full power", "neither storing nor using would gain anything"}
	if got := console.BatteryReasons(w); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if w.Periods[2].Waits != control.WaitsForCap {
		t.Error("the plan itself was changed")
	}
}
