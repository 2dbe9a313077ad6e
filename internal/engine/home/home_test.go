package home

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
)

func flat[T any](n int, v T) []T { return slices.Repeat([]T{v}, n) }

// TestHomeBatteryShifts: with a cheap night and a dear evening the battery charges in the
// one and covers the load in the other.
func TestHomeBatteryShifts(t *testing.T) {
	b := Battery{Power: 3000, Capacity: 10_000}
	buy := append(flat(12, 9.0), flat(36, 28.0)...)
	p := b.Problem(buy, flat(48, 5.0), flat(48, flex.WattHours(250)), flat(48, flex.WattHours(0)), 1000, battery.ModeSelfUse, SalvageValue(buy))
	to := make([]battery.Mode, 48)
	f := new(battery.Solver).SolveModes(&p, to)
	stored, pence := p.Run(to)
	if peak := slices.Max(stored); peak < 9900 || peak != stored[11] && slices.Index(stored, peak) > 12 {
		t.Errorf("stored %v", stored)
	}

	sum := 0.0
	for _, c := range pence {
		sum += c
	}
	idle, _ := p.Run(flat(48, battery.ModeLock))
	if idle[47] != 1000 || sum > 0.75*(12*9+36*28)/4 || f.Bound > f.Cost+1e-9 {
		t.Errorf("%.1f p, bound %.1f, idle ends at %d", sum, f.Bound, idle[47])
	}
}

func TestHomeBatteryFlatPrice(t *testing.T) {
	b := Battery{Power: 3000, Capacity: 10_000}
	p := b.Problem(flat(48, 28.0), flat(48, 15.0), flat(48, flex.WattHours(250)), flat(48, flex.WattHours(0)), 5000, battery.ModeSelfUse, SalvageValue(flat(48, 28.0)))
	to := make([]battery.Mode, 48)
	new(battery.Solver).SolveModes(&p, to)
	for i, m := range to {
		if m == battery.ModeCharge || m == battery.ModeDischarge {
			t.Fatalf("with one price for all half-hours there is nothing to %v for, as in slot %d", m, i)
		}
	}
}

func TestSpare(t *testing.T) {
	for _, c := range []struct {
		buy  []float64
		want float64
	}{
		{nil, 0}, {[]float64{20}, 19}, {[]float64{40, 20, 30, 50}, 19}, {[]float64{40, 20, 30, 50, 10}, 14.25}, {[]float64{-30, 10, 20, 30}, 0},
	} {
		if got := SalvageValue(c.buy); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%v: %v, want %v", c.buy, got, c.want)
		}
	}
}

// TestRunKeepsItsBounds: no mode ever takes the battery beyond where it may be, and each
// costs what the meter says.
func TestRunKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Battery{Power: flex.Watts(rapid.IntRange(0, 10_000).Draw(t, "W")), Capacity: flex.WattHours(rapid.IntRange(0, 20_000).Draw(t, "Wh"))}
		n := rapid.IntRange(1, 48).Draw(t, "slots")
		draw := func(name string, most int) []flex.WattHours {
			return rapid.SliceOfN(rapid.Map(rapid.IntRange(0, most), func(i int) flex.WattHours { return flex.WattHours(i) }), n, n).Draw(t, name)
		}

		load, pv := draw("load", 3000), draw("pv", 3000)
		prices := rapid.SliceOfN(rapid.Float64Range(-50, 100), n, n).Draw(t, "prices")
		p := b.Problem(prices, prices, load, pv, flex.WattHours(rapid.IntRange(-10, 30_000).Draw(t, "stored")), battery.ModeLock, 0)
		to := make([]battery.Mode, n)
		for i := range to {
			to[i] = battery.Mode(rapid.IntRange(0, int(battery.ModeCount)-1).Draw(t, "mode"))
		}
		stored, pence := p.Run(to)
		least, most := b.Usable()
		before := p.Init

		for i, s := range stored {
			if s > max(before, int(most)) || s < min(before, int(least)) {
				t.Fatalf("slot %d: %d after %d, in %d to %d", i, s, before, least, most)
			}
			net := float64(load[i] - pv[i])
			if y := float64(s - before); y > 0 {
				net += y / Efficiency
			} else {
				net += y * Efficiency
			}

			if want := net * prices[i] / 1000; pence[i] < want-1e-6 || pence[i] > want+1e-6 {
				t.Fatalf("slot %d costs %v, want %v", i, pence[i], want)
			}
			before = s
		}
	})
}
