package backtest

import (
	"math"
	"strings"
	"testing"
)

// TestWear has a battery's wear count in plans and in what is compared, and stand in no bill: at wear that no cycle pays for nothing is
// discharged but by self-use, and whoever plans without it pays more.
func TestWear(t *testing.T) {
	c := evenDays()
	without := Run(c, nil)
	if without.Worn != (Bills{}) {
		t.Errorf("without wear: %+v", without.Worn)
	}

	c.Battery.Wear = 5
	some := Run(c, nil)
	all := some.WithWear()
	if some.Worn.Plan <= 0 || some.Worn.None != 0 || some.Optimum > min(all.SelfUse, all.Plan, all.Foresight)+1e-6 || some.Optimum <= without.Optimum {
		t.Errorf("wear %+v, optimum %.2f of %+v; without %.2f", some.Worn, some.Optimum, all, without.Optimum)
	}

	if got, want := some.Total.SelfUse, without.Total.SelfUse; math.Abs(got-want) > 1e-6 {
		t.Errorf("self-use pays %.2f p with wear, %.2f without", got, want)
	}
	var table strings.Builder
	if err := some.Table(&table); err != nil || !strings.Contains(table.String(), "The battery's wear is in no bill: self-use £") {
		t.Errorf("%s, %v", table.String(), err)
	}

	// Each way's wear is what it would be at a twentieth, twenty times, if it does the same: self-use does.
	c.Battery.Wear = 100
	much := Run(c, nil)
	if math.Abs(much.Worn.SelfUse-20*some.Worn.SelfUse) > 1e-6 || much.Worn.Plan > 0.05*20*some.Worn.Plan {
		t.Errorf("wear %+v, at a twentieth %+v", much.Worn, some.Worn)
	}
	if blind := without.Total.Plan + 20*some.Worn.Plan; much.WithWear().Plan >= blind {
		t.Errorf("with wear in the plan all costs %.2f p, without %.2f", much.WithWear().Plan, blind)
	}
}

// TestWear_Home is TestWear of a home with a car, against its bound.
func TestWear_Home(t *testing.T) {
	c := evenHome(5)
	without := RunHome(c, nil)
	for _, wear := range []float64{5, 100} {
		c.Battery.Wear = wear
		r := RunHome(c, nil)
		all := r.WithWear()
		if least := min(all.Unsteered, all.Alone, all.Together); r.Bound > least+1e-6 || r.Bound < without.Bound {
			t.Errorf("at %g p: bound %.2f p, %+v; without wear %.2f", wear, r.Bound, all, without.Bound)
		}

		if wear == 5 && (r.Worn.Together <= 0 || math.Abs(all.Together-r.Total.Together-r.Worn.Together) > 1e-9) || wear == 100 && r.Worn.Together > 100 {
			t.Errorf("at %g p: wear %+v", wear, r.Worn)
		}
		var table strings.Builder
		if err := r.Table(&table); err != nil || wear == 5 && !strings.Contains(table.String(), "The battery's wear is in no bill: unsteered £") {
			t.Errorf("%s, %v", table.String(), err)
		}
	}
}
