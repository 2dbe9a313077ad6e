package slots_test

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"flexd/internal/lab/certificate"
	"flexd/internal/lab/slots"
	"flexd/internal/lab/verify"
)

// drawSlots draws a small car problem: few slots, few prices, sizes that need not agree.
func drawSlots(t *rapid.T, most int) *slots.Slots {
	n := rapid.IntRange(1, most).Draw(t, "slots")
	p := &slots.Slots{Price: make([]float64, n), Full: make([]float64, n), Least: make([]float64, n)}
	share := rapid.SampledFrom([]float64{0, 0.2, 0.4, 1}).Draw(t, "least share")
	for i := range n {
		p.Price[i] = float64(rapid.IntRange(-3, 20).Draw(t, "price"))
		hours := 0.5
		if odd := rapid.IntRange(0, 9).Draw(t, "odd"); i == 0 || i == n-1 || odd == 0 {
			hours = rapid.SampledFrom([]float64{0, 0.1, 0.35, 0.5}).Draw(t, "hours")
		}
		p.Full[i], p.Least[i] = 7*hours, 7*hours*share
	}

	p.Need = float64(rapid.IntRange(0, 36*n).Draw(t, "need")) / 10
	p.StartCost = rapid.SampledFrom([]float64{0, 1, 7, 40}).Draw(t, "start cost")
	p.MinRun = rapid.IntRange(0, 4).Draw(t, "min run")
	return p
}

// fillPattern is the least cost of a pattern that takes exactly need, or NaN.
func fillPattern(p *slots.Slots, on uint, need float64) float64 {
	var order []int
	cost, rest := 0.0, need
	for t := range p.Price {
		if on>>t&1 == 1 {
			order = append(order, t)
			cost += p.Least[t] * p.Price[t]
			rest -= p.Least[t]
		}
	}
	if rest < -1e-9 {
		return math.NaN()
	}

	slices.SortFunc(order, func(a, b int) int { return int(p.Price[a] - p.Price[b]) })
	for _, t := range order {
		e := min(rest, p.Full[t]-p.Least[t])
		cost += e * p.Price[t]
		rest -= e
	}
	if rest > 1e-9 {
		return math.NaN()
	}
	return cost
}

// allowedPattern says whether a pattern keeps the least run and is on only where it can.
func allowedPattern(p *slots.Slots, on uint) bool {
	last, run := 0, p.MinRun
	for t, full := range p.Full {
		if full > 0 {
			last = t
		} else if on>>t&1 == 1 {
			return false
		}
	}

	for t := range p.Full {
		switch {
		case on>>t&1 == 1:
			run++
		case run < p.MinRun:
			return false
		}

		if on>>t&1 == 0 {
			run = p.MinRun // off: the next run starts from nothing
		} else if t == 0 || on>>(t-1)&1 == 0 {
			run = 1
		}
		if t == last {
			break
		}
	}
	return true
}

// bestPattern tries every pattern for exactly need. It returns the least cost, or +Inf.
func bestPattern(p *slots.Slots, need float64) float64 {
	best := math.Inf(1)
	for on := uint(0); on < 1<<len(p.Price); on++ {
		if !allowedPattern(p, on) {
			continue
		}
		starts := float64(bits.OnesCount(on &^ (on << 1)))
		if c := fillPattern(p, on, need) + starts*p.StartCost; c < best {
			best = c
		}
	}
	return best
}

// leastAbove is the least energy above need that a pattern can take.
func leastAbove(p *slots.Slots, need float64) float64 {
	best := math.Inf(1)
	for on := uint(0); on < 1<<len(p.Price); on++ {
		if !allowedPattern(p, on) {
			continue
		}

		sum := 0.0
		for t := range p.Price {
			if on>>t&1 == 1 {
				sum += p.Least[t]
			}
		}
		if sum > need {
			best = min(best, sum)
		}
	}
	return best
}

// mostOf is the most energy that a pattern can take.
func mostOf(p *slots.Slots) (most float64) {
	for on := uint(0); on < 1<<len(p.Price); on++ {
		if allowedPattern(p, on) {
			sum := 0.0
			for t, full := range p.Full {
				sum += float64(on>>t&1) * full
			}
			most = max(most, sum)
		}
	}
	return most
}

