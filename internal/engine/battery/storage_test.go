package battery_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"flexd/internal/engine/battery"
	"flexd/internal/lab/certificate"
	"flexd/internal/lab/verify"
)

// drawStorage draws a small battery in which everything lies on a lattice of half a kWh,
// so that an optimum does too.
func drawStorage(t *rapid.T, convex bool) *battery.Storage {
	n := rapid.IntRange(1, 8).Draw(t, "slots")
	whole := func(lo, hi int, name string) float64 { return float64(rapid.IntRange(lo, hi).Draw(t, name)) }
	p := &battery.Storage{
		Max: whole(0, 8, "max"), Charge: whole(0, 4, "charge"), Discharge: whole(0, 4, "discharge"),
		ChargeEff:    rapid.SampledFrom([]float64{0.5, 1}).Draw(t, "charge eff"),
		DischargeEff: rapid.SampledFrom([]float64{0.5, 1}).Draw(t, "discharge eff"),
		Wear:         whole(0, 3, "wear"), Terminal: whole(-2, 12, "terminal"),
		ImportLimit: whole(3, 12, "import limit"), ExportLimit: whole(0, 6, "export limit"),
		Curtail: rapid.Bool().Draw(t, "curtail"),
	}
	p.Min = min(p.Max, whole(0, 2, "min"))
	p.Init = whole(0, 16, "init") / 2

	for range n {
		if convex {
			sell := whole(0, 9, "export")
			p.Export, p.Import = append(p.Export, sell), append(p.Import, sell+whole(0, 9, "more"))
		} else {
			p.Export, p.Import = append(p.Export, whole(-4, 14, "export")), append(p.Import, whole(-6, 12, "import"))
		}
		p.Load, p.PV = append(p.Load, whole(0, 3, "load")), append(p.PV, whole(0, 4, "pv"))
	}

	if rapid.IntRange(0, 3).Draw(t, "bounds") == 0 {
		p.MinAt, p.MaxAt = make([]float64, n), make([]float64, n)
		for i := range n {
			p.MinAt[i] = whole(0, 3, "at least")
			p.MaxAt[i] = max(p.MinAt[i], whole(3, 8, "at most"))
		}
	}
	return p
}

// powers are what slot t takes and gives at most.
func powers(p *battery.Storage, t int) (charge, discharge float64) {
	charge, discharge = p.Charge, p.Discharge
	if p.Share != nil {
		charge, discharge = charge*p.Share[t], discharge*p.Share[t]
	}
	if p.Closed != nil && p.Closed[t] {
		charge = 0
	}
	if p.Held != nil && p.Held[t] {
		discharge = 0
	}
	return charge, discharge
}

const gridBreach = 1e5 // what a kWh beyond a grid limit counts

// slotCost is what the home pays in slot t if the battery draws e.
func slotCost(p *battery.Storage, t int, e float64) float64 {
	best := math.Inf(1)
	turnDown := 0.0
	if p.Curtail {
		turnDown = p.PV[t]
	}

	for cut := 0.0; cut <= turnDown; cut += 0.25 { // the lattice of the grid's side
		g := p.Load[t] - p.PV[t] + cut + e
		cost := g * p.Import[t]
		switch {
		case g > p.ImportLimit:
			cost = p.ImportLimit*p.Import[t] + gridBreach*(g-p.ImportLimit)
		case g < -p.ExportLimit:
			cost = -p.ExportLimit*p.Export[t] + gridBreach*(-p.ExportLimit-g)
		case g < 0:
			cost = g * p.Export[t]
		}

		best = min(best, cost)
	}

	if e < 0 {
		best -= e * p.Wear
	}
	return best
}

