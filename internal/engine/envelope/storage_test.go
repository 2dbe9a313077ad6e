package envelope_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"flexd/internal/engine/envelope"
	"flexd/internal/flex"
)

// parts are the shares of a slot's time that a battery charges (above zero) or gives in, by trial.
var parts = []float64{-1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1}

// tried is the most and the least that a battery draws in a window by any trial; in the window it only charges, or only gives.
func tried(s *envelope.Storage, from, to int) (float64, float64) {
	var least, most float64
	var step func(t int, stored, drawn float64, sign float64)
	step = func(t int, stored, drawn, sign float64) {
		if t == to {
			least, most = min(least, drawn), max(most, drawn)
			return
		}

		for _, p := range parts {
			if t >= from && p*sign < 0 {
				continue
			}

			next, grid := moved(s, t, stored, p)
			if t >= from {
				grid += drawn
			} else {
				grid = drawn
			}
			step(t+1, next, grid, sign)
		}
	}

	step(0, float64(s.Stored), 0, 1)
	step(0, float64(s.Stored), 0, -1)

	return least, most
}

// moved is what a battery stores after a slot, and what it drew in it.
func moved(s *envelope.Storage, t int, stored, part float64) (float64, float64) {
	if part >= 0 {
		grid := part * float64(s.Charge[t]) * float64(s.Power)
		grid = max(0, min(grid, (float64(s.Most)-stored)/s.Efficiency))
		return stored + grid*s.Efficiency, grid
	}

	grid := -part * float64(s.Give[t]) * float64(s.Power)
	grid = max(0, min(grid, (stored-float64(s.Least))*s.Efficiency))

	return stored - grid/s.Efficiency, -grid
}

// TestStorage compares the bounds of every window of 200 random batteries with what trials reach: none passes them, and the best
// comes up to them.
func TestStorage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for k := range 200 {
		const slots = 4
		s := &envelope.Storage{Least: 3_600_000, Most: envelope.Joules(10_000_000 + r.IntN(30_000_000)), Power: flex.Watts(1000 + r.IntN(4000)), Efficiency: 0.95}
		s.Stored = envelope.Joules(r.Int64N(int64(s.Most)))
		for range slots {
			s.Charge = append(s.Charge, int64(r.IntN(2)*1800))
			s.Give = append(s.Give, int64(r.IntN(2)*1800))
		}

		b := s.Bounds()
		for from := range slots {
			for to := from + 1; to <= slots; to++ {
				least, most := b.Window(from, to)
				low, high := tried(s, from, to)
				if math.Abs(low-float64(least)) > 2 || math.Abs(high-float64(most)) > 2 {
					t.Fatalf("case %d, %d to %d: %d to %d, tried %.0f to %.0f: %+v", k, from, to, least, most, low, high, s)
				}
			}
		}
	}
}