// wantExact holds a planner against every pattern.
func wantExact(t *rapid.T, w *slots.Solver, p *slots.Slots, got slots.Result, x []float64) {
	need := min(p.Need, mostOf(p))
	best := bestPattern(p, need)
	if met := !math.IsInf(best, 1) && need > p.Need-1e-9; met != got.Met {
		t.Fatalf("met %v, want %v\n%+v\n%v", got.Met, met, p, x)
	}

	if math.IsInf(best, 1) {
		need = leastAbove(p, need)
		best = bestPattern(p, need)
	}
	if math.Abs(got.Energy-need) > 1e-6 || math.Abs(got.Cost-best) > 1e-6 || got.Bound > best+1e-6 || got.Bound < got.Cost-1e-6 {
		t.Fatalf("%v kWh for %v (bound %v), want %v for %v\n%+v\n%v", got.Energy, got.Cost, got.Bound, need, best, p, x)
	}
	if err := verify.Slots(p, x, got); err != nil {
		t.Fatalf("%v\n%+v\n%v", err, p, x)
	}

	spoil(t, p, got, x)
	proof := certificate.OfSlots(p, got)
	if err := verify.SlotsProof(p, got, proof); err != nil {
		t.Fatalf("%v\n%+v\n%+v\n%v", err, p, got, x)
	}
	spoilSlotsProof(t, &proof, best, 0.01, func(f slots.Result) error {
		f.Energy, f.Met = got.Energy, true
		return verify.SlotsProof(p, f, proof)
	})

	on := uint(0)
	for i, e := range x {
		if e > 1e-9 || e > 0 && p.Least[i] == 0 {
			on |= 1 << i
		}
		if e < 0 || e > p.Full[i]+1e-9 || e > 1e-9 && e < p.Least[i]-1e-9 {
			t.Fatalf("slot %d takes %v\n%+v", i, e, p)
		}
	}
	if share := p.Least[0] > 0; share && !allowedPattern(p, on) {
		t.Fatalf("a run is too short: %b\n%+v", on, p)
	}
}

// spoil changes one thing of a plan, which Slots must see.
func spoil(t *rapid.T, p *slots.Slots, f slots.Result, x []float64) {
	i := rapid.IntRange(0, len(x)-1).Draw(t, "spoilt")
	before := x[i]

	switch rapid.IntRange(0, 4).Draw(t, "how") {
	case 0:
		f.Cost -= 0.01
	case 1:
		f.Bound = f.Cost + 0.01
	case 2:
		f.Energy += 0.01
	case 3:
		x[i] = p.Full[i] + 0.01
	case 4:
		x[i] = -0.01
	}

	if verify.Slots(p, x, f) == nil {
		t.Fatalf("a spoilt plan passed: %+v\n%+v\n%v", p, f, x)
	}
	x[i] = before
}

func TestSolver_Switch_Exhaustive(t *testing.T) {
	var w slots.Solver
	rapid.Check(t, func(t *rapid.T) {
		p := drawSlots(t, 9)
		if p.Least[slices.Index(p.Full, slices.Max(p.Full))] == 0 {
			t.Skip("a slot that is on takes something")
		}
		x := make([]float64, len(p.Price))
		wantExact(t, &w, p, w.Switch(p, x), x)
	})
}

func TestSolver_LeastPower_Exhaustive(t *testing.T) {
	var w slots.Solver
	rapid.Check(t, func(t *rapid.T) {
		p := drawSlots(t, 9)
		p.StartCost, p.MinRun = 0, 0
		x := make([]float64, len(p.Price))
		wantExact(t, &w, p, w.LeastPower(p, x), x)
	})
}

