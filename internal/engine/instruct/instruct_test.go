package instruct

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/check"
	"flexd/internal/flex"
)

var evening = time.Date(2026, 1, 15, 17, 10, 0, 0, time.UTC)

// drawCar draws a car's problem.
func drawCar(t *rapid.T) charge.Problem {
	p := charge.Problem{
		From: evening, ReadyBy: evening.Add(time.Duration(rapid.IntRange(1, 13*12).Draw(t, "ready")) * 5 * time.Minute),
		Need:  flex.WattHours(rapid.IntRange(0, 40).Draw(t, "need") * 1000),
		Power: rapid.SampledFrom([]flex.Watts{3680, 7400, 11000}).Draw(t, "power"),
		Mode:  rapid.SampledFrom([]flex.ChargingMode{flex.Minimise, flex.Maximise}).Draw(t, "mode"), PauseAbove: 300e6,
		AllOffPeak: rapid.Bool().Draw(t, "one rate"), MayChargePeak: rapid.Bool().Draw(t, "peak"),
	}

	if !p.AllOffPeak {
		p.OffPeak = []flex.Span{{From: evening, To: evening.Add(2 * time.Hour)}, {From: evening.Add(6 * time.Hour), To: evening.Add(11 * time.Hour)}}
	}

	if rapid.IntRange(0, 5).Draw(t, "charge now") == 0 {
		p.ChargeNow = flex.Span{From: p.From, To: p.From.Add(time.Hour)}
	}

	for i := range 28 {
		p.Prices = append(p.Prices, flex.PricedPeriod{
			Period: flex.PeriodAt(evening).Add(i), Price: flex.Price(rapid.IntRange(-2, 40).Draw(t, "price") * 10e6), Known: true,
		})
	}

	return p
}

func drawOrder(t *rapid.T) Order {
	from := evening.Add(time.Duration(rapid.IntRange(0, 24).Draw(t, "from")) * 5 * time.Minute)
	return Order{
		Window: flex.Span{From: from, To: from.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "length")) * 5 * time.Minute)},
		Up:     rapid.Bool().Draw(t, "up"),
	}
}

// checkCall checks that a called car's plan keeps its rules, meets as much of the need as
// without the call, takes no more energy in peak time, and leaves charge-now as it is.
func checkCall(p charge.Problem, f *Offer) error {
	free := charge.Solve(p)
	switch {
	case check.Charge(f.Problem, f.Plan) != nil:
		return check.Charge(f.Problem, f.Plan)
	case f.Plan.Shortfall > free.Shortfall:
		return fmt.Errorf("%d Wh are missing, %d without", f.Plan.Shortfall, free.Shortfall)
	case taken(&p, f.Plan.Steps) > taken(&p, free.Steps)+int64(p.Power)*60:
		return fmt.Errorf("%d Ws from peak time, %d without", taken(&p, f.Plan.Steps), taken(&p, free.Steps))
	}

	now := p.ChargeNow
	if !now.Empty() && Drawn(f.Plan.Steps, p.Power, now) != charge.Joules(p.Power)*charge.Joules(now.Len()/time.Second) {
		return fmt.Errorf("charge-now is not kept")
	}
	return nil
}

// taken counts the watt-seconds of peak time, second by second: without the planner's periods.
func taken(p *charge.Problem, steps []flex.Step) (sum int64) {
	for _, s := range steps {
		for at := s.From; s.Limit > 0 && at.Before(s.To); at = at.Add(time.Minute) {
			inside := func(o flex.Span) bool { return o.Contains(at) }
			if !p.AllOffPeak && !slices.ContainsFunc(p.OffPeak, inside) && !p.ChargeNow.Contains(at) {
				sum += int64(min(s.Limit, p.Power)) * 60
			}
		}
	}
	return sum
}

// TestCall_NeedsKept calls cars and looks at what their plans owe.
func TestCall_NeedsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawCar(t), drawOrder(t)
		inForce := charge.Solve(p)
		if rapid.Bool().Draw(t, "others come back") {
			o.Rebound = NewRebound(o.Window.To, flex.FromKW(float64(rapid.IntRange(0, 300).Draw(t, "instructed kW"))))
			o.Over = rapid.Bool().Draw(t, "over")
			for n := range rapid.IntRange(0, 5).Draw(t, "others") {
				from := o.Window.To.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "other's minute")) * time.Minute)
				o.Rebound.Add([]flex.Step{{Span: flex.Span{From: from, To: from.Add(time.Duration(n+1) * time.Hour)}, Limit: flex.NoLimit}}, nil, 7400)
			}
		}

		f := Call(o, p, inForce.Steps)
		if err := checkCall(p, &f); err != nil {
			t.Fatal(err)
		}

		for i, s := range Slots(o.Window) {
			change := Drawn(inForce.Steps, p.Power, s) - Drawn(f.Plan.Steps, p.Power, s)
			if o.Up {
				change = -change
			}
			if f.Change[i] != change {
				t.Fatalf("slot %d: %d, not %d", i, f.Change[i], change)
			}
		}
	})
}

