package heat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"flexd/internal/engine/heat"
)

// randomHome is a house of a few slots with two or three choices each.
func randomHome(r *rand.Rand, slots int) *heat.Problem {
	p := &heat.Problem{
		Building: heat.Building{Loss: 50 + 400*r.Float64(), Capacity: 2000 + 20000*r.Float64(), Gain: 300 * r.Float64(), Power: 500 + 4000*r.Float64()},
		Init:     15 + 8*r.Float64(),
		Runs:     r.IntN(2) == 0,
		Start:    2 * r.Float64(),
		Worth:    10 * r.Float64(),
	}
	if r.IntN(2) == 0 {
		p.Locks = 1 + r.IntN(3)
		p.Locked = r.IntN(p.Locks + 1)
		p.Runs = p.Runs && p.Locked == 0
	}

	low := 17 + 3*r.Float64()
	for range slots {
		s := heat.Slot{Hours: 0.1 + 0.9*r.Float64(), Outdoor: -10 + 25*r.Float64(), COP: 1.5 + 3*r.Float64(), Price: -5 + 40*r.Float64(), Low: low - 2*float64(r.IntN(2))}
		s.High = s.Low + 0.5 + 3*r.Float64()
		s.Choices = []heat.Choice{
			{Target: s.Low + r.Float64()*(s.High-s.Low)},
			{Off: true, Lock: p.Locks > 0},
			{Target: s.High, Hold: 0.05 * r.Float64()},
		}[:2+r.IntN(2)]
		if planned := 2000 * r.Float64(); r.IntN(3) == 0 {
			s.Extra = func(energy float64) float64 { return math.Max(0, energy-planned) / 10 }
		}
		p.Slots = append(p.Slots, s)
	}
	return p
}

// oracle tries every sequence of choices on the same grid, with a model of its own.
type oracle struct {
	p     *heat.Problem
	short int
	cost  float64
	found bool
}

func (o *oracle) try(t int, temp float64, runs bool, locked, short int, cost float64) {
	p := o.p
	if t == len(p.Slots) {
		last := p.Slots[t-1]
		cost -= p.Worth * (temp - last.Low) * p.Capacity / last.COP / 1000
		if !o.found || short < o.short || short == o.short && cost < o.cost {
			o.found, o.short, o.cost = true, short, cost
		}
		return
	}

	s := p.Slots[t]
	keeps := math.Exp(-s.Hours / (p.Capacity / p.Loss))
	for _, c := range s.Choices {
		n := 0
		if c.Lock && p.Locks > 0 {
			if n = locked + 1; n > p.Locks {
				continue
			}
		}

		// The temperature goes to its balance: without heat, and with all of it.
		cold := s.Outdoor + p.Gain/p.Loss
		idle := cold + (temp-cold)*keeps
		full := idle + p.Power*s.COP/p.Loss*(1-keeps)
		end, part := idle, 0.0
		if !c.Off && c.Target > idle {
			end = math.Min(c.Target, full)
			part = (end - idle) / (full - idle)
		}

		used := part * p.Power * s.Hours / 1000
		more := used*s.Price + c.Hold
		if used > 0 && !runs {
			more += p.Start
		}
		if s.Extra != nil {
			more += s.Extra(used * 1000)
		}

		steps := math.Round(end / 0.02)
		low := s.Low
		if used == 0 {
			low += s.Stop
		}
		lacks := math.Max(0, math.Round(low/0.02)-steps)
		if used > 0 {
			lacks += math.Max(0, steps-math.Round(s.High/0.02))
		}
		o.try(t+1, steps*0.02, used > 0, n, short+int(lacks), cost+more)
	}
}

// worse says by how much a plan is worse than the best of all.
func worse(p *heat.Problem, plan heat.Plan) bool {
	o := &oracle{p: p}
	o.try(0, math.Round(p.Init/0.02)*0.02, p.Runs, p.Locked, 0, 0)
	return plan.Short != o.short || math.Abs(plan.Cost-o.cost) > 1e-6
}

// TestSolve_Oracle holds random homes against the best of all their plans.
func TestSolve_Oracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		p := randomHome(r, 1+r.IntN(8))
		for n := range p.Slots { // one of two cools sooner than the building where nothing is heated
			p.Slots[n].Stop = r.Float64() * float64(i%2)
		}
		if plan := heat.Solve(p); worse(p, plan) {
			o := &oracle{p: p}
			o.try(0, math.Round(p.Init/0.02)*0.02, p.Runs, p.Locked, 0, 0)
			t.Fatalf("house %d: lacks %d and costs %v, the best %d and %v", i, plan.Short, plan.Cost, o.short, o.cost)
		}
	}
}

