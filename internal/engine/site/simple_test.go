package site

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestTank_Late compares, for random tanks of up to nine slots, the schedule of a simple plan
// with all schedules. It must keep the tank's bounds and the fuse wherever a schedule exists
// that does.
func TestTank_Late(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	kept, refused := 0, 0
	for range 2000 {
		n := 2 + r.IntN(8)
		k := Tank{Element: 1 + 4*r.Float64(), Min: 0.5, Max: 1.5 + 3*r.Float64(), Init: 0.5 + r.Float64(), Loss: 0.05 * r.Float64()}
		net := make([]float64, n)
		for i := range n {
			k.Draw = append(k.Draw, math.Max(0, 2*r.Float64()-0.8))
			net[i] = 3 * r.Float64()
		}

		const fuse = 3.5
		want := false
		for set := range 1 << n {
			want = want || keeps(&k, set, fuse, net)
		}

		on, drawn := make([]bool, n), append([]float64(nil), net...)
		got := k.heatLate(on, 0.5, fuse, drawn)
		set := 0
		for i, is := range on {
			if is {
				set |= 1 << i
			}
		}

		if got != want || got && !keeps(&k, set, fuse, net) {
			t.Fatalf("%+v beside %v: a schedule %v %b, and there is one: %v", k, net, got, set, want)
		}

		if got {
			kept++
		} else {
			refused++
		}
	}

	if kept < 300 || refused < 300 {
		t.Errorf("%d tanks with a schedule and %d without one", kept, refused)
	}
}

// keeps reports whether a set of slots keeps a tank and the fuse.
func keeps(k *Tank, set int, fuse float64, net []float64) bool {
	stored := k.Init
	for i, w := range net {
		stored = stored*(1-k.Loss) - k.Draw[i]
		if set>>i&1 == 1 {
			stored += k.Element / 2
			w += k.Element / 2
		}

		if stored < k.Min || stored > k.Max || w > fuse && set>>i&1 == 1 {
			return false
		}
	}

	return true
}

// TestCar_OddRanges plans a car whose off-peak ranges have a different length in each
// half-hour, as in a tariff of 29 ranges, on two days. There are 3^29 choices of its slots.
func TestCar_OddRanges(t *testing.T) {
	for _, least := range []float64{1.4, 7} {
		c := Car{Max: 7, Min: least, Energy: 21}
		for range 2 {
			for minutes := 1; minutes < 30; minutes++ {
				c.Available = append(c.Available, float64(minutes)/60)
			}
		}

		n := len(c.Available)
		if is := c.leastReach(); is.shortfall > 1e-6 || is.peak > 0 {
			t.Errorf("least %g kW: it lacks %g kWh by itself, of 14.5 hours for 3", least, is.shortfall)
		}

		p := &Problem{Hours: 0.5, GridImport: 20, GridExport: 20, Import: make([]float64, n), Export: make([]float64, n)}
		p.Load, p.PV, p.Cars = make([]float64, n), make([]float64, n), []Car{c}
		for i := range p.Import {
			p.Import[i] = 10 + float64(i%7)
		}

		var plan Plan
		solver := Solver{Limit: 1000}
		if r := solver.Solve(p, &plan); p.evaluate(&plan, make([]float64, n)).worst > shortfallTolerance {
			t.Errorf("least %g kW: %+v is no plan", least, r)
		}
	}
}

// TestSpans compares, for random classes of one car, the ranges that spans lists with those of
// all choices.
func TestSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	for range 300 {
		var classes []class
		for range 1 + r.IntN(4) {
			hours := float64(1+r.IntN(30)) / 60
			classes = append(classes, class{1.4 * hours, 7 * hours, 1 + r.IntN(3)})
		}

		has := map[int64]bool{}
		for _, s := range spans(classes) {
			has[int64(math.Round(s.most*1e6))] = true
		}

		for _, c := range choices(classes, nil) {
			if !has[int64(math.Round(c.off.most*1e6))] {
				t.Fatalf("%v: no span takes %g kWh", classes, c.off.most)
			}
		}
	}
}

// TestSolve_NoPlan: a home draws more than its main fuse can carry. The result claims neither
// that needs are met nor that a plan is optimal.
func TestSolve_NoPlan(t *testing.T) {
	p := &Problem{Hours: 0.5, Import: []float64{10}, Export: []float64{5}, Load: []float64{5}, PV: []float64{0}, GridImport: 2, GridExport: 2}
	p.Batteries = []Battery{{Max: 1, Charge: 1, Discharge: 1, ChargeEff: 0.9, Efficient: 0.9}}

	var plan Plan
	var solver Solver
	if r := solver.Solve(p, &plan); r.Met || r.Optimal {
		t.Errorf("%+v, of a home of 10 kW behind 2 kW", r)
	}
}

// TestSolve_Cut plans two cars behind a fuse that cannot carry both, and allows less work than
// the cuts of the root take. The plan has a bound nevertheless.
func TestSolve_Cut(t *testing.T) {
	const n = 12
	p := &Problem{Hours: 0.5, GridImport: 4, GridExport: 4, PV: make([]float64, n), Cars: make([]Car, 2)}
	for i := range n {
		p.Import, p.Export, p.Load = append(p.Import, float64(10+i*5%7)), append(p.Export, 5), append(p.Load, 0.2)
	}

	for k := range p.Cars {
		p.Cars[k] = Car{Max: 7, Energy: 15}
		for range n {
			p.Cars[k].Available = append(p.Cars[k].Available, 0.5)
		}
	}

	var plan Plan
	solver := Solver{Limit: 1}
	r := solver.Solve(p, &plan)
	if math.IsInf(r.Bound, 0) || r.Bound > r.Cost+1e-6 || p.evaluate(&plan, make([]float64, n)).worst > shortfallTolerance {
		t.Errorf("%+v", r)
	}
}

// TestCar_OddHours plans a car with 60 slots that all have different lengths. There are too
// many ranges to list.
func TestCar_OddHours(t *testing.T) {
	c := Car{Max: 7, Min: 1.4, Energy: 21}
	for i := range 60 {
		c.Available = append(c.Available, math.Sqrt(float64(i+2))/17)
	}

	n := len(c.Available)
	if is := c.leastReach(); is.shortfall != 0 || is.peak != 0 {
		t.Errorf("it lacks %g kWh by itself", is.shortfall)
	}

	p := &Problem{Hours: 0.5, GridImport: 20, GridExport: 20, Import: make([]float64, n), Export: make([]float64, n)}
	p.Load, p.PV, p.Cars = make([]float64, n), make([]float64, n), []Car{c}
	for i := range p.Import {
		p.Import[i] = 10 + float64(i%7)
	}

	var plan Plan
	solver := Solver{Limit: 1000}
	if r := solver.Solve(p, &plan); p.evaluate(&plan, make([]float64, n)).worst > shortfallTolerance {
		t.Errorf("%+v is no plan", r)
	}
}
