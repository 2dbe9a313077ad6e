package tank_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"flexd/internal/engine/tank"
)

// drawn is a random tank of few slots.
func drawn(r *rand.Rand) *tank.Problem {
	p := &tank.Problem{
		Top:   1000 + r.IntN(3000),
		Floor: -1000 - r.IntN(2000),
		Start: r.Float64(),
		Hold:  r.Float64() / 4,
		On:    r.IntN(2) == 0,
		Worth: 10 * r.Float64(),
	}

	p.Init = p.Floor + r.IntN(p.Top-p.Floor)
	for range 1 + r.IntN(9) {
		var extra func(float64) float64
		if planned := 1500 * r.Float64(); r.IntN(3) == 0 {
			extra = func(heat float64) float64 { return math.Max(0, heat-planned) / 10 }
		}
		p.Slots = append(p.Slots, tank.Slot{
			Extra:  extra,
			Heat:   500 + r.IntN(1500),
			Draw:   r.IntN(1200),
			Price:  40*r.Float64() - 5,
			Closed: r.IntN(5) == 0,
		})
	}

	return p
}

// least is the best of all plans of a tank, each followed by itself.
func least(p *tank.Problem) (best tank.Plan) {
	best.Short = math.MaxInt
	for bits := range 1 << len(p.Slots) {
		on := make([]bool, len(p.Slots))
		for t := range on {
			on[t] = bits>>t&1 == 1
		}

		plan := tank.Run(p, on)
		worse := plan.Short > best.Short ||
			plan.Short == best.Short && plan.Cost >= best.Cost
		if !worse {
			best = plan
		}
	}

	return best
}

// TestTank_Best holds the plan of random tanks, cold ones too, against the best of all.
func TestTank_Best(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 1))
	cold := 0
	for i := range 2000 {
		p := drawn(r)
		got, want := tank.Solve(p), least(p)
		again := tank.Run(p, got.On)

		if got.Short != want.Short || math.Abs(got.Cost-want.Cost) > 1e-6 {
			t.Fatalf("tank %d: %d Wh short for %.4f p, the best is %d for %.4f: %+v", i, got.Short, got.Cost, want.Short, want.Cost, p)
		}
		if again.Short != got.Short || math.Abs(again.Cost-got.Cost) > 1e-6 {
			t.Fatalf("tank %d: the plan comes to %+v, not %+v", i, again, got)
		}
		if got.Short > 0 {
			cold++
		}
	}

	if cold < 100 || cold > 1900 {
		t.Errorf("%d of 2000 tanks are cold", cold)
	}
}

// TestTank_Planted has a plan that heats in the dear slot be found out by what it comes to.
func TestTank_Planted(t *testing.T) {
	p := &tank.Problem{Top: 3000, Floor: -3000, Slots: []tank.Slot{
		{Heat: 1000, Price: 5},
		{Heat: 1000, Price: 30, Draw: 1000},
	}}

	wrong := tank.Run(p, []bool{false, true})
	if right := tank.Solve(p); wrong.Short != right.Short || wrong.Cost <= right.Cost || !right.On[0] {
		t.Errorf("planted %+v, the plan %+v", wrong, right)
	}
	if l, at := wrong.Lowest(); l != 0 || at != 0 {
		t.Errorf("the lowest is %d after %d", l, at)
	}
}