// TestSolve_PlantedFaults has the oracle find plans that are not the best: another choice, and a lock that is too long.
func TestSolve_PlantedFaults(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	found := 0
	for range 200 {
		p := randomHome(r, 6)
		plan := heat.Solve(p)
		other := append([]int(nil), plan.Choice...)
		at := r.IntN(len(other))
		other[at] = (other[at] + 1) % len(p.Slots[at].Choices)
		if worse(p, heat.Run(p, other)) {
			found++
		}
	}

	if found < 80 {
		t.Errorf("of 200 other choices, some of which come to the same, %d were found to be worse", found)
	}
}

// day is a day of half-hours at one temperature outdoors, with dear hours.
func day(outdoor float64) *heat.Problem {
	p := &heat.Problem{Building: heat.Building{Loss: 200, Capacity: 8000, Power: 3000}, Init: 20, Start: 1}
	for t := range 48 {
		s := heat.Slot{Hours: 0.5, Outdoor: outdoor, COP: 3, Price: 15, Low: 19, High: 22}
		if t >= 32 && t < 38 {
			s.Price = 45
		}
		s.Choices = []heat.Choice{{Target: 20.5}, {Off: true}, {Target: 22}}
		p.Slots = append(p.Slots, s)
	}
	return p
}

// TestSolve_HeatsAhead has a house heated before the dear hours and not in them, and kept in its band.
func TestSolve_HeatsAhead(t *testing.T) {
	p := day(2)
	plan := heat.Solve(p)
	dear := 0.0
	for i := 32; i < 38; i++ {
		dear += plan.Energy[i]
	}
	if plan.Short > 0 || dear > 1 || plan.Temp[31] < 20.1 {
		t.Errorf("lacks %d, draws %.0f Wh in the dear hours, %.2f degrees before them", plan.Short, dear, plan.Temp[31])
	}
	if lack, slot := plan.Lowest(p.Slots); slot >= 0 {
		t.Errorf("lacks %v in slot %d", lack, slot)
	}
}

// TestSolve_Cold has a house that cannot be kept warm heated throughout, dear or not.
func TestSolve_Cold(t *testing.T) {
	p := day(-30)
	plan := heat.Solve(p)
	lack, slot := plan.Lowest(p.Slots)
	if slot < 0 || lack < 1 {
		t.Errorf("lacks %v in slot %d", lack, slot)
	}
	for i, e := range plan.Energy {
		if plan.Temp[i] < 19 && e < 1499 {
			t.Errorf("slot %d: %.0f Wh at %.2f degrees", i, e, plan.Temp[i])
		}
	}
}

// TestRun_Grid has a plan that is followed without the grid come to nearly the same.
func TestRun_Grid(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 100 {
		p := day(-5 + 10*r.Float64())
		plan := heat.Solve(p)
		temp := p.Init
		for t := range p.Slots {
			s := p.Slots[t]
			for range 1800 { // by the second
				temp += (p.Loss*(s.Outdoor-temp) + plan.Energy[t]/s.Hours*s.COP) / p.Capacity / 3600
			}
		}

		if off := math.Abs(temp - plan.Temp[47]); off > 0.3 {
			t.Errorf("house %d: %.2f degrees off after a day", i, off)
		}
	}
}

// TestSolve_LockAlone has slots with nothing but a lock, longer than locks may be.
func TestSolve_LockAlone(t *testing.T) {
	p := day(5)
	p.Locks = 4
	for t := 10; t < 20; t++ {
		p.Slots[t].Choices = []heat.Choice{{Off: true, Lock: true}}
	}
	plan := heat.Solve(p)
	for i := 10; i < 20; i++ {
		if plan.Energy[i] > 0 {
			t.Errorf("slot %d draws %.0f Wh", i, plan.Energy[i])
		}
	}
}

func BenchmarkSolve(b *testing.B) {
	p := day(0)
	p.Slots = append(p.Slots, p.Slots...)
	p.Locks = 4
	for b.Loop() {
		heat.Solve(p)
	}
}