// TestCall_LeastKept: a car charges in no minute of a window that its need can do without.
func TestCall_LeastKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawCar(t), drawOrder(t)
		p.ChargeNow, p.AllOffPeak, p.Mode = flex.Span{}, true, flex.Minimise
		free := charge.Solve(p)
		closed := []flex.Span{o.Window}
		q, plan := Close(p, closed)

		outside := charge.Joules(0)
		for _, s := range Without([]flex.Span{{From: p.From, To: p.ReadyBy}}, closed) {
			outside += charge.Joules(p.Power) * charge.Joules(s.Len()/time.Second)
		}

		within := charge.Joules(0)
		for _, s := range Slots(o.Window.Meet(flex.Span{From: p.From, To: p.ReadyBy})) {
			within += Drawn(plan.Steps, p.Power, s)
		}

		// What does not fit outside must be drawn inside, as far as it was before. A
		// difference of a minute is rounding.
		must := max(0, min(charge.Joules(p.Need)*3600, charge.Joules(free.Energy)*3600)-outside)
		if within > must+2*60*charge.Joules(p.Power) {
			t.Fatalf("%d J within, %d must be; limits %v", within, must, q.Limits)
		}
	})
}

// TestCall_PlantedFault shows that a plan that ignores the need is found.
func TestCall_PlantedFault(t *testing.T) {
	p := charge.Problem{From: evening, ReadyBy: evening.Add(time.Hour), Need: 7400, Power: 7400, AllOffPeak: true, Mode: flex.Minimise}
	f := Call(Order{Window: flex.Span{From: evening, To: evening.Add(time.Hour)}}, p, charge.Solve(p).Steps)
	if checkCall(p, &f) != nil {
		t.Fatal(checkCall(p, &f))
	}

	f.Problem.Limits = []flex.Step{{Span: flex.Span{From: evening, To: evening.Add(time.Hour)}}}
	f.Plan = charge.Solve(f.Problem)
	if checkCall(p, &f) == nil {
		t.Error("a need that is not met was not found")
	}
}

// drawFleet draws candidates and targets.
func drawFleet(t *rapid.T, slots int) (target []charge.Joules, all []Candidate) {
	for range slots {
		target = append(target, charge.Joules(rapid.IntRange(0, 25).Draw(t, "target")))
	}
	for range rapid.IntRange(0, 9).Draw(t, "cars") {
		c := Candidate{Cost: flex.MicroPounds(rapid.IntRange(-3, 60).Draw(t, "cost")), Quality: 100}
		for range slots {
			c.Change = append(c.Change, charge.Joules(rapid.SampledFrom([]int{0, 0, 3, 7, 11}).Draw(t, "change")))
		}
		all = append(all, c)
	}
	return target, all
}

// reference finds the least cost of all choices that leave as little missing as any, by trying
// every one. A car that saves money is called only for its change, and its cost counts as 0.
func reference(target []charge.Joules, all []Candidate) (missing charge.Joules, cost flex.MicroPounds) {
	missing, cost = math.MaxInt64, math.MaxInt64
	for choice := range uint(1) << len(all) {
		left := slices.Clone(target)
		paid := flex.MicroPounds(0)
		for rest := choice; rest != 0; rest &= rest - 1 {
			c := &all[bits.TrailingZeros(rest)]
			paid += max(0, c.Cost)
			for t := range left {
				left[t] -= c.Change[t]
			}
		}

		sum := charge.Joules(0)
		for _, l := range left {
			sum += max(0, l)
		}
		if sum < missing || sum == missing && paid < cost {
			missing, cost = sum, paid
		}
	}
	return missing, cost
}

// chosen is what a choice leaves missing and costs.
func chosen(target []charge.Joules, all []Candidate, called []int) (missing charge.Joules, cost, last flex.MicroPounds) {
	left := slices.Clone(target)
	for _, i := range called {
		subtractChange(left, &all[i], -1)
		last = max(0, all[i].Cost)
		cost += last
	}
	return shortfall(left), cost, last
}

