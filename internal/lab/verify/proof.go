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

// A potential says, for every slot, what the rest of the plan costs at least, by the
// state that the slot begins in. Suppose that no step costs less than the potential falls
// by: V(s) <= cost of going from s to s' + V'(s'), for every step that is allowed. Added
// up along any plan, V cancels out but at its ends: the plan costs at least V at the
// start less V at the end. Where a step costs less than that by d, a plan takes one such
// step in that slot, and d comes off the bound. So every potential proves a bound.
//
// V, V' and the cost of a step, which depends on s'-s, are made of straight lines; so the
// most by which a step falls short lies where two of these bend: the lines s, s' and s'-s
// of their bends cut the plane into parts in which nothing bends, and the corners of
// those are tried. Of the corners of s and s' only those count where V bends down: where
// it bends up along a line through the corner, one of the corners beside it is no better.

// proofSlack is how far a bound may be off, as checkSlack is of a cost. Values that lie
// within a thousand-millionth of a penny of a straight line are on it, in every slot.
const proofSlack = 1e-6

// checkCurve refuses what is not a function over the range from lo to hi.
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

// valueAt is a potential at x; outside its points it continues level.
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

// corners are the places from lo to hi where v may be above all about it (up), or below
// (down): the ends, and where it bends.
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

// checkRange is where the state may lie.
type checkRange struct{ lo, hi float64 }

// checkStep is the most by which a step costs less than the potential falls by, from v
// at a state within from to next at one within to. bends are the changes of state at
// which the cost bends, the least and the most of them first and last.
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

// contains reports whether a value lies in the range, or so near to it that rounding may have
// moved it out.
func (r checkRange) contains(x, tolerance float64) bool {
	return x >= r.lo-tolerance && x <= r.hi+tolerance
}

// eachStep calls try with the states before and after each step at which the difference may be
// largest: where a potential bends, where a range ends, and what the bends lead to.
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

// checkWindow is where the stored energy may lie before each slot and at the end. A bound
// that cannot be kept from where the battery stands is kept as soon as it can be.
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

// checkStoredProof is the bound that the potentials of a battery prove. A state that a
// potential leaves out must be one from which there is no way on.
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

	excess := math.Inf(-1) // of the worth of what is left
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

// checkStoredStage is what it costs in slot t that what is stored changes by y.
func checkStoredStage(p *battery.Storage, t int, y float64) float64 {
	if y > 0 {
		return checkStage(p, t, y/p.ChargeEff)
	}
	return checkStage(p, t, y*p.DischargeEff)
}

// reachable are the states of a battery before each slot, and at the end, from which there is
// a way on.
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

// checkBends are the changes of stored energy at which the cost of slot t may bend up,
// the least and the most first and last.
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

// checkRunPotentials refuses potentials that are not one for each length of a run, up to m.
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

// checkTarget is what the potentials of a car prove that it must cost to take need, at
// these prices: from wanting need, down to wanting -beyond. miss is what is paid at the
// end for a kWh taken too much and too little; none may be, where it is nil.
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

// excessAtEnd is the most by which the potentials at the end are above what is paid there.
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

// checkTaking is checkStep of a car's slot t, for each number of slots that a run has gone on
// for: it may stop, if it is long enough, or go on.
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

// checkLeast is what slot t takes at least if it is on. Where starts or runs count, what
// is on takes a hundredth of a watt-hour at least, so that it is seen to be on.
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

// SlotsProof holds the bound of a plan that Slots has passed against its proof,
// and where the need is not met, that nothing that the laws allow comes nearer to it.
func SlotsProof(p *slots.Slots, f slots.Result, proof certificate.Proof) error {
	if p.Least == nil && p.StartCost == 0 && p.MinRun <= 1 {
		return nil // the threshold price has proven it
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

// StorageProof holds the bound of a battery's plan that Storage has passed
// against its proof.
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
			) * (p.Max + p.Charge + p.Discharge) // what the dual adds up is rounded
		}
	} else {
		for t := range p.Import { // so are costs far beyond a grid limit, that a strong battery could run up
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

// checkSize is what the home pays and is paid in all with its battery at rest, as a
// measure of what sums are rounded to.
func checkSize(p *battery.Storage) float64 {
	var size float64
	for t := range p.Import {
		size += math.Abs(checkStage(p, t, 0))
	}
	return size + math.Abs(p.Terminal)*max(p.Max, p.Init)
}
