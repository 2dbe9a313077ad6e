package battery_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/check"
	"flexd/internal/lab/certificate"
	"flexd/internal/lab/verify"
)

// drawModes draws a small battery with as many levels as the planner's grid has, so that
// the planner must be exact.
func drawModes(t *rapid.T) *battery.ModeProblem {
	whole := func(lo, hi int, name string) int { return rapid.IntRange(lo, hi).Draw(t, name) }
	p := &battery.ModeProblem{
		Min: whole(0, 20, "min"), ChargeStep: whole(0, 90, "charge"), DischargeStep: whole(0, 90, "discharge"),
		ChargeEff:    rapid.SampledFrom([]float64{0.8, 0.95, 1}).Draw(t, "charge eff"),
		DischargeEff: rapid.SampledFrom([]float64{0.8, 0.95, 1}).Draw(t, "discharge eff"),
		Terminal:     float64(whole(0, 20, "terminal")),
		SwitchCost:   rapid.SampledFrom([]float64{0, 0.01, 0.2}).Draw(t, "switch cost"),
		ReturnCost:   rapid.SampledFrom([]float64{0, 0.01, 0.2}).Draw(t, "return cost"),
		Previous:     battery.Mode(whole(0, 4, "previous")),
	}
	p.Max = p.Min + 128
	p.Init = p.Min + whole(0, 128, "init")
	for range whole(1, 8, "slots") {
		p.Import = append(p.Import, float64(whole(-10, 40, "import")))
		p.Export = append(p.Export, float64(whole(-10, 30, "export")))
		p.Load, p.PV = append(p.Load, whole(0, 60, "load")), append(p.PV, whole(0, 60, "pv"))
	}
	return p
}

// follow is the device, said again: what the modes cost from slot t on.
func follow(p *battery.ModeProblem, t, s int, m battery.Mode) (to int, cost float64) {
	net, up, down := p.Load[t]-p.PV[t], min(p.Max-s, p.ChargeStep), min(s-p.Min, p.DischargeStep)
	switch m {
	case battery.ModeCharge:
		down = 0
	case battery.ModeDischarge:
		up = 0
	case battery.ModeLock:
		up, down = 0, 0
	default:
		down = min(down, max(0, int(math.Floor(float64(net)/p.DischargeEff))))

		up = min(up, max(0, int(math.Floor(float64(-net)*p.ChargeEff))))
		if m == battery.ModeFeedIn {
			up = 0
		}
	}

	g := float64(net) + float64(up)/p.ChargeEff - float64(down)*p.DischargeEff
	price := p.Export[t]
	if g > 0 {
		price = p.Import[t]
	}
	return s + up - down, g * price / 1000
}

// bestModes tries every mode at every level.
func bestModes(p *battery.ModeProblem) float64 {
	n, levels := len(p.Import), p.Max-p.Min+1
	next := make([][5]float64, levels)
	for i := range next {
		for m := range 5 {
			next[i][m] = -p.Terminal * float64(p.Min+i) / 1000
			if battery.Mode(m) != battery.ModeSelfUse {
				next[i][m] += p.ReturnCost
			}
		}
	}

	for t := n - 1; t >= 0; t-- {
		now := make([][5]float64, levels)
		for i := range now {
			var v [5]float64
			least := math.Inf(1)
			for m := range battery.Mode(5) {
				to, cost := follow(p, t, p.Min+i, m)
				v[m] = cost + next[to-p.Min][m]
				least = min(least, v[m])
			}

			for m := range 5 {
				now[i][m] = min(v[m], least+p.SwitchCost)
			}
		}
		next = now
	}
	return next[p.Init-p.Min][p.Previous]
}

func TestSolver_Modes_Exhaustive(t *testing.T) {
	var w battery.Solver
	rapid.Check(t, func(t *rapid.T) {
		p := drawModes(t)
		to := make([]battery.Mode, len(p.Import))
		got := w.SolveModes(p, to)
		cost, s, before := 0.0, p.Init, p.Previous

		for i, m := range to {
			var c float64
			if s, c = follow(p, i, s, m); m != before {
				c += p.SwitchCost
			}
			cost, before = cost+c, m
		}
		cost -= p.Terminal * float64(s) / 1000
		if before != battery.ModeSelfUse {
			cost += p.ReturnCost
		}

		if err := check.Modes(p, to, got); err != nil {
			t.Fatal(err)
		}

		if rapid.IntRange(0, 9).Draw(t, "prove") == 0 { // it takes longer than all the rest
			proven, proof := certificate.OfModes(p, got)
			if err := verify.ModesProof(p, proven, proof); err != nil {
				t.Fatalf("%v\n%+v", err, p)
			}
			if proven.Bound < got.Cost-1e-6 {
				t.Fatalf("%v is proven of %v\n%+v", proven.Bound, got.Cost, p)
			}
			spoilProof(t, &proof, got.Cost, 0.01, func(f battery.Result) error { return verify.ModesProof(p, f, proof) })
		}

		spoilt := got
		if spoilt.Cost -= 0.01; check.Modes(p, to, spoilt) == nil {
			t.Fatal("a spoilt plan passed")
		}
		if want := bestModes(p); math.Abs(got.Cost-want) > 1e-9 || math.Abs(cost-want) > 1e-9 || got.Bound > want+1e-9 {
			t.Fatalf("says %v, costs %v, bound %v, the best is %v\n%+v\n%v", got.Cost, cost, got.Bound, want, p, to)
		}
	})
}

