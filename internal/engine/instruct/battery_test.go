package instruct_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/charge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
)

// device is this test's own model of a battery. For mode m in slot t from a level, it returns
// the level after it, what is drawn, and what that costs in pence.
type device struct{ *battery.ModeProblem }

func (d device) step(t, level int, m battery.Mode) (int, float64, float64) {
	net := float64(d.Load[t] - d.PV[t])
	y := 0

	switch m {
	case battery.ModeCharge:
		y = d.ChargeStep
	case battery.ModeDischarge:
		y = -d.DischargeStep
	case battery.ModeFeedIn, battery.ModeSelfUse:
		if net > 0 {
			y = -min(d.DischargeStep, int(net/d.DischargeEff))
		} else if m == battery.ModeSelfUse {
			y = min(d.ChargeStep, int(-net*d.ChargeEff))
		}
	}

	next := max(d.Min, min(level+y, d.Max))
	grid := float64(next - level)
	if grid > 0 {
		grid /= d.ChargeEff
	} else {
		grid *= d.DischargeEff
	}

	price := d.Import[t]
	if net+grid < 0 {
		price = d.Export[t]
	}

	return next, grid, (net + grid) * price / 1000
}

// run is what modes cost in pence, and what they draw in each slot.
func (d device) run(modes []battery.Mode) (float64, []float64) {
	var pence float64
	var drawn []float64
	level, before := d.Init, d.Previous
	for t, m := range modes {
		next, grid, cost := d.step(t, level, m)
		pence += cost
		if m != before {
			pence += d.SwitchCost
		}
		level, before = next, m
		drawn = append(drawn, grid)
	}

	return pence - d.Terminal*float64(level)/1000, drawn
}

// randomCall returns a battery for six half-hours with a plan in force. The instruction has
// two or three of the half-hours.
func randomCall(r *rand.Rand) instruct.BatteryCall {
	const n = 6
	p := battery.ModeProblem{
		Min:           1000,
		Max:           8000 + r.IntN(4000),
		ChargeStep:    500 + r.IntN(1500),
		DischargeStep: 500 + r.IntN(1500),
		ChargeEff:     0.95,
		DischargeEff:  0.95,
		Terminal:      float64(r.IntN(20)),
		SwitchCost:    0.5,
		Previous:      battery.Mode(r.IntN(5)),
	}
	p.Init = p.Min + r.IntN(p.Max-p.Min+1)
	c := instruct.BatteryCall{Problem: p, Up: r.IntN(2) == 0}
	first, length := r.IntN(3), 2+r.IntN(2)

	for t := range n {
		c.Problem.Import = append(c.Problem.Import, float64(5+r.IntN(30)))
		c.Problem.Export = append(c.Problem.Export, float64(r.IntN(20)))
		c.Problem.Load = append(c.Problem.Load, r.IntN(800))
		c.Problem.PV = append(c.Problem.PV, r.IntN(600))
		c.InForce = append(c.InForce, battery.Mode(r.IntN(5)))
		c.May = append(c.May, battery.AllModes)
		if r.IntN(3) == 0 {
			c.May[t] = battery.Modes(battery.ModeLock)
		}

		c.Asked = append(c.Asked, t >= first && t < first+length)
		c.After = append(c.After, t == first-1 || t == first+length)
	}

	return c
}

// TestBatteryCall compares the calls of 300 batteries with every sequence of modes. Each mode
// is one that the site allows or that was planned. In no slot that is asked for, cut by the
// window or after it does the battery move against the instruction. The cost is exact. No
// other sequence that keeps these rules is better by more than the step of the planner's grid.
func TestBatteryCall(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	var w battery.Solver
	worst := 0.0
	for k := range 300 {
		c := randomCall(r)
		f := c.Call(&w)
		d := device{&c.Problem}
		with, drawn := d.run(f.Modes)
		without, planned := d.run(c.InForce)
		if math.Abs(f.Cost-(with-without)) > 1e-6 {
			t.Fatalf("case %d: the cost is %v, not %v", k, f.Cost, with-without)
		}

		best := math.Inf(1)
		each(&c, func(modes []battery.Mode) {
			pence, drawn := d.run(modes)
			if !opposes(&c, drawn, planned) {
				best = min(best, pence-worth(&c, drawn, planned))
			}
		})
		worst = max(worst, with-worth(&c, drawn, planned)-best)
		if opposes(&c, drawn, planned) {
			t.Fatalf("case %d: %v drawn, planned %v; asked in %v, after in %v, up %t", k, drawn, planned, c.Asked, c.After, c.Up)
		}

		for s, m := range f.Modes {
			if !fits(&c, s, m) {
				t.Fatalf("case %d: %v in slot %d, planned %v", k, m, s, c.InForce[s])
			}
		}
	}

	if worst > 1 { // pence; the planner knows the worth of energy on a grid of levels only
		t.Errorf("another sequence is better by %.2f p", worst)
	}
	t.Logf("worst: %.2f p", worst)
}

