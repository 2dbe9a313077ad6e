package control

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"flexd/internal/engine/tank"
	"flexd/internal/flex"
	"flexd/internal/store"
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
		y := heatReduction{inForce: make([]bool, slots)}
		for _, s := range p.Slots {
			y.prices = append(y.prices, s.Price)
		}

		needs := 1 + r.IntN(2)
		for k := range needs {
			var need carLoss
			for i := range slots {
				var e flex.WattHours
				if r.IntN(3) > 0 && (k == needs-1 || i < slots/2) {
					e = flex.WattHours(200 + r.IntN(1000))
				}
				need.perHalfHour = append(need.perHalfHour, e)
			}

			need.allowed = flex.WattHours(r.IntN(3000))
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
		if kept := meetsNeeds(y.needs, free.On); kept != (closed == nil) {
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

		bound := meetsNeeds(y.needs, y.plan(y.maxLosses(), 1))
		if bound && !meetsNeeds(y.needs, plan.On) {
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
					on[j] = !closed[j] && (on[j] || y.maxLosses()[j] > 0)
				}
				on[i] = true
				if meetsNeeds(y.needs, on) {
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
func allTanks(p *tank.Problem, needs []carLoss) (best bool, least int) {
	least = 1 << 40
	for set := range 1 << len(p.Slots) {
		on := make([]bool, len(p.Slots))
		for i := range on {
			on[i] = set>>i&1 == 1
		}
		if meetsNeeds(needs, on) {
			least = min(least, tank.Run(p, on).Short)
		}
	}
	free := tank.Solve(p)
	return least == free.Short, least
}

// TestYielding_Alike has a need that cannot be met, and a plan in force that takes as much from it as the best one, in another half-hour: it
// stays. One that takes more or less does not.
func TestYielding_Alike(t *testing.T) {
	for _, c := range []struct{ inForce, best, closed []bool }{
		{[]bool{false, true, false}, []bool{false, false, true}, []bool{true, false, true}},
		{[]bool{true, true, false}, []bool{false, false, true}, []bool{true, true, false}},
		{[]bool{false, true, false}, []bool{false, true, true}, []bool{true, false, false}},
	} {
		y := heatReduction{
			needs:   []carLoss{{perHalfHour: []flex.WattHours{1000, 1000, 1000}}},
			prices:  []float64{9, 9, 9},
			inForce: c.inForce,
			plan:    func([]flex.WattHours, float64) []bool { return c.best },
		}
		if got := y.closed(); !slices.Equal(got, c.closed) {
			t.Errorf("in force %v, best %v: closed %v, want %v", c.inForce, c.best, got, c.closed)
		}
	}
}

// TestNeedsOf has a car behind one that is to be ready before it. What the second lacks in its own hours counts, though the first could
// charge in all others; and what the first cannot have at all is not held against the heater.
func TestNeedsOf(t *testing.T) {
	now := time.Date(2026, 1, 13, 21, 0, 0, 0, time.UTC)
	car := func(need flex.WattHours, ready string, peak bool) *siteCar {
		at, err := time.Parse(time.RFC3339, ready)
		if err != nil {
			t.Fatal(err)
		}
		e := store.PlanInputs{Power: 7400, Phases: 1, Need: need, ReadyBy: at, MayChargePeak: peak, Mode: flex.Minimise}
		e.Tariff = flex.Tariff{OffPeak: "00:30-04:30", Zone: "Europe/London", Type: flex.DualRate}
		p := &store.ScheduledAsset{}
		p.Current.From = e
		return &siteCar{member: member{ScheduledAsset: p, from: e}}
	}

	met := car(5000, "2026-01-14T06:00:00Z", true)
	met.stepsForNow = []flex.Step{{Span: flex.Span{From: now, To: now.Add(time.Hour)}, Limit: 7400}}
	for _, c := range []struct {
		name  string
		cars  []*siteCar
		hours int // half-hours from 02:30 on in which a heater of 3 kW may be on
	}{
		// 29.6 kWh in its hours: 1.6 to spare, of which a half-hour of heat takes 1.2
		{"the first charges at any time", []*siteCar{met, car(28_000, "2026-01-14T07:00:00Z", false)}, 1},
		// 7.4 kWh for the first, and 22.2 then: 2.2 to spare
		{"the first cannot be met", []*siteCar{car(30_000, "2026-01-14T01:30:00Z", false), car(20_000, "2026-01-14T07:00:00Z", false)}, 1},
	} {
		m := &meter{supply: flex.Supply{Set: true, Import: 8000}, cars: c.cars}
		slots := spansTo(now, now.Add(10*time.Hour))
		needs := m.carLosses(3000, slots)

		on, hours := make([]bool, len(slots)), 0
		for i, s := range slots {
			if s.From.Before(now.Add(5*time.Hour + 30*time.Minute)) {
				continue
			}
			if on[i] = true; !meetsNeeds(needs, on) {
				break
			}
			hours++
		}

		if hours != c.hours {
			t.Errorf("%s: the heater may be on in %d half-hours of %v, want %d", c.name, hours, needs, c.hours)
		}
	}
}
