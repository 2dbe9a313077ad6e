package forecast

import (
	"math"
	"math/rand/v2"
	"testing"

	"flexd/internal/flex"
)

// TestFleetHistory_AddHeater adds random heaters and reads every window back, on days of 46, 48 and 50 half-hours: what is known of the
// first half-hour in it, for as many as it has by the clock, or nothing where that is longer than is known.
func TestFleetHistory_AddHeater(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 9))
	for _, day := range []flex.Day{{Year: 2026, Month: 1, Dom: 15}, {Year: 2026, Month: 3, Dom: 29}, {Year: 2026, Month: 10, Dom: 25}} {
		for length := 1; length <= 10; length++ {
			b := &HeaterDay{}
			for range day.Periods() {
				var less, more []flex.WattHours
				for range 8 * min(1, random.IntN(9)) { // one of nine is not known
					less, more = append(less, flex.WattHours(random.IntN(3000))), append(more, flex.WattHours(random.IntN(3000)))
				}
				b.Less, b.More = append(b.Less, less), append(b.More, more)
			}

			h := NewFleetHistory(day, 1, length)
			h.AddHeater(day, b)
			h.AddHeater(day.Add(1), b) // not a day of it
			h.AddHeater(day.Add(-1), b)
			down, up := h.Came(TurnDown, day), h.Came(TurnUp, day)

			for from := range Slots + 1 - length {
				first, slots, hours := -1, map[int]bool{}, 0.0
				for n := range day.Periods() {
					if slot := SlotOf(day.Period(n + 1)); slot >= from && slot < from+length {
						if first < 0 {
							first = n
						}
						slots[slot], hours = true, hours+0.5
					}
				}

				if first < 0 {
					continue // an hour that is left out
				}

				less, more := 0.0, 0.0
				if len(slots) <= len(b.Less[first]) {
					less, more = float64(b.Less[first][len(slots)-1])/1000/hours, float64(b.More[first][len(slots)-1])/1000/hours
				}
				if math.Abs(down[from]-less) > 1e-9 || math.Abs(up[from]-more) > 1e-9 {
					t.Fatalf("%v, %d half-hours from slot %d: %g and %g kW, not %g and %g", day, length, from, down[from], up[from], less, more)
				}

				if h.Came(FleetLoad, day)[from] != 0 {
					t.Fatal("what a heater moves is load")
				}
			}
		}
	}
}
