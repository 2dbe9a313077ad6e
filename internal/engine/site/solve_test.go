package site

import "testing"

// TestSolve_None plans an empty battery that is ordered to discharge. There is no plan, which
// the result says. A battery with enough energy has one.
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

// TestSolve_StaysOn plans a heat pump without a least power, whose start costs 2 p, at −10, 10
// and 20 p. It is cheapest to heat in the first slot and the last, and in the slot between
// them just enough that the last is no second start. The cost is computed in the same way as
// it is planned.
func TestSolve_StaysOn(t *testing.T) {
	same := func(v float64) []float64 { return []float64{v, v, v} }
	p := Problem{
		Hours:       0.5,
		Import:      []float64{-10, 10, 20},
		Export:      []float64{0, 0, 5},
		Load:        []float64{0.5, 0.5, 0},
		PV:          []float64{1, 0, 1},
		Curtailable: true,
		GridImport:  2,
		GridExport:  2,
	}

	p.Heat = &Heat{
		Capacity:   1,
		Resistance: 5,
		Init:       19,
		Outdoor:    same(5),
		COP:        same(3),
		Gain:       same(0),

		Low:       same(19),
		High:      same(21),
		Penalty:   50,
		Max:       2,
		StartCost: 2,
		Reference: 19,
	}

	var s Solver
	var plan Plan
	r := s.Solve(&p, &plan)

	if r.Cost > -5.7 || !r.Optimal {
		t.Errorf("%v costs %.4f p, at best %.4f", plan.Heat, r.Cost, r.Bound)
	}

	again := p.evaluate(&plan, make([]float64, p.Slots()))
	if again.cost > r.Cost+1e-9 {
		t.Errorf("%v costs %.4f p, not %.4f", plan.Heat, again.cost, r.Cost)
	}
}
