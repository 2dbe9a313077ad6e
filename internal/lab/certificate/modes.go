package certificate

import (
	"slices"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/piecewise"
)

// modeKinks is how many kinks a value may have in a proof of modes. More are left out so
// that it is nowhere higher, which costs the bound a little and saves the proof's length.
const modeKinks = 160

// OfModes makes the proof of a bound of what Modes plans, f, and returns f with that
// bound if it is higher: that of the device itself, changes of mode and all, where Modes
// has only that of a battery that is free to move as it likes.
//
// A mode moves what is stored by a step, or as far as the battery goes: so what a mode
// costs from a slot on is the value after it, moved, and made of straight lines as that is.
func OfModes(p *battery.ModeProblem, f battery.Result) (battery.Result, Proof) {
	var q battery.Device
	q.Load(p)
	n := len(p.Import)
	lo, hi := float64(min(p.Min, p.Init)), float64(max(p.Max, p.Init))
	var after, did, now [battery.ModeCount]piecewise.Curve

	for m := range after {
		after[m].Put(lo, -p.Terminal*lo/1000)
		after[m].Put(hi, -p.Terminal*hi/1000)
	}

	proof := Proof{Modes: make([][]Potential, n+1)}
	for t := n; ; t-- {
		for m := range after {
			proof.Modes[t] = append(proof.Modes[t], potential(&after[m], 1, 0))
		}

		if t == 0 {
			break
		}

		for m := range did {
			moved(&q, &did[m], &after[m], t-1, battery.Mode(m), lo, hi)
		}
		var least, part piecewise.Curve
		least.X, least.V = slices.Clone(did[0].X), slices.Clone(did[0].V)
		for m := 1; m < len(did); m++ {
			piecewise.Lower(&part, &least, &did[m])
			least, part = part, least
		}

		for i := range least.V {
			least.V[i] += p.SwitchCost
		}

		for m := range now {
			piecewise.Lower(&now[m], &did[m], &least)
			now[m].Coarsen(modeKinks)
		}

		after, now = now, after
	}

	if value, _ := after[p.Previous].At(0, float64(p.Init)); value > f.Bound {
		f.Bound = min(f.Cost, value)
	}
	return f, proof
}

// moved makes out what mode m costs from slot t on, by what is stored before it.
func moved(q *battery.Device, out, after *piecewise.Curve, t int, m battery.Mode, lo, hi float64) {
	p, y := q.Problem, float64(q.Move(t, m))
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
	for _, x := range after.X {
		at = append(at, x, x-y)
	}

	slices.Sort(at)
	out.Reset()
	for _, s := range slices.Compact(at) {
		if s >= lo && s <= hi {
			then := to(s)
			v, _ := after.At(0, max(after.X[0], min(after.X[len(after.X)-1], then)))
			out.Put(s, q.Cost(t, then-s)+v)
		}
	}
}