// bestStorage tries every path on the lattice. Outside the bounds there are only paths
// that have no other choice: they get back as fast as they can.
func bestStorage(p *battery.Storage) float64 {
	const step = 0.5
	type state struct{ s float64 } // kWh stored
	now := map[state]float64{{p.Init}: 0}

	for t := range p.Import {
		lo, hi := p.Min, p.Max
		if p.MinAt != nil {
			lo = max(lo, p.MinAt[t])
			hi = max(lo, min(hi, p.MaxAt[t]))
		}

		next := map[state]float64{}
		least := math.Inf(1) // how far outside the bounds a path must end
		charge, discharge := powers(p, t)
		for y := -discharge / p.DischargeEff; y <= charge*p.ChargeEff; y += step {
			for s := range now {
				least = min(least, max(lo-s.s-y, s.s+y-hi, 0))
			}
		}

		for y := -discharge / p.DischargeEff; y <= charge*p.ChargeEff; y += step {
			e := y / p.ChargeEff
			if y < 0 {
				e = y * p.DischargeEff
			}

			cost := slotCost(p, t, e)
			for s, before := range now {
				to := state{s.s + y}
				if max(lo-to.s, to.s-hi, 0) > least {
					continue
				}
				if c, ok := next[to]; !ok || before+cost < c {
					next[to] = before + cost
				}
			}
		}

		now = next
	}

	best := math.Inf(1)
	for s, c := range now {
		best = min(best, c-p.Terminal*s.s)
	}
	return best
}

func checkStorage(t *rapid.T, w *battery.Solver, p *battery.Storage) {
	net := make([]float64, len(p.Import))
	got, want := w.SolveStorage(p, net), bestStorage(p)
	slack := 1e-6 * max(1, math.Abs(want)/gridBreach)
	if math.Abs(got.Cost-want) > slack || got.Bound > want+slack || got.Bound < got.Cost-slack {
		t.Fatalf("cost %v, bound %v, the best is %v\n%+v\n%v", got.Cost, got.Bound, want, p, net)
	}
	if met := want < gridBreach/8; got.Met != met {
		t.Fatalf("met %v at %v", got.Met, want)
	}

	if err := verify.Storage(p, net, got); err != nil {
		t.Fatalf("%v\n%+v\n%v", err, p, net)
	}
	proof := certificate.OfStorage(w, p)
	if err := verify.StorageProof(p, got, proof); err != nil {
		t.Fatalf("%v\n%+v\n%v\n%+v", err, p, net, proof)
	}

	if idle := idleCost(p); p.MinAt == nil && p.Init >= p.Min && p.Init <= p.Max && idle > got.Cost+0.01+3e-6*math.Abs(got.Cost) {
		f := battery.Result{Cost: idle, Bound: idle}
		if verify.Storage(p, make([]float64, len(net)), f) == nil && verify.StorageProof(p, f, proof) == nil {
			t.Fatalf("doing nothing passed as best: %v, the best is %v\n%+v", idle, got.Cost, p)
		}
	}

	spoilProof(t, &proof, want, 0.01+1e-6*(math.Abs(want)+math.Abs(idleCost(p))), func(f battery.Result) error { return verify.StorageProof(p, f, proof) })
	i := rapid.IntRange(0, len(net)-1).Draw(t, "spoilt")
	spoilt := got

	switch rapid.IntRange(0, 3).Draw(t, "how") {
	case 0:
		spoilt.Cost -= 1 + 1e-6*math.Abs(got.Cost)
	case 1:
		spoilt.Bound = got.Cost + 1 + 1e-6*math.Abs(got.Cost)
	case 2:
		net[i] = p.Charge + 1
	case 3:
		net[i] = math.NaN()
	}

	if verify.Storage(p, net, spoilt) == nil {
		t.Fatalf("a spoilt plan passed: %+v\n%+v %v", p, spoilt, net)
	}
}

// spoilProof changes one number of a proof. Whatever the change, what is proven then is
// no more than the least cost: the proof of a bound a little above it is refused.
func spoilProof(t *rapid.T, proof *certificate.Proof, want, margin float64, check func(battery.Result) error) {
	by := float64(rapid.IntRange(-20, 20).Draw(t, "by"))
	pick := func(n int, name string) int { return rapid.IntRange(0, n-1).Draw(t, name) }
	bend := func(v []certificate.Potential) {
		at := &v[pick(len(v), "potential")]
		at.V[pick(len(at.V), "point")] += by
	}

	switch {
	case proof.Worth != nil:
		proof.Worth[pick(len(proof.Worth), "worth")] += by
	case proof.Stored != nil:
		bend(proof.Stored)
	default:
		bend(proof.Modes[pick(len(proof.Modes), "slot")])
	}
	if check(battery.Result{Cost: want, Bound: want + margin}) == nil {
		t.Fatalf("a proof changed by %v proves more than the least cost %v: %+v", by, want, proof)
	}
}

