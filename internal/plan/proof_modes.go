package plan

import (
	"slices"
)

// modeKinks is how many kinks a value may have in a proof of modes. More are left out so
// that it is nowhere higher, which costs the bound a little and saves the proof's length.
const modeKinks = 160

// ProveModes makes the proof of a bound of what Modes plans, f, and returns f with that
// bound if it is higher: that of the device itself, changes of mode and all, where Modes
// has only that of a battery that is free to move as it likes.
//
// A mode moves what is stored by a step, or as far as the battery goes: so what a mode
// costs from a slot on is the value after it, moved, and made of straight lines as that is.
func (w *Scratch) ProveModes(p *ModeProblem, f Filled) (Filled, Proof) {
	q := &w.modes
	q.load(p)
	n := len(p.Import)
	lo, hi := float64(min(p.Min, p.Init)), float64(max(p.Max, p.Init))
	var after, did, now [modes]curve
	for m := range after {
		after[m].put(lo, -p.Terminal*lo/1000)
		after[m].put(hi, -p.Terminal*hi/1000)
	}
	proof := Proof{Modes: make([][]Potential, n+1)}
	for t := n; ; t-- {
		for m := range after {
			proof.Modes[t] = append(proof.Modes[t], after[m].potential(1, 0))
		}
		if t == 0 {
			break
		}
		for m := range did {
			q.moved(&did[m], &after[m], t-1, Mode(m), lo, hi)
		}
		var least, part curve
		least.x, least.v = slices.Clone(did[0].x), slices.Clone(did[0].v)
		for m := 1; m < len(did); m++ {
			lower(&part, &least, &did[m])
			least, part = part, least
		}
		for i := range least.v {
			least.v[i] += p.SwitchCost
		}
		for m := range now {
			lower(&now[m], &did[m], &least)
			now[m].coarsen(modeKinks)
		}
		after, now = now, after
	}
	if value, _ := after[p.Previous].at(0, float64(p.Init)); value > f.Bound {
		f.Bound = min(f.Cost, value)
	}
	return f, proof
}

// moved makes out what mode m costs from slot t on, by what is stored before it.
func (q *moded) moved(out, after *curve, t int, m Mode, lo, hi float64) {
	p, y := q.p, float64(q.moves[t][m].y)
	least, most := float64(p.Min), float64(p.Max)
	to := func(s float64) float64 {
		switch {
		case y > 0 && s+y > most:
			return max(most, s)
		case y < 0 && s+y < least:
			return min(least, s)
		}
		return s + y
	}
	even := -float64(p.Load[t] - p.PV[t]) // moves that leave nothing through the meter
	if even > 0 {
		even *= p.ChargeEff
	} else {
		even /= p.DischargeEff
	}
	at := []float64{lo, hi, least, most, least - y, most - y, least - even, most - even}
	for _, x := range after.x {
		at = append(at, x, x-y)
	}
	slices.Sort(at)
	out.reset()
	for _, s := range slices.Compact(at) {
		if s >= lo && s <= hi {
			then := to(s)
			v, _ := after.at(0, max(after.x[0], min(after.x[len(after.x)-1], then)))
			out.put(s, q.pay(t, then-s)+v)
		}
	}
}
