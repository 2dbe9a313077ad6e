package discharge_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"flexd/internal/engine/check"
	"flexd/internal/engine/discharge"
	"flexd/internal/flex"
)

// randomCar is a stay of a few half-hours, each permitted or not; Alone charges as early as it may until it holds a target.
func randomCar(r *rand.Rand, slots int) (p *discharge.Problem, target float64) {
	first := flex.PeriodAt(time.Date(2026, 10, 24, 22, 0, 0, 0, time.UTC)) // the clocks go back in that night
	from := first.Start()

	if r.IntN(3) == 0 {
		from = from.Add(time.Duration(r.IntN(29)) * time.Minute)
	}

	p = &discharge.Problem{
		From:     from,
		ReadyBy:  first.Add(slots).Start(),
		Charge:   flex.Watts(2000 + 1000*r.IntN(10)),
		Most:     flex.Watts(1000 + 1000*r.IntN(10)),
		Limit:    flex.NoLimit,
		Capacity: 20_000 + 40_000*r.Float64(),
		Wear:     float64(r.IntN(8)),
	}

	p.Reserve = p.Capacity * 0.4 * r.Float64()
	p.Stored = p.Capacity * (0.1 + 0.85*r.Float64())
	target = p.Stored + (p.Capacity-p.Stored)*r.Float64()*r.Float64()

	cheap := 5 + 10*r.Float64()

	for t := range slots {
		rate := discharge.Rate{Period: first.Add(t), Buy: cheap}

		if r.IntN(2) == 0 {
			rate.Buy = 60*r.Float64() - 5
		}

		rate.Sell = rate.Buy * (0.3 + r.Float64())
		p.Rates = append(p.Rates, rate)

		if r.IntN(4) > 0 {
			p.Open = append(p.Open, rate.Span())
		}
	}

	p.Alone = alone(p, target)

	return p, target
}

// alone charges in whole minutes, as early as may be, until the target is stored.
func alone(p *discharge.Problem, target float64) (steps []flex.Step) {
	stored := p.Stored

	for at := p.From; at.Before(p.ReadyBy); at = at.Add(time.Minute) {
		s := flex.Step{Span: flex.Span{From: at, To: at.Add(time.Minute)}}
		open := slices.ContainsFunc(p.Open, func(o flex.Span) bool { return o.Contains(at) })

		if open && stored < target-1 {
			s.Limit = flex.NoLimit
			stored += float64(p.Charge) / 60 * discharge.Efficiency
		}

		if n := len(steps); n > 0 && steps[n-1].Limit == s.Limit {
			steps[n-1].To = s.To
		} else {
			steps = append(steps, s)
		}
	}

	return steps
}

// best is the least that any sequence of full power, none and giving at full power costs, each for a whole half-hour,
// such that the car holds end and keeps its reserve while it gives. It shares no code with the planner.
func best(p *discharge.Problem, end float64) float64 {
	least := math.Inf(1)
	var try func(t int, stored, cost float64)
	try = func(t int, stored, cost float64) {
		if t == len(p.Rates) {
			if stored >= end-1e-6 {
				least = min(least, cost)
			}

			return
		}

		rate := p.Rates[t]
		from := rate.Start()

		if from.Before(p.From) {
			from = p.From
		}

		hours := rate.End().Sub(from).Hours()
		try(t+1, stored, cost)

		if slices.Contains(p.Open, rate.Span()) {
			room := (max(p.Capacity, p.Stored) - stored) / discharge.Efficiency

			for _, part := range []float64{0.5, 1} {
				taken := min(room, part*float64(p.Charge)*hours)
				try(t+1, stored+taken*discharge.Efficiency, cost+taken/1000*rate.Buy)
			}
		}

		for _, part := range []float64{0.5, 1} {
			given := part * float64(p.Most) * hours

			if left := stored - given/discharge.Efficiency; left >= p.Reserve {
				try(t+1, left, cost+given/1000*(p.Wear-rate.Sell))
			}
		}
	}

	try(0, p.Stored, 0)

	return least
}

// cheapest is what a car pays at least that gives nothing: the cheapest permitted half-hours first, and as much as fits at
// prices below zero.
func cheapest(p *discharge.Problem, end float64) (cost float64) {
	open := slices.DeleteFunc(slices.Clone(p.Rates), func(r discharge.Rate) bool { return !slices.Contains(p.Open, r.Span()) })
	slices.SortFunc(open, func(a, b discharge.Rate) int { return cmp.Compare(a.Buy, b.Buy) })
	stored := p.Stored

	for _, rate := range open {
		from := rate.Start()

		if from.Before(p.From) {
			from = p.From
		}

		goal := end

		if rate.Buy < 0 {
			goal = p.Capacity
		}

		taken := min(max(0, goal-stored)/discharge.Efficiency, float64(p.Charge)*rate.End().Sub(from).Hours())
		stored += taken * discharge.Efficiency
		cost += taken / 1000 * rate.Buy
	}

	return cost
}