// TestChoose_Reference compares choices for small fleets with all possible ones. The target is
// reached as far as by any choice. With one slot, all cars but the last cost no more than the
// cheapest choice.
func TestChoose_Reference(t *testing.T) {
	ratio, most, n := 0.0, 0.0, 0
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 4).Draw(t, "slots")
		target, all := drawFleet(t, slots)
		called := Choose(target, all, true)
		missing, cost := reference(target, all)
		got, paid, last := chosen(target, all, called)
		if got != missing || paid < cost {
			t.Fatalf("%d missing at %d, the reference has %d at %d", got, paid, missing, cost)
		}

		if slots == 1 && missing == 0 && paid-last > cost {
			t.Fatalf("%d without the last car, the cheapest costs %d", paid-last, cost)
		}

		if slots > 1 && cost > 0 {
			over := float64(paid)/float64(cost) - 1
			ratio, most, n = ratio+over, max(most, over), n+1
		}
	})

	t.Logf("several slots: %.1f %% dearer than the cheapest on average, %.0f %% at most, of %d", 100*ratio/float64(max(1, n)), 100*most, n)
}

// TestChoose_PlantedFault shows that a choice that is too dear is found by the reference.
func TestChoose_PlantedFault(t *testing.T) {
	target := []charge.Joules{7}
	all := []Candidate{{Change: []charge.Joules{7}, Cost: 9, Quality: 100}, {Change: []charge.Joules{7}, Cost: 2, Quality: 100}}
	if _, cost := reference(target, all); cost != 2 {
		t.Fatalf("the cheapest is 2, not %d", cost)
	}
	if _, paid, _ := chosen(target, all, []int{0}); paid != 9 {
		t.Fatal("the dear one costs 9")
	}
	if got := Choose(target, all, true); !slices.Equal(got, []int{1}) {
		t.Errorf("chosen: %v", got)
	}
}

func TestChoose(t *testing.T) {
	seven := func(cost flex.MicroPounds, calls int, quality Percent) Candidate {
		return Candidate{Change: []charge.Joules{7}, Cost: cost, Calls: calls, Quality: quality}
	}

	for name, c := range map[string]struct {
		target charge.Joules
		all    []Candidate
		unfair bool
		want   []int
	}{
		"nothing asked":                     {0, []Candidate{seven(1, 0, 100)}, false, nil},
		"the cheapest":                      {7, []Candidate{seven(5, 0, 100), seven(3, 0, 100)}, false, []int{1}},
		"of equals the first":               {7, []Candidate{seven(3, 0, 100), seven(3, 0, 100)}, false, []int{0}},
		"who was not called goes first":     {7, []Candidate{seven(1, 1, 100), seven(9, 0, 100)}, false, []int{1}},
		"unless asked":                      {7, []Candidate{seven(1, 1, 100), seven(9, 0, 100)}, true, []int{0}},
		"who was called, if all are needed": {14, []Candidate{seven(1, 1, 100), seven(9, 0, 100)}, false, []int{1, 0}},
		"half counted on takes two":         {6, []Candidate{seven(1, 0, 50), seven(1, 0, 50), seven(1, 0, 50)}, false, []int{0, 1}},
		"not reached":                       {70, []Candidate{seven(1, 0, 100)}, false, []int{0}},
	} {
		if got := Choose([]charge.Joules{c.target}, c.all, !c.unfair); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}

// TestRebound_Full checks that a slot counts as filled by the most that is drawn in it, that
// what would be drawn anyway does not count, and that no car is kept out of a slot to which no
// other car returns.
func TestRebound_Full(t *testing.T) {
	end := evening.Add(time.Hour)
	at := func(from, to int) flex.Span {
		return flex.Span{From: end.Add(time.Duration(from) * time.Minute), To: end.Add(time.Duration(to) * time.Minute)}
	}
	on := func(spans ...flex.Span) (steps []flex.Step) {
		for _, s := range spans {
			steps = append(steps, flex.Step{Span: s, Limit: flex.NoLimit})
		}
		return steps
	}

	r := NewRebound(end, 150_000) // 15 kW above the plans
	r.Add(on(at(0, 60)), on(at(0, 30)), 7400)
	r.Add(on(at(42, 71)), nil, 7400)
	for _, c := range []struct {
		power flex.Watts
		level Percent
		want  []flex.Span
	}{
		{7400, 100, []flex.Span{at(40, 60)}},
		{7400, 200, nil},
		{11_000, 100, []flex.Span{at(30, 75)}},
		{99_000, 100, []flex.Span{at(30, 75)}},
	} {
		if got := r.fullSpans(c.power, c.level); !slices.Equal(got, c.want) {
			t.Errorf("%d W at %d %%: %v, not %v", c.power, c.level, got, c.want)
		}
	}
}