// worth is what the change of a battery is worth in pence.
func worth(c *instruct.BatteryCall, drawn, planned []float64) float64 {
	sum := 0.0
	for t := range drawn {
		if c.Asked[t] && c.Up {
			sum += drawn[t] - planned[t]
		} else if c.Asked[t] {
			sum += planned[t] - drawn[t]
		}
	}

	return sum * instruct.BatteryWorth / 1000
}

// opposes reports whether a battery moves against the instruction in a slot that is asked for,
// cut or after the window.
func opposes(c *instruct.BatteryCall, drawn, planned []float64) bool {
	for t := range drawn {
		more := drawn[t] - planned[t]
		if c.Up {
			more = -more
		}
		if (c.Asked[t] || c.After[t]) && more > 1e-6 {
			return true
		}
	}

	return false
}

// fits reports whether a mode may be sent in a slot.
func fits(c *instruct.BatteryCall, t int, m battery.Mode) bool {
	if m == c.InForce[t] {
		return true
	}
	if !c.May[t].Has(m) {
		return false
	}
	if !c.Asked[t] && !c.After[t] {
		return true
	}

	free := c.Problem // with room for any move
	free.Min, free.Max = -1e6, 1e6
	d := device{&free}
	_, a, _ := d.step(t, 0, m)
	_, b, _ := d.step(t, 0, c.InForce[t])

	return c.Up && a >= b || !c.Up && a <= b
}

// each goes through all sequences of modes that may be sent.
func each(c *instruct.BatteryCall, do func([]battery.Mode)) {
	modes := make([]battery.Mode, len(c.InForce))
	var from func(t int)
	from = func(t int) {
		if t == len(modes) {
			do(modes)
			return
		}

		for m := range battery.ModeCount {
			if fits(c, t, m) {
				modes[t] = m
				from(t + 1)
			}
		}
	}
	from(0)
}

// TestEase: of two called batteries that may bring less, the more expensive one does, if the
// target is still reached.
func TestEase(t *testing.T) {
	called := []instruct.Candidate{
		{Change: []charge.Joules{60, 60}, Cost: 50, Quality: 100},
		{Change: []charge.Joules{60, 60}, Cost: 90, Quality: 100},
	}
	half := func(cost flex.MicroPounds) *instruct.Candidate {
		return &instruct.Candidate{Change: []charge.Joules{30, 30}, Cost: cost, Quality: 100}
	}

	for _, c := range []struct {
		name   string
		target charge.Joules
		less   []*instruct.Candidate
		want   []int
	}{
		{"all is needed", 120, []*instruct.Candidate{half(20), half(20)}, nil},
		{"one is enough by half: the dearer", 90, []*instruct.Candidate{half(20), half(20)}, []int{1}},
		{"both are", 60, []*instruct.Candidate{half(20), half(20)}, []int{1, 0}},
		{"the dearer has nothing less", 90, []*instruct.Candidate{half(20), nil}, []int{0}},
		{"less is dearer", 90, []*instruct.Candidate{half(51), half(91)}, nil},
		{"nothing reaches it, and less would miss more", 500, []*instruct.Candidate{half(20), half(20)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := instruct.Ease([]charge.Joules{c.target, c.target}, called, c.less)
			if len(got) != len(c.want) {
				t.Fatalf("%v, not %v", got, c.want)
			}

			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("%v, not %v", got, c.want)
				}
			}
		})
	}
}
