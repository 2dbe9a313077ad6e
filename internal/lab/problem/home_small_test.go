package problem

import (
	"flag"
	"fmt"
	"math"
	"testing"
)

var smallHomes = flag.Int("homes", 48, "how many small homes TestHome_Oracle draws")

// TestHome_Oracle: for small homes of every sub-family, no plan is worse than the oracle's,
// and no bound is above it. The bounds are the plan's own and those that a certificate proves.
func TestHome_Oracle(t *testing.T) {
	d, trees := newHomeDraw(t, 11), newHomeDraw(t, 43)
	var w Scratch
	planned, optimal, tight := 0, 0, 0
	for i := range *smallHomes {
		family := homeFamilies[i%len(homeFamilies)]
		l := d.home(family, 2+d.index(3))
		shortfall, peak, cost := oracleHome(&l)
		if math.IsInf(cost, 1) {
			continue // more load than the fuse carries, or no hot water in time
		}

		line := l.line(t, fmt.Sprintf("%s-%d", family, i))
		h := planHome(t, line, &w)
		r := h.result
		near := 1e-5 + 1e-6*r.Gross // the oracle's own rounding
		if math.Abs(r.Shortfall-shortfall) > 1e-5 || math.Abs(r.Peak-peak) > 1e-5 {
			t.Errorf("shortfall %v and peak energy %v, the oracle has %v and %v\n%s", r.Shortfall, r.Peak, shortfall, peak, line)
			continue
		}

		if r.Bound > cost+near {
			t.Errorf("bound %v above the oracle's cost %v\n%s", r.Bound, cost, line)
		}
		if math.Abs(r.Cost-cost) > near {
			t.Errorf("cost %v, the oracle has %v\n%s", r.Cost, cost, line)
		}

		planned++
		if r.Optimal {
			optimal++
		}
		if trees.certifiedOracle(t, line, &w, shortfall, peak, cost) {
			tight++
		}
	}

	t.Logf("%d planned, %d proven optimal, %d by their certificates", planned, optimal, tight)
	if tight < planned*19/20 {
		t.Errorf("the certificates of only %d homes prove the oracle's cost", tight)
	}
	if planned < *smallHomes/2 {
		t.Errorf("only %d of %d homes have a plan", planned, *smallHomes)
	}
}

// TestHome_OracleFault: the comparison detects a plan that costs a little more.
func TestHome_OracleFault(t *testing.T) {
	d := newHomeDraw(t, 12)
	l := d.home("bat-ev", 4)
	_, _, cost := oracleHome(&l)
	l.Batteries[0].Wear += 1
	l.Import[1] += 1
	if _, _, dearer := oracleHome(&l); dearer < cost+1e-3 {
		t.Errorf("a dearer home costs %v, the other %v", dearer, cost)
	}
}