// idleCost is the cost of a battery that does nothing.
func idleCost(p *battery.Storage) (cost float64) {
	for t := range p.Import {
		cost += slotCost(p, t, 0)
	}
	return cost - p.Terminal*p.Init
}

func TestSolver_Storage_Exhaustive(t *testing.T) {
	var w battery.Solver
	rapid.Check(t, func(t *rapid.T) { checkStorage(t, &w, drawStorage(t, true)) })
}

func TestSolver_Storage_RoughExhaustive(t *testing.T) {
	var w battery.Solver
	rapid.Check(t, func(t *rapid.T) { checkStorage(t, &w, drawStorage(t, false)) })
}

// TestSolver_Storage_Powers: slots in which the battery is not there, takes nothing in or gives nothing off are planned at the least cost too.
func TestSolver_Storage_Powers(t *testing.T) {
	var w battery.Solver
	rapid.Check(t, func(t *rapid.T) {
		p := drawStorage(t, rapid.Bool().Draw(t, "convex"))
		for range p.Import {
			p.Share = append(p.Share, float64(rapid.IntRange(0, 1).Draw(t, "share")))
			p.Closed = append(p.Closed, rapid.Bool().Draw(t, "closed"))
			p.Held = append(p.Held, rapid.Bool().Draw(t, "held"))
		}

		net := make([]float64, len(p.Import))
		got, want := w.SolveStorage(p, net), bestStorage(p)
		if slack := 1e-6 * max(1, math.Abs(want)/gridBreach); math.Abs(got.Cost-want) > slack || math.Abs(got.Bound-want) > slack {
			t.Fatalf("cost %v, bound %v, the best is %v\n%+v\n%v", got.Cost, got.Bound, want, p, net)
		}

		for i, e := range net {
			if charge, discharge := powers(p, i); e > charge+1e-9 || e < -discharge-1e-9 {
				t.Fatalf("%v in slot %d, which is from %v to %v\n%+v", e, i, -discharge, charge, p)
			}
		}
	})
}

// TestSolver_Storage_MoreIsNeverWorse: a larger, stronger, better battery, less wear and
// wider grid limits never make the home's day dearer.
func TestSolver_Storage_MoreIsNeverWorse(t *testing.T) {
	var w battery.Solver
	rapid.Check(t, func(t *rapid.T) {
		p := drawStorage(t, rapid.Bool().Draw(t, "convex"))
		p.MinAt, p.MaxAt = nil, nil
		p.Init = max(p.Min, min(p.Max, p.Init))
		p.Terminal = max(0, p.Terminal)
		net := make([]float64, len(p.Import))
		before := w.SolveStorage(p, net)
		q := *p

		switch rapid.IntRange(0, 6).Draw(t, "more") {
		case 0:
			q.Max++
		case 1:
			q.Charge++
		case 2:
			q.Discharge++
		case 3:
			q.Wear /= 2
		case 4:
			q.ImportLimit++

			q.ExportLimit++
		case 5:
			q.Min /= 2
		case 6:
			q.Curtail = true
		}

		after := w.SolveStorage(&q, net)
		if slack := 1e-6 * max(1, math.Abs(before.Cost)/gridBreach); after.Cost > before.Cost+slack {
			t.Fatalf("%v became %v\n%+v\n%+v", before, after, p, q)
		}
	})
}

// TestSolveStorage_RoundedLimits: what a fuse of 4.6 kW leaves beside a load and what the battery takes are the same but for
// rounding.
func TestSolveStorage_RoundedLimits(t *testing.T) {
	p := &battery.Storage{
		Import: []float64{20, -5, 30}, Export: make([]float64, 3),
		Load: []float64{0.8, 0.8, 0.8}, PV: make([]float64, 3),
		Max: 10, Init: 2, Charge: 1.5, Discharge: 1.5, ChargeEff: 0.95, DischargeEff: 0.95,
		ImportLimit: 2.3, ExportLimit: 2.3,
	}

	var w battery.Solver
	net := make([]float64, 3)
	r := w.SolveStorage(p, net)
	if proven := r.Cost-r.Bound < 1e-6; !proven || net[1] < 1.4 {
		t.Errorf("%+v by %v", r, net)
	}
}
