package envelope

import (
	"testing"

	"pgregory.net/rapid"
)

// TestPhases_Let compares what phases let through with the best of all that cars could draw in whole thirds.
func TestPhases_Let(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var would PerLine
		for line := range would {
			would[line] = 3 * Joules(rapid.IntRange(0, 6).Draw(t, "would"))
		}

		var carries PerPhase
		for k := range carries {
			carries[k] = 9 * Joules(rapid.IntRange(0, 8).Draw(t, "carries"))
		}

		best := Joules(0)
		for all := range would[OnAll] + 1 {
			for unknown := range would[OnAny] + 1 {
				sum, passed := all+unknown, false
				for k, c := range carries {
					left := c - all - 3*unknown
					passed = passed || left < 0
					sum += min(would[OnL1+Line(k)], left/3)
				}

				if !passed {
					best = max(best, sum)
				}
			}
		}

		if got := carries.Let(&would); got < best || got > best+3 {
			t.Fatalf("%v let %d through of %v, and at best %d", carries, got, would, best)
		}
	})
}
