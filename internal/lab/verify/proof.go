package verify

import (
	"errors"
	"fmt"
	"math"
	"sort"

	"flexd/internal/engine/battery"
	"flexd/internal/lab/certificate"
	"flexd/internal/lab/slots"
)

// How a potential proves a bound. A potential V gives, for every slot, the least cost of the
// rest of the plan, by the state at the start of the slot. Suppose that no allowed step costs
// less than the fall of the potential: V(s) <= cost of going from s to s' + V'(s'). Summed
// over the steps of any plan, the potentials cancel out except at the ends. So the plan costs
// at least V at the start less V at the end. If in some slot a step can cost less than the
// fall by at most d, a plan has one step in that slot, and d is subtracted from the bound. Any
// potential therefore proves some bound.
//
// How d is found. V, V' and the cost of a step, which depends on s'-s, are piecewise linear.
// The lines at which they bend (in s, s' and s'-s) divide the plane into parts in which the
// difference is linear, so it is greatest at a corner of these parts, and all corners are
// tried. Of the corners of a bend in s with one in s', only those count at which V bends down:
// if it bends up along a line through the corner, one of the neighbouring corners is at least
// as good.

// proofSlack is how far a bound may be off, as checkSlack is for a cost. In every slot, values
// within a thousand-millionth of a penny of a straight line count as on it.
const proofSlack = 1e-6

// checkCurve refuses a potential that is not a function on the whole range from lo to hi.
func checkCurve(v *certificate.Potential, lo, hi float64) error {
	n := len(v.X)
	if n == 0 || len(v.V) != n {
		return errors.New("a potential has no points, or not as many values")
	}

	for i, x := range v.X {
		number := !math.IsNaN(x+v.V[i]) && !math.IsInf(x+v.V[i], 0)
		if !number || i > 0 && x <= v.X[i-1] {
			return fmt.Errorf(
				"point %d of a potential does not follow the one before it",
				i,
			)
		}
	}

	tolerance := 1e-9 + 1e-13*(math.Abs(lo)+math.Abs(hi))
	if v.X[0] > lo+tolerance || v.X[n-1] < hi-tolerance {
		return fmt.Errorf(
			"a potential goes from %v to %v, which is not all of %v to %v",
			v.X[0],
			v.X[n-1],
			lo,
			hi,
		)
	}

	return nil
}

// valueAt returns the value of a potential at x. Outside its points it is constant.
func valueAt(v *certificate.Potential, x float64) float64 {
	i := sort.SearchFloat64s(v.X, x)
	if i == 0 {
		return v.V[0]
	}

	if i == len(v.X) {
		return v.V[i-1]
	}

	share := (x - v.X[i-1]) / (v.X[i] - v.X[i-1])

	return v.V[i-1] + share*(v.V[i]-v.V[i-1])
}

// corners returns the ends lo and hi, and the points between them at which the potential
// bends: those at which it may be greatest (up), or least.
func corners(v *certificate.Potential, lo, hi float64, up bool) []float64 {
	at := []float64{lo, hi}
	for i := 1; i < len(v.X)-1; i++ {
		before := (v.V[i] - v.V[i-1]) * (v.X[i+1] - v.X[i])
		after := (v.V[i+1] - v.V[i]) * (v.X[i] - v.X[i-1])
		if x := v.X[i]; x > lo && x < hi && (before > after) == up {
			at = append(at, x)
		}
	}

	return at
}

// checkRange is the range of possible states.
type checkRange struct{ lo, hi float64 }

// checkStep returns the most by which a step can cost less than the fall of the potential,
// from v at a state in from to next at a state in to. bends are the changes of state at which
// the cost bends, from the least possible change to the greatest.
func checkStep(
	v, next *certificate.Potential,
	from, to checkRange,
	bends []float64,
	cost func(y float64) float64,
) float64 {
	change := checkRange{bends[0], bends[len(bends)-1]}

	var short float64
	eachStep(v, next, from, to, bends, func(s, after float64) {
		y := after - s
		tolerance := 4e-15 * (1 + math.Abs(s) + math.Abs(after))
		if from.contains(s, tolerance) && to.contains(after, tolerance) &&
			change.contains(y, tolerance) {
			short = max(
				short,
				valueAt(v, s)-valueAt(next, after)-
					cost(max(change.lo, min(change.hi, y))),
			)
		}
	})

	return short
}