// inTurn counts what breaks ties, in Wh and slots: each slot in another mode than SELF_USE as 1000, and what is given or left by its slot.
func inTurn(p *battery.ModeProblem, modes []battery.Mode) (cost float64, ties int) {
	s, before := p.Init, p.Previous
	for t, m := range modes {
		to, c := follow(p, t, s, m)
		if m != before {
			c += p.SwitchCost
		}
		if m != battery.ModeSelfUse {
			ties += 1000
		}
		ties += t * max(0, s-to)
		cost, s, before = cost+c, to, m
	}

	if before != battery.ModeSelfUse {
		cost += p.ReturnCost
	}
	return cost - p.Terminal*float64(s)/1000, ties + len(modes)*s
}

// TestSolver_Modes_Ties tries all plans of a few slots with prices too close to buy for later: of those that cost the least the planner takes the one
// that is at SELF_USE more and gives what it stores sooner.
func TestSolver_Modes_Ties(t *testing.T) {
	var w battery.Solver
	tied := 0
	rapid.Check(t, func(t *rapid.T) {
		p := drawModes(t)
		n := min(4, len(p.Import))
		p.Import, p.Export, p.Load, p.PV = p.Import[:n], p.Export[:n], p.Load[:n], p.PV[:n]
		for i := range n {
			p.Import[i] = rapid.SampledFrom([]float64{20, 20 / p.ChargeEff / p.DischargeEff}).Draw(t, "price")
			p.Export[i] = 10
		}

		p.Terminal = p.DischargeEff * 20
		to := make([]battery.Mode, n)
		w.SolveModes(p, to)
		cost, ties := inTurn(p, to)
		modes, plans := make([]battery.Mode, n), 1
		for range n {
			plans *= 5
		}

		same := 0
		for k := range plans {
			for i, rest := 0, k; i < n; i, rest = i+1, rest/5 {
				modes[i] = battery.Mode(rest % 5)
			}

			c, other := inTurn(p, modes)
			if c < cost-1e-9 || c < cost+1e-9 && other < ties {
				t.Fatalf("%v costs %v, %v; the planner's %v costs %v, %v\n%+v", modes, c, other, to, cost, ties, p)
			}
			if c < cost+1e-9 {
				same++
			}
		}

		if same > 1 {
			tied++
		}
	})

	if tied == 0 {
		t.Error("no two plans cost the same")
	}
}

// TestModeProblem_Buys: energy is bought for later where what is left of it after losses is worth more than it cost, wear counted.
func TestModeProblem_Buys(t *testing.T) {
	for _, c := range []struct {
		buy, sell []float64
		wear      float64
		want      bool
	}{
		{nil, nil, 0, false},
		{[]float64{28}, []float64{60}, 0, false},
		{[]float64{28, 28}, []float64{15, 15}, 0, false},
		{[]float64{80, 100}, []float64{0, 0}, 0, false},
		{[]float64{79.99, 100}, []float64{0, 0}, 0, true},
		{[]float64{100, 79.99}, []float64{0, 0}, 0, false},
		{[]float64{71.99, 100}, []float64{0, 0}, 10, true},
		{[]float64{72, 100}, []float64{0, 0}, 10, false},
		{[]float64{9, 28, 9}, []float64{15, 15, 15}, 0, true},
		{[]float64{9, 9}, []float64{15, 15}, 0, true},
		{[]float64{-5, -5}, []float64{-5, -5}, 0, true},
	} {
		p := battery.ModeProblem{Import: c.buy, Export: c.sell, Wear: c.wear, ChargeEff: 0.8, DischargeEff: 1}
		if got := p.Buys(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestSolver_Modes_NoRoom(t *testing.T) {
	p := &battery.ModeProblem{Import: []float64{10, 20}, Export: []float64{5, 5}, Load: []int{1000, 0}, PV: []int{0, 1000},
		Min: 500, Max: 500, Init: 500, ChargeStep: 100, DischargeStep: 100, ChargeEff: 1, DischargeEff: 1, Previous: battery.ModeLock, SwitchCost: 1}
	to := make([]battery.Mode, 2)
	if f := new(battery.Solver).SolveModes(p, to); f.Cost != 10-5 || to[0] != battery.ModeLock || to[1] != battery.ModeLock {
		t.Errorf("%+v %v", f, to)
	}
}

func TestMode_Names(t *testing.T) {
	for m := range battery.Mode(5) {
		if got, ok := battery.ParseMode(m.String()); !ok || got != m {
			t.Errorf("%v reads back as %v", m, got)
		}
	}
	if _, ok := battery.ParseMode("self_use"); ok || battery.Mode(9).String() != "unknown mode" {
		t.Error("a mode that is none has a name")
	}
}
