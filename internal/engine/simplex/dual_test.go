package simplex

import (
	"math"
	"testing"
)

// TestSolve_Drift has the value of a basic variable be off by what pivots can add up to, where the others mend all of a large miss but
// that. The programme has a solution then, and has none where a bound is tighter by as much.
func TestSolve_Drift(t *testing.T) {
	const drift = 5e-8

	for name, c := range map[string]struct {
		most float64 // of the last variable
		want Status
	}{
		"a solution": {1, Optimal},
		"none":       {1 - drift, Infeasible},
	} {
		t.Run(name, func(t *testing.T) {
			var s Solver
			s.Reset()
			row := s.AddRow(2) // the three sum to 2
			for j := range 3 {
				s.AddEntry(s.AddColumn(float64(j+1), 0, 1), row, 1)
			}

			s.Start([]int{-1})

			if got := s.Solve(math.Inf(1), 100); got != Optimal || s.Value(0) != 1 || s.Value(1) != 1 {
				t.Fatalf("it ends with %v at %v and %v", got, s.Value(0), s.Value(1))
			}

			s.SetBounds(0, 0, 0)
			s.SetBounds(2, 0, c.most)
			s.value[s.basis[0]] += drift

			if got := s.Solve(math.Inf(1), 100); got != c.want {
				t.Fatalf("it ends with %v, not %v", got, c.want)
			}

			if c.want == Optimal && (s.Value(1) != 1 || s.Value(2) != 1) {
				t.Errorf("the two sum to 2 by %v and %v", s.Value(1), s.Value(2))
			}
		})
	}
}
