package site

import "testing"

// TestSolve_None has a battery that is empty be ordered to give: there is no plan, which the result says. One that holds what is
// ordered has one.
func TestSolve_None(t *testing.T) {
	for _, stored := range []float64{0, 1} {
		p := Problem{
			Hours:      0.5,
			Import:     []float64{20, 20},
			Export:     []float64{5, 5},
			Load:       []float64{1, 1},
			PV:         []float64{0, 0},
			GridImport: 10,
			GridExport: 10,
			Batteries: []Battery{{
				Max:       2,
				Init:      stored,
				Charge:    1,
				Discharge: 1,
				ChargeEff: 0.9,
				Efficient: 0.9,
				Ordered:   []bool{true, false},
				Moved:     []float64{-0.5, 0},
			}},
		}

		var s Solver
		var plan Plan
		r := s.Solve(&p, &plan)

		if none := stored == 0; r.None != none || r.Met == none {
			t.Errorf("with %v kWh stored: none %v, met %v", stored, r.None, r.Met)
		}
	}
}