// contains reports whether a value lies in the range. Values beyond it by no more than
// rounding count too.
func (r checkRange) contains(x, tolerance float64) bool {
	return x >= r.lo-tolerance && x <= r.hi+tolerance
}

// eachStep calls try with the states before and after each step at which the difference can be
// greatest: where a potential bends, where a range ends, and where a bend of the cost leads
// from or to these.
func eachStep(
	v, next *certificate.Potential,
	from, to checkRange,
	bends []float64,
	try func(s, after float64),
) {
	for _, y := range bends {
		for _, s := range v.X {
			try(s, s+y)
		}

		for _, after := range next.X {
			try(after-y, after)
		}

		for _, edge := range [...]float64{
			from.lo,
			from.hi,
			to.lo - y,
			to.hi - y,
		} {
			try(edge, edge+y)
		}
	}

	if bends[0] == bends[len(bends)-1] {
		return
	}

	ends := corners(next, to.lo, to.hi, false)
	for _, s := range corners(v, from.lo, from.hi, true) {
		for _, after := range ends {
			try(s, after)
		}
	}
}

// checkWindow returns the range of the stored energy before each slot and at the end. If the
// battery is outside a bound at first, it returns to the bound as soon as it can.
func checkWindow(p *battery.Storage) []checkRange {
	at := []checkRange{{p.Init, p.Init}}
	reach := at[0]
	up, down := p.Charge*p.ChargeEff, p.Discharge/p.DischargeEff

	for t := range p.Import {
		lo, hi := p.Min, p.Max
		if p.MinAt != nil {
			lo = max(lo, p.MinAt[t])
		}
		if p.MaxAt != nil {
			hi = max(lo, min(hi, p.MaxAt[t]))
		}

		w := checkRange{min(lo, reach.hi+up), max(hi, reach.lo-down)}
		reach = checkRange{max(reach.lo-down, w.lo), min(reach.hi+up, w.hi)}
		at = append(at, w)
	}

	return at
}

// checkStoredProof returns the bound that the potentials of a battery prove. A potential must
// cover every state from which a plan can continue.
func checkStoredProof(
	p *battery.Storage,
	v []certificate.Potential,
) (float64, error) {
	n := len(p.Import)
	if len(v) != n+1 {
		return 0, fmt.Errorf("%d potentials for %d slots", len(v), n)
	}

	at := reachable(p)
	for t := n; t >= 0; t-- {
		if err := checkCurve(&v[t], at[t].lo, at[t].hi); err != nil {
			return 0, fmt.Errorf("slot %d: %w", t, err)
		}
	}

	excess := math.Inf(-1) // of the potential at the end over the cost of what is left there
	for _, s := range append(
		corners(&v[n], at[n].lo, at[n].hi, true),
		v[n].X...,
	) {
		s = max(at[n].lo, min(at[n].hi, s))
		excess = max(excess, valueAt(&v[n], s)+p.Terminal*s)
	}

	bound := -excess
	for t := range n {
		bound -= checkStep(
			&v[t],
			&v[t+1],
			at[t],
			at[t+1],
			checkBends(p, t),
			func(y float64) float64 {
				return checkStoredStage(p, t, y)
			},
		)
	}

	return bound + valueAt(&v[0], p.Init), nil
}

// checkStoredStage returns the cost, in slot t, of changing the stored energy by y.
func checkStoredStage(p *battery.Storage, t int, y float64) float64 {
	if y > 0 {
		return checkStage(p, t, y/p.ChargeEff)
	}
	return checkStage(p, t, y*p.DischargeEff)
}

