package forecast

import (
	"math"
	"math/rand/v2"
	"testing"

	"flexd/internal/flex"
)

// TestFleetHistory_AddBattery compares what random batteries could have moved in every window with giving, and charging, half-hour
// after half-hour from what they held as it began. Days of 46, 48 and 50 half-hours.
func TestFleetHistory_AddBattery(t *testing.T) {
	random := rand.New(rand.NewPCG(475, 1))
	for _, day := range []flex.Day{{Year: 2026, Month: 1, Dom: 15}, {Year: 2026, Month: 3, Dom: 29}, {Year: 2026, Month: 10, Dom: 25}} {
		for range 60 {
			b := &BatteryDay{Power: flex.Watts(1000 + random.IntN(4000)), Least: 1000, Most: 10_000, Efficiency: 0.95}
			for range day.Periods() {
				b.HalfHours = append(b.HalfHours, BatteryHalf{
					Known: random.IntN(30) > 0, Stored: flex.WattHours(1000 + random.IntN(9001)), Power: flex.Watts(random.IntN(4001) - 2000),
					Charges: random.IntN(4) > 0, Discharges: random.IntN(4) > 0,
				})
			}

			length := 1 + random.IntN(6)
			h := NewFleetHistory(day, 1, length)
			h.AddBattery(day, b)
			down, up := h.Came(TurnDown, day), h.Came(TurnUp, day)

			for from := range Slots + 1 - length {
				var periods []int // of the window
				for n := range day.Periods() {
					if slot := SlotOf(day.Period(n + 1)); slot >= from && slot < from+length {
						periods = append(periods, n)
					}
				}
				if len(periods) == 0 {
					continue
				}

				less, more := tried(b, periods)
				if math.Abs(down[from]-less) > 1e-6 || math.Abs(up[from]-more) > 1e-6 {
					t.Fatalf("%v, %d half-hours from %d on: %g and %g kW, not %g and %g", day, length, from, down[from], up[from], less, more)
				}
				if came := h.Came(FleetLoad, day)[from]; came != 0 {
					t.Fatalf("%g kW are load", came)
				}
			}
		}
	}
}

// tried gives all that a battery may, and then charges all, in some half-hours, and returns by how many kW that is less and more
// than planned.
func tried(b *BatteryDay, periods []int) (less, more float64) {
	const hours = 0.5
	give, charge := float64(b.HalfHours[periods[0]].Stored), float64(b.HalfHours[periods[0]].Stored)
	planned, given, drawn := 0.0, 0.0, 0.0

	for _, n := range periods {
		half := b.HalfHours[n]
		if !half.Known {
			return 0, 0
		}
		planned += float64(half.Power) * hours
		if half.Discharges {
			e := min(float64(b.Power)*hours, max(0, give-float64(b.Least))*b.Efficiency)
			given += e
			give -= e / b.Efficiency
		}

		if half.Charges {
			e := min(float64(b.Power)*hours, max(0, float64(b.Most)-charge)/b.Efficiency)
			drawn += e
			charge += e * b.Efficiency
		}
	}

	whole := float64(len(periods)) * hours * 1000

	return max(0, planned+given) / whole, max(0, drawn-planned) / whole
}