func checked(p *discharge.Problem, plan *discharge.Plan) error {
	return check.Discharge(check.Discharging{
		From:       p.From,
		ReadyBy:    p.ReadyBy,
		Steps:      plan.Steps,
		Discharges: plan.Discharges,
		Charge:     p.Charge,
		Most:       p.Most,
		Stored:     p.Stored,
		Capacity:   p.Capacity,
		Reserve:    p.Reserve,
		Alone:      p.Alone,
		In:         discharge.Efficiency,
		Out:        discharge.Efficiency,
		Open:       p.Open,
		Export:     []flex.Step{{Span: flex.Span{From: p.From, To: p.ReadyBy}, Limit: p.Most}},
		Slack:      2,
	})
}

// TestSolve_Random holds plans against all that could be done in whole and half half-hours, and against the check.
func TestSolve_Random(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 14))
	given, saved := 0, 0.0

	for i := range 1500 {
		p, _ := randomCar(r, 2+r.IntN(5))
		plan := discharge.Solve(p)
		end := p.Play(p.Alone, nil).End
		if err := checked(p, &plan); err != nil {
			t.Fatalf("car %d: %v\n%+v\n%+v", i, err, p, plan)
		}

		played := p.Play(plan.Steps, plan.Discharges)

		if math.Abs(played.Cost-plan.Cost) > 1e-9 || plan.Cost < plan.Bound-1e-6 || plan.Saves < 0 && len(plan.Discharges) == 0 {
			t.Errorf("car %d: cost %g, played %g, bound %g, saves %g", i, plan.Cost, played.Cost, plan.Bound, plan.Saves)
		}

		if len(plan.Discharges) > 0 {
			given++
			saved += plan.Saves
		}

		// A minute more of charging in each half-hour is what rounding costs at most, and what is below the least power.
		rounding := 0.0

		for _, rate := range p.Rates {
			rounding += p.Charge.KW()/60*max(0, rate.Buy) + discharge.Least.KW()/2*max(0, rate.Sell-p.Wear) + 0.01
		}

		oracle := best(p, end)

		if plan.Cost > oracle+rounding && len(plan.Discharges) > 0 || plan.Bound > oracle+1e-6 {
			t.Errorf("car %d: costs %.3f of at least %.3f, bound %.3f\n%+v\n%+v", i, plan.Cost, oracle, plan.Bound, p, plan)
		}

		if len(plan.Discharges) == 0 && oracle < cheapest(p, end)-rounding {
			t.Errorf("car %d gives nothing, and by giving could cost %.3f\n%+v", i, oracle, p)
		}
	}

	if given < 100 {
		t.Errorf("only %d of the cars give", given)
	}

	t.Logf("%d cars give, and save %.1f p on the mean", given, saved/float64(given))
}

// TestSolve_Turns has a car that could give and charge in turns for a small gain at one price do so seldom, and lose no more by
// that than the turns that it leaves out count.
func TestSolve_Turns(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 3))
	more, fewer := 0, 0

	for i := range 60 {
		p, _ := randomCar(r, 24)
		p.Open, p.Wear = nil, 0
		p.Capacity, p.Reserve = 20_000, 4_000
		p.Stored, p.Charge, p.Most = 12_000, 7000, 7000

		for k := range p.Rates {
			p.Rates[k].Buy, p.Rates[k].Sell = 20, 26+2*r.Float64()
			p.Open = append(p.Open, p.Rates[k].Span())
		}

		p.Alone = alone(p, p.Stored+2000)
		free := discharge.Solve(p)
		p.Turn = 2
		plan := discharge.Solve(p)
		turns := func(q *discharge.Plan) float64 { return p.Turn * float64(max(0, q.Turns()-1)) }

		if err := checked(p, &plan); err != nil {
			t.Fatalf("car %d: %v", i, err)
		}

		if plan.Cost+turns(&plan) > free.Cost+turns(&free)+1e-9 || plan.Cost < plan.Bound-1e-6 {
			t.Errorf("car %d: %g p in %d turns, %g p in %d", i, plan.Cost, plan.Turns(), free.Cost, free.Turns())
		}

		more += free.Turns()
		fewer += plan.Turns()
	}

	if more < 120 || fewer >= more {
		t.Errorf("%d turns where they count, %d where not", fewer, more)
	}

	t.Logf("%d turns where they count, %d where not", fewer, more)
}