// TestSolver_Fill_Exhaustive gives every tenth of a slot to a cheapest place, one by
// one, among all orders of duties.
func TestSolver_Fill_Exhaustive(t *testing.T) {
	var w slots.Solver
	rapid.Check(t, func(t *rapid.T) {
		p := drawSlots(t, 8)
		p.StartCost, p.MinRun, p.Least = 0, 0, nil
		if rapid.Bool().Draw(t, "tiers") {
			p.OffPeak = rapid.SliceOfN(rapid.Bool(), len(p.Price), len(p.Price)).Draw(t, "off-peak")
			p.MayChargePeak, p.OpenOffPeak = rapid.Bool().Draw(t, "may peak"), rapid.Bool().Draw(t, "open")
		}

		x := make([]float64, len(p.Price))
		got := w.Fill(p, x)
		if err := verify.Slots(p, x, got); err != nil {
			t.Fatalf("%v\n%+v\n%v", err, p, x)
		}
		spoil(t, p, got, x)

		// the law, said another way: with peak energy dearer than anything, and forced
		// energy cheaper than anything, it is one problem of plain cost
		cost, energy, peak, inside, room := 0.0, 0.0, 0.0, 0.0, 0.0

		for i, e := range x {
			if e < 0 || e > p.Full[i] {
				t.Fatalf("slot %d takes %v", i, e)
			}
			off := p.OffPeak == nil || p.OffPeak[i]
			energy, cost = energy+e, cost+e*p.Price[i]
			if off {
				inside, room = inside+e, room+p.Full[i]
			} else {
				peak += e
			}

			for j, f := range x {
				offJ := p.OffPeak == nil || p.OffPeak[j]
				if off == offJ && e > 0 && f < p.Full[j] && p.Price[j] < p.Price[i] && !(off && p.OpenOffPeak && p.OffPeak != nil) {
					t.Fatalf("slot %d at %v is used, slot %d at %v has room\n%+v\n%v", i, p.Price[i], j, p.Price[j], p, x)
				}
			}
		}
		wantInside := min(room, max(0, p.Need))
		if p.OpenOffPeak && p.OffPeak != nil {
			wantInside = room
		}

		wantPeak := 0.0
		if p.OffPeak != nil && p.MayChargePeak {
			all := 0.0
			for _, f := range p.Full {
				all += f
			}
			wantPeak = min(all-room, max(0, p.Need-wantInside))
		}
		if math.Abs(inside-wantInside) > 1e-9 || math.Abs(peak-wantPeak) > 1e-9 || math.Abs(cost-got.Cost) > 1e-9 || math.Abs(energy-got.Energy) > 1e-9 {
			t.Fatalf("%v off-peak and %v peak for %v, want %v and %v: %+v", inside, peak, cost, wantInside, wantPeak, got)
		}
	})
}

// TestSolver_MoreIsNeverWorse: cheaper starts, shorter runs, a lower least power and more
// time never make a plan that meets its need dearer (law S9).
func TestSolver_MoreIsNeverWorse(t *testing.T) {
	var w slots.Solver
	rapid.Check(t, func(t *rapid.T) {
		p := drawSlots(t, 24)
		x := make([]float64, len(p.Price))
		before := w.Switch(p, x)
		q := *p
		q.Full, q.Least = slices.Clone(p.Full), slices.Clone(p.Least)
		i := rapid.IntRange(0, len(x)-1).Draw(t, "slot")

		switch what := rapid.SampledFrom([]string{"start", "run", "least", "time"}).Draw(t, "more"); {
		case what == "start":
			q.StartCost /= 2
		case what == "run" && p.MinRun > 0:
			q.MinRun--
		case what == "least":
			for i := range q.Least {
				q.Least[i] /= 2
			}
		case what == "time" && q.Full[i] == 0 && p.MinRun <= 1:
			q.Full[i] = 1 // more time in a slot there was would raise its least energy too
		}

		if after := w.Switch(&q, x); before.Met && (!after.Met || after.Cost > before.Cost+1e-6) {
			t.Fatalf("%v became %v\n%+v\n%+v", before, after, p, q)
		}
	})
}

// spoilSlotsProof changes one number of a proof. Whatever the change, what is proven then
// is no more than the least cost: the proof of a bound a little above it is refused.
func spoilSlotsProof(t *rapid.T, proof *certificate.Proof, want, margin float64, check func(slots.Result) error) {
	by := float64(rapid.IntRange(-20, 20).Draw(t, "by"))
	pick := func(n int, name string) int { return rapid.IntRange(0, n-1).Draw(t, name) }
	wanted := proof.Wanted[pick(len(proof.Wanted), "slot")]
	at := &wanted[pick(len(wanted), "potential")]
	at.V[pick(len(at.V), "point")] += by
	if check(slots.Result{Cost: want, Bound: want + margin}) == nil {
		t.Fatalf("a proof changed by %v proves more than the least cost %v: %+v", by, want, proof)
	}
}
