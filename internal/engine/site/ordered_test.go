package site_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"flexd/internal/engine/check"
	"flexd/internal/engine/site"
)

// TestOrdered plans sites of a battery and a car in which the battery follows an order in some
// slots. It does nothing else in them, and what it stores follows from the order. No plan of
// single slots at full or no power is cheaper.
func TestOrdered(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 2))
	used := 0

	for n := range 300 {
		const slots = 4
		b := site.Battery{Min: 1, Max: 5, Init: 2 + 2*r.Float64(), Charge: 2, Discharge: 2, ChargeEff: 0.95, Efficient: 0.95, Terminal: 8, Ordered: make([]bool, slots), Moved: make([]float64, slots)}
		p := &site.Problem{Hours: 0.5, GridImport: 6, GridExport: 4, NoBatteryToCar: true, Curtailable: true, PV: make([]float64, slots)}
		stored := b.Init

		for i := range slots {
			p.Import, p.Export, p.Load = append(p.Import, 10+20*r.Float64()), append(p.Export, 5), append(p.Load, r.Float64())
			if r.IntN(3) == 0 {
				b.Ordered[i] = true
				b.Moved[i] = max(b.Min-stored, min(b.Max-stored, 2*r.Float64()-1)) / 2
				stored += b.Moved[i]
			}
		}
		p.Batteries = []site.Battery{b}
		p.Cars = []site.Car{{Available: []float64{0.5, 0.5, 0.5, 0.5}, Max: 4, Energy: 3}}

		var plan site.Plan
		solver := site.Solver{Limit: 5000}
		got := solver.Solve(p, &plan)
		if err := check.Site(p, &plan, got); err != nil {
			t.Fatalf("%d: %v", n, err)
		}

		for i, ordered := range b.Ordered {
			if ordered && plan.Battery[0][i] != 0 {
				t.Errorf("%d: in slot %d it moves %g kWh of its own", n, i, plan.Battery[0][i])
			} else if ordered {
				used++
			}
		}
		if best := cheapest(p); got.Cost > best+1e-6 || got.Bound > best+1e-6 {
			t.Errorf("%d: %g p, bound %g; another plan costs %g", n, got.Cost, got.Bound, best)
		}
	}

	if used == 0 {
		t.Error("nothing was ordered")
	}
}

// cheapest tries a battery at full power in both directions and idle, and a car in steps of
// half its power.
func cheapest(p *site.Problem) float64 {
	best, b := math.Inf(1), &p.Batteries[0]
	var try func(t int, stored, need, cost float64)
	try = func(t int, stored, need, cost float64) {
		if t == len(p.Load) {
			if need < 1e-9 {
				best = min(best, cost-b.Terminal*stored)
			}
			return
		}

		for _, x := range []float64{-1, 0, 1} {
			after := stored + max(x, 0)*b.ChargeEff - max(-x, 0)/b.Efficient
			if b.Ordered[t] {
				after = stored + b.Moved[t]
			}
			if after < b.Min || after > b.Max || x != 0 && b.Ordered[t] {
				continue
			}

			for _, car := range []float64{0, 1, 2} {
				net := p.Load[t] + x + car
				if net > 3 || net < -2 || car > need || car > 0 && -x > p.Load[t] {
					continue
				}
				try(t+1, after, need-car, cost+max(net, 0)*p.Import[t]-max(-net, 0)*p.Export[t])
			}
		}
	}

	try(0, b.Init, p.Cars[0].Energy, 0)
	return best
}
