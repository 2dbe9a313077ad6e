package home

import (
	"fmt"
	"slices"
	"testing"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
)

// planFrom is a battery's plan from a mode on, at a wear.
func planFrom(p battery.ModeProblem) ([]battery.Mode, []int) {
	to := make([]battery.Mode, len(p.Import))
	new(battery.Solver).SolveModes(&p, to)
	stored, _ := p.Run(to)

	return to, stored
}

// TestProblem_FlatRate: with one price for all half-hours nothing later is worth more than now, so a battery covers its
// home at once, whatever it did before and whatever wear counts.
func TestProblem_FlatRate(t *testing.T) {
	const slots = 64
	buy, sell := flat(slots, 28.0), flat(slots, 15.0)

	for _, load := range []flex.WattHours{37, 200, 333, 1200} {
		for _, wear := range []float64{0, 5} {
			for before := range battery.ModeCount {
				t.Run(fmt.Sprint(load, wear, before), func(t *testing.T) {
					b := Battery{Power: 3000, Capacity: 10_000, Wear: wear}
					p := b.Problem(buy, sell, flat(slots, load), flat(slots, flex.WattHours(0)), 3900, before, SalvageValue(buy))
					to, stored := planFrom(p)
					left := 3900

					for i := range to {
						left = max(p.Min, left-int(float64(load)/Efficiency))
						if stored[i] != left && left > p.Min {
							t.Fatalf("%d Wh after slot %d, want %d: %v", stored[i], i, left, to)
						}
					}
					if stored[slots-1] != left {
						t.Errorf("%d Wh in the end, want %d: %v", stored[slots-1], left, to)
					}
				})
			}
		}
	}
}

// TestProblem_FlatRateSun: what the roof gives beyond the home's use is stored and used, not sold for less.
func TestProblem_FlatRateSun(t *testing.T) {
	const slots = 96
	buy, sell := flat(slots, 28.0), flat(slots, 15.0)
	roof := flat(slots, flex.WattHours(0))
	for i := range roof {
		if i%48 > 20 && i%48 < 32 {
			roof[i] = 900
		}
	}

	for _, wear := range []float64{0, 5} {
		b := Battery{Power: 3000, Capacity: 10_000, Wear: wear}
		p := b.Problem(buy, sell, flat(slots, flex.WattHours(200)), roof, 3900, battery.ModeLock, SalvageValue(buy))
		to, stored := planFrom(p)
		self, _ := p.Run(flat(slots, battery.ModeSelfUse))
		if !slices.Equal(stored, self) {
			t.Errorf("wear %v: %v\n%v\nwant %v", wear, to, stored, self)
		}
	}
}

// TestProblem_Later: energy is kept where a later use is worth more, and a small difference is not.
func TestProblem_Later(t *testing.T) {
	b := Battery{Power: 3000, Capacity: 10_000}
	for dear, want := range map[float64]battery.Mode{
		28:    battery.ModeSelfUse,
		28.01: battery.ModeSelfUse, // saves less than a change of mode costs
		60:    battery.ModeLock,
	} {
		buy := append(flat(24, 28.0), flat(24, dear)...)
		p := b.Problem(buy, flat(48, 15.0), flat(48, flex.WattHours(300)), flat(48, flex.WattHours(0)), 3900, battery.ModeSelfUse, SalvageValue(buy))
		if to, stored := planFrom(p); to[6] != want {
			t.Errorf("dear %v: %v, %d Wh left", dear, to, stored[47])
		}
	}
}
