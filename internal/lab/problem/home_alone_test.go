package problem

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// aloneDraw draws a home whose only device is a car that discharges, with no least power and
// no start cost. Every other one has prices below zero, or an export price above the import
// price.
func aloneDraw(d *homeDraw, n int) homeLine {
	reversed := d.chance(0.5)
	for {
		l := d.home("v2g", n)
		c := l.Cars[0]
		if c.V2G == nil || l.GridImportKW < 11 {
			continue
		}

		c.MinKW, c.StartCost, c.V2G.MinDischargeKW = 0, 0, 0
		c.V2G.SoCArrival = max(c.V2G.SoCArrival, c.V2G.Reserve)
		l.Batteries, l.Cars, l.NoBatteryToCar = nil, l.Cars[:1], false
		l.Cars[0] = c
		if reversed {
			d.tariff(&l, "negative")
		}
		return l
	}
}

// TestHome_CarAlone: a car that discharges and is the only device costs as much by the slope
// method as by the search. A second car that may take nothing makes the planner use the
// search.
func TestHome_CarAlone(t *testing.T) {
	d := newHomeDraw(t, 31)
	var w Scratch
	short, reversed := 0, 0

	for i := range 60 {
		l := aloneDraw(d, 8+40*(i%3))
		fast := planHome(t, l.line(t, fmt.Sprint(i)), &w)
		if fast.result.Nodes != 1 || fast.result.Pivots != 0 {
			t.Logf("%d took %d pivots", i, fast.result.Pivots)
		} else {
			short++
			if slices.ContainsFunc(l.Import, func(p float64) bool { return p < 0 }) || slices.Max(l.Export) == 15 && slices.Min(l.Import) < 15 {
				reversed++
			}
		}

		idle := homeCar{AvailHours: make([]float64, len(l.Load))}
		both := l
		both.Cars = append(both.Cars, idle)
		slow := planHome(t, both.line(t, fmt.Sprint(i)), &w)
		a, b := fast.result, slow.result
		if math.Abs(a.Cost-b.Cost) > 1e-5*max(1, b.Gross) || math.Abs(a.Shortfall-b.Shortfall) > 1e-5 || a.Bound > b.Cost+1e-5*max(1, b.Gross) {
			t.Errorf("%d: cost %v of bound %v, shortfall %v; by the search %v and %v", i, a.Cost, a.Bound, a.Shortfall, b.Cost, b.Shortfall)
		}
	}

	t.Logf("%d cars by their slopes, %d of them at prices below zero or exports above imports", short, reversed)
	if short < 45 || reversed < 10 {
		t.Errorf("only %d of 60 cars were planned by their slopes, %d of them at such prices", short, reversed)
	}
}

func BenchmarkHome_CarAlone(b *testing.B) {
	d := newHomeDraw(b, 31)
	var w Scratch
	var ps []*Problem
	for i := range 40 {
		l := aloneDraw(d, 96)
		p, err := Decode(l.line(b, fmt.Sprint(i)))
		if err != nil {
			continue
		}

		p.Plan(&w)
		if p.solver.(*homeProblem).result.Pivots == 0 {
			ps = append(ps, p)
		}
	}

	for i := 0; b.Loop(); i++ {
		ps[i%len(ps)].Plan(&w)
	}
}