// reachable returns the states of a battery before each slot, and at the end, from which a
// plan can continue.
func reachable(p *battery.Storage) []checkRange {
	up, down := p.Charge*p.ChargeEff, p.Discharge/p.DischargeEff
	at := checkWindow(p)
	for t := len(p.Import) - 1; t >= 0; t-- {
		at[t] = checkRange{
			max(at[t].lo, at[t+1].lo-up),
			min(at[t].hi, at[t+1].hi+down),
		}
	}

	return at
}

// checkBends returns the changes of stored energy at which the cost of slot t may bend up, in
// order, from the least possible change to the greatest.
func checkBends(p *battery.Storage, t int) []float64 {
	net := p.Load[t] - p.PV[t]
	var bends []float64
	for _, e := range [...]float64{
		-p.Discharge,
		p.Charge,
		0,
		-net,
		p.ImportLimit - net,
		-p.ExportLimit - net,
		-net - p.PV[t],
		p.ImportLimit - net - p.PV[t],
		-p.ExportLimit - net - p.PV[t],
	} {
		if e >= -p.Discharge && e <= p.Charge {
			bends = append(bends, checkStored(p, e))
		}
	}

	sort.Float64s(bends)

	return bends
}

// checkRunPotentials refuses potentials unless each slot has one for every length of a run, up
// to m.
func checkRunPotentials(
	v [][]certificate.Potential,
	m int,
	all checkRange,
) error {
	for t := range v {
		if len(v[t]) != m+1 {
			return fmt.Errorf(
				"slot %d: %d potentials for runs of up to %d",
				t,
				len(v[t]),
				m,
			)
		}

		for r := range v[t] {
			if err := checkCurve(&v[t][r], all.lo, all.hi); err != nil {
				return fmt.Errorf("slot %d: %w", t, err)
			}
		}
	}

	return nil
}

// checkTarget returns the least cost of taking need at these prices that the potentials of a
// car prove. Their state is the energy that is still needed, from need down to -beyond. miss
// is the cost, at the end, of each kWh taken too much or too little; if it is nil, neither is
// allowed.
func checkTarget(
	p *slots.Slots,
	v [][]certificate.Potential,
	price []float64,
	start, need, beyond float64,
	miss func(energy float64) float64,
) (float64, error) {
	n, m := 0, max(1, p.MinRun)
	for t, full := range p.Full {
		if full > 0 {
			n = t + 1
		}
	}

	if len(v) != n+1 {
		return 0, fmt.Errorf("%d potentials for %d slots", len(v), n)
	}
	all := checkRange{-beyond, max(0, need)}

	if err := checkRunPotentials(v, m, all); err != nil {
		return 0, err
	}

	bound := valueAt(&v[0][0], max(0, need)) - excessAtEnd(v[n], all, miss)
	for t := range n {
		bound -= checkTaking(p, t, v[t], v[t+1], all, price[t], start)
	}

	return bound, nil
}

// excessAtEnd returns the most by which the potentials at the end exceed the cost there.
func excessAtEnd(
	ends []certificate.Potential,
	all checkRange,
	miss func(energy float64) float64,
) float64 {
	var excess float64
	for _, end := range ends {
		excess = max(excess, valueAt(&end, 0))
		if miss == nil {
			continue
		}

		for _, e := range append(
			corners(&end, all.lo, all.hi, true),
			end.X...,
		) {
			e = max(all.lo, min(all.hi, e))
			excess = max(excess, valueAt(&end, e)-miss(e))
		}
	}

	return excess
}

// checkTaking is checkStep for a car's slot t, over all lengths that the run before it can
// have. A run may continue, and may end if it is long enough.
func checkTaking(
	p *slots.Slots,
	t int,
	v, next []certificate.Potential,
	all checkRange,
	price, start float64,
) float64 {
	longest := len(v) - 1
	least, full := checkLeast(p, t), p.Full[t]

	var short float64
	for r := range v {
		if r == 0 || r == longest {
			short = max(
				short,
				checkStep(&v[r], &next[0], all, all, []float64{0}, func(float64) float64 {
					return 0
				}),
			)
		}

		if full <= 0 {
			continue
		}

		begin := 0.0
		if r == 0 {
			begin = start
		}

		taking := func(y float64) float64 { return begin - y*price }
		short = max(
			short,
			checkStep(
				&v[r],
				&next[min(r+1, longest)],
				all,
				all,
				[]float64{-full, -least},
				taking,
			),
		)
	}

	return short
}

