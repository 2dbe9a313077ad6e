package control

import (
	"math/rand/v2"
	"slices"
	"testing"

	"flexd/internal/engine/tank"
	"flexd/internal/flex"
)

// TestYielding has random tanks beside cars with one or two needs, and compares what they give up with all that they could do: no car
// falls short by a half-hour that stays open; what no car needs stays open; comfort is given up for one need only if no plan of the same
// comfort leaves enough; and nothing is given up where the plan takes no more than the cars can do without.
func TestYielding(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 10))
	gave, comfort := 0, 0
	for n := range 600 {
		p := randomTank(r)
		slots := len(p.Slots)
		y := yielding{inForce: make([]bool, slots)}
		for _, s := range p.Slots {
			y.prices = append(y.prices, s.Price)
		}

		needs := 1 + r.IntN(2)
		for k := range needs {
			var need taken
			for i := range slots {
				var e flex.WattHours
				if r.IntN(3) > 0 && (k == needs-1 || i < slots/2) {
					e = flex.WattHours(200 + r.IntN(1000))
				}
				need.each = append(need.each, e)
			}
			need.most = flex.WattHours(r.IntN(3000))
			y.needs = append(y.needs, need)
		}

		y.plan = func(takes []flex.WattHours, part float64) []bool {
			q := *p
			q.Slots = slices.Clone(p.Slots)
			for i := range q.Slots {
				s := &q.Slots[i]
				s.Spare -= int(part * float64(s.Spare+2000))
				if takes != nil {
					s.Hold = yieldPrice * takes[i].KWh()
				}
			}
			return tank.Solve(&q).On
		}

		closed := y.closed()
		free := tank.Solve(p)
		if kept := keepNeeds(y.needs, free.On); kept != (closed == nil) {
			t.Fatalf("%d: the plan by itself leaves enough: %v, and gives up %v", n, kept, closed)
		}
		if closed == nil {
			continue
		}

		gave++
		q := *p
		q.Slots = slices.Clone(p.Slots)
		for i := range q.Slots {
			q.Slots[i].Closed = closed[i]
		}
		plan := tank.Solve(&q)
		best, least := allTanks(p, y.needs)

		bound := keepNeeds(y.needs, y.plan(y.takes(), 1))
		if bound && !keepNeeds(y.needs, plan.On) {
			t.Fatalf("%d: a car falls short by %v of %v", n, plan.On, y.needs)
		}
		if bound && best && needs == 1 && plan.Short > free.Short {
			t.Fatalf("%d: short by %d for nothing: %d would do", n, plan.Short, free.Short)
		}
		if bound && plan.Short > free.Short {
			comfort++
			t.Logf("short by %d, and %d at least", plan.Short, least)
		}
		for i := range closed {
			if on := slices.Clone(plan.On); closed[i] && bound {
				for j := range on {
					on[j] = !closed[j] && (on[j] || y.takes()[j] > 0)
				}
				on[i] = true
				if keepNeeds(y.needs, on) {
					t.Fatalf("%d: the half-hour %d is given up for nothing", n, i)
				}
			}
		}
	}

	if gave < 100 || comfort < 20 {
		t.Errorf("%d gave something up, %d of them comfort", gave, comfort)
	}
}

func randomTank(r *rand.Rand) *tank.Problem {
	p := &tank.Problem{Top: 4000 + r.IntN(6000), Floor: -8000, Init: r.IntN(4000), Start: 0.1, Hold: 0.05, Worth: 9}
	for range 4 + r.IntN(7) {
		p.Slots = append(p.Slots, tank.Slot{Heat: 1500, Draw: r.IntN(1200), Price: float64(9 + 19*r.IntN(2)), Spare: 500 * r.IntN(4)})
	}
	return p
}

// allTanks tries every plan of a tank by which no car falls short: whether one is as warm as the best of all, and the least that any lacks.
func allTanks(p *tank.Problem, needs []taken) (best bool, least int) {
	least = 1 << 40
	for set := range 1 << len(p.Slots) {
		on := make([]bool, len(p.Slots))
		for i := range on {
			on[i] = set>>i&1 == 1
		}
		if keepNeeds(needs, on) {
			least = min(least, tank.Run(p, on).Short)
		}
	}
	free := tank.Solve(p)
	return least == free.Short, least
}