// TestSolve_Planted has the check refuse a plan that gives longer, charges less, gives more than may be exported, or takes
// where it gives.
func TestSolve_Planted(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	found := map[string]int{}

	for range 300 {
		p, _ := randomCar(r, 6)
		plan := discharge.Solve(p)

		if len(plan.Discharges) == 0 {
			continue
		}

		for name, plant := range map[string]func(*discharge.Plan){
			"more": func(q *discharge.Plan) { q.Discharges[0].Limit = p.Most + 10 },
			"less": func(q *discharge.Plan) { q.Steps = []flex.Step{{Span: flex.Span{From: p.From, To: p.ReadyBy}}} },
			"at once": func(q *discharge.Plan) {
				q.Steps = []flex.Step{{Span: flex.Span{From: p.From, To: p.ReadyBy}, Limit: flex.NoLimit}}
			},
			"negative": func(q *discharge.Plan) { q.Discharges[0].Limit = -10 },
		} {
			q := plan
			q.Discharges, q.Steps = slices.Clone(plan.Discharges), slices.Clone(plan.Steps)
			plant(&q)

			if checked(p, &q) != nil {
				found[name]++
			} else if name != "less" {
				t.Errorf("%s: the check bears it", name)
			}
		}
	}

	if found["more"] == 0 || found["less"] == 0 || found["at once"] == 0 || found["negative"] == 0 {
		t.Errorf("planted faults found: %v", found)
	}
}

// TestSolve_Kept has a car that maximises give only where it would rest, and charge in all that time that it would.
func TestSolve_Kept(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 2))
	given := 0

	for i := range 600 {
		p, _ := randomCar(r, 6)
		p.Kept = true
		p.Alone = alone(p, math.Inf(1))
		plan := discharge.Solve(p)

		if !slices.Equal(plan.Steps, p.Alone) {
			t.Errorf("car %d charges otherwise", i)
		}

		if err := checked(p, &plan); err != nil {
			t.Errorf("car %d: %v", i, err)
		}

		given += len(plan.Discharges)
	}

	if given < 20 {
		t.Errorf("the cars give %d times", given)
	}
}

// TestSolve_FirstOfAlike has a car that may give for five of eight half-hours of one price, and charges again in three of six: it does both
// in the first, with turns counted or not.
func TestSolve_FirstOfAlike(t *testing.T) {
	first := flex.PeriodAt(time.Date(2026, 11, 24, 17, 0, 0, 0, time.UTC))
	for name, turn := range map[string]float64{"curves": 0, "turns counted": 1} {
		p := &discharge.Problem{
			From: first.Start(), ReadyBy: first.Add(20).Start(),
			Charge: 10_000, Most: 2000, Limit: flex.NoLimit,
			Stored: 20_000, Capacity: 40_000, Reserve: 20_000 - 5000/discharge.Efficiency, Wear: 2, Turn: turn,
		}

		for i := range 20 {
			rate := discharge.Rate{Period: first.Add(i), Buy: 40, Sell: 5}
			switch {
			case i < 8:
				rate.Sell = 35
			case i >= 12 && i < 18:
				rate.Buy = 7
				p.Open = append(p.Open, rate.Span())
			}
			p.Rates = append(p.Rates, rate)
		}

		p.Alone = []flex.Step{{Span: flex.Span{From: p.From, To: p.ReadyBy}}}
		plan := discharge.Solve(p)
		gives := flex.Span{From: first.Start(), To: first.Add(5).Start()}
		if len(plan.Discharges) != 1 || plan.Discharges[0].Span != gives {
			t.Errorf("%s: it gives %v", name, plan.Discharges)
		}
		if len(plan.Steps) != 3 || plan.Steps[1].From != first.Add(12).Start() {
			t.Errorf("%s: it charges %v", name, plan.Steps)
		}
	}
}

// BenchmarkSolve plans a night of 32 half-hours at one rate a day and another at night.
func BenchmarkSolve(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	p, _ := randomCar(r, 32)
	p.Open = nil

	for t := range p.Rates {
		p.Rates[t].Buy, p.Rates[t].Sell = 30, 15

		if t >= 14 && t < 26 {
			p.Rates[t].Buy = 7
			p.Open = append(p.Open, p.Rates[t].Span())
		}
	}

	p.Alone = alone(p, p.Stored+5000)

	for b.Loop() {
		discharge.Solve(p)
	}
}