// checkLeast returns the least energy that slot t takes if it is on. If starts or runs count,
// that is at least a hundredth of a watt-hour, so that the slot can be recognised as on.
func checkLeast(p *slots.Slots, t int) float64 {
	var least float64
	if p.Least != nil {
		least = p.Least[t]
	}
	if p.StartCost > 0 || p.MinRun > 1 {
		least = max(least, 1e-5)
	}

	return min(least, p.Full[t])
}

// SlotsProof checks the bound of a plan, which Slots has accepted, against its proof. If the
// need is not met, it also checks that no allowed plan comes nearer to it.
func SlotsProof(p *slots.Slots, f slots.Result, proof certificate.Proof) error {
	if p.Least == nil && p.StartCost == 0 && p.MinRun <= 1 {
		return nil // the threshold price proves it
	}

	size := math.Abs(f.Cost)
	bound, err := checkTarget(
		p,
		proof.Wanted,
		p.Price,
		p.StartCost,
		f.Energy,
		0,
		nil,
	)

	if err != nil {
		return err
	}

	if f.Bound > bound+proofSlack*max(1, size) {
		return fmt.Errorf(
			"the potentials prove a bound of %v, the plan says %v",
			bound,
			f.Bound,
		)
	}

	if f.Met {
		return nil
	}

	all := 0.0
	for _, full := range p.Full {
		all += max(0, full)
	}

	miss := func(energy float64) float64 { return max(-energy, 1e8*energy) }
	if f.Energy < p.Need {
		miss = func(energy float64) float64 { return max(0, energy) }
	}

	excess, err := checkTarget(
		p,
		proof.Missed,
		make([]float64, len(p.Price)),
		0,
		p.Need,
		all,
		miss,
	)

	if err != nil {
		return err
	}

	if off := math.Abs(f.Energy - p.Need); off > excess+1e-5 {
		return fmt.Errorf(
			"the plan misses the need by %v kWh, and the potentials prove only %v",
			off,
			excess,
		)
	}

	return nil
}

// StorageProof checks the bound of a battery's plan, which Storage has accepted, against its
// proof.
func StorageProof(
	p *battery.Storage,
	f battery.Result,
	proof certificate.Proof,
) error {
	var bound, slack float64
	if len(proof.Worth) == len(p.Import) && proof.Stored == nil {
		bound = checkDual(p, proof.Worth)
		for _, v := range proof.Worth {
			slack += 1e-11 * math.Abs(
				v,
			) * (p.Max + p.Charge + p.Discharge) // the sums of the dual are rounded
		}
	} else {
		for t := range p.Import { // costs far beyond a grid limit, which a strong battery could cause, are rounded too
			slack += 1e-13 * max(
				math.Abs(checkStage(p, t, p.Charge)),
				math.Abs(checkStage(p, t, -p.Discharge)),
			)
		}

		var err error
		bound, err = checkStoredProof(p, proof.Stored)
		if err != nil {
			return err
		}
	}

	if !(f.Bound <= bound+proofSlack*max(1, checkSize(p), math.Abs(f.Bound))+slack) {
		return fmt.Errorf(
			"the proof gives a bound of %v, the plan says %v",
			bound,
			f.Bound,
		)
	}

	return nil
}

// checkSize returns the sum of what the home pays and is paid with its battery at rest. It is
// the scale for rounding errors.
func checkSize(p *battery.Storage) float64 {
	var size float64
	for t := range p.Import {
		size += math.Abs(checkStage(p, t, 0))
	}
	return size + math.Abs(p.Terminal)*max(p.Max, p.Init)
}
