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
	var chosenCurves, now [battery.ModeCount]piecewise.Curve
	after := remainingValue(p, lo, hi)
	proof := Proof{Modes: make([][]Potential, n+1)}
	proof.Modes[n] = potentials(&after)

	for t := n; t > 0; t-- {
		for m := range chosenCurves {
			afterMove(&q, &chosenCurves[m], &after[m], t-1, battery.Mode(m), lo, hi)
		}

		afterChoice(&now, &chosenCurves, p.SwitchCost)
		after, now = now, after
		proof.Modes[t-1] = potentials(&after)
	}

	value, _ := after[p.Previous].At(0, float64(p.Init))
	if value > f.Bound {
		f.Bound = min(f.Cost, value)
	}

	return f, proof
}

// remainingValue are the curves at the end: less what is stored is worth, and the way back to SELF_USE.
func remainingValue(
	p *battery.ModeProblem,
	lo, hi float64,
) [battery.ModeCount]piecewise.Curve {
	var curves [battery.ModeCount]piecewise.Curve
	for m := range curves {
		returnCost := p.ReturnCost
		if battery.Mode(m) == battery.ModeSelfUse {
			returnCost = 0
		}

		curves[m].Put(lo, returnCost-p.Terminal*lo/1000)
		curves[m].Put(hi, returnCost-p.Terminal*hi/1000)
	}

	return curves
}

// potentials are the curves as a proof holds them, by mode.
func potentials(curves *[battery.ModeCount]piecewise.Curve) []Potential {
	var all []Potential
	for m := range curves {
		all = append(all, potential(&curves[m], 1, 0))
	}
	return all
}

// afterChoice makes out what each mode costs before a slot: it continues, or changes to the cheapest.
func afterChoice(now, curves *[battery.ModeCount]piecewise.Curve, change float64) {
	switched := switchedCost(curves, change)
	for m := range now {
		piecewise.Lower(&now[m], &curves[m], &switched)
		now[m].Coarsen(modeKinks)
	}
}

// switchedCost is what the cheapest of the modes costs, and the change to it.
func switchedCost(
	modes *[battery.ModeCount]piecewise.Curve,
	change float64,
) piecewise.Curve {
	var least, part piecewise.Curve
	least.X, least.V = slices.Clone(modes[0].X), slices.Clone(modes[0].V)
	for m := 1; m < len(modes); m++ {
		piecewise.Lower(&part, &least, &modes[m])
		least, part = part, least
	}

	for i := range least.V {
		least.V[i] += change
	}

	return least
}

// afterMove makes out what mode m costs from slot t on, by what is stored before it.
func afterMove(
	q *battery.Device,
	out, after *piecewise.Curve,
	t int,
	m battery.Mode,
	lo, hi float64,
) {
	p, y := q.Problem, float64(q.Move(t, m))
	least, most := float64(p.Min), float64(p.Max)
	balanced := balancedMove(p, t)
	at := []float64{
		lo,
		hi,
		least,
		most,
		least - y,
		most - y,
		least - balanced,
		most - balanced,
	}

	for _, x := range after.X {
		at = append(at, x, x-y)
	}

	slices.Sort(at)
	out.Reset()
	for _, s := range slices.Compact(at) {
		if s >= lo && s <= hi {
			next := moveWithin(s, y, least, most)
			v, _ := after.At(
				0,
				max(after.X[0], min(after.X[len(after.X)-1], next)),
			)

			out.Put(s, q.Cost(t, next-s)+v)
		}
	}
}

// moveWithin is what is stored after a move by y from s, which ends at the least or the most.
func moveWithin(s, y, least, most float64) float64 {
	if y > 0 && s+y > most {
		return max(most, s)
	}

	if y < 0 && s+y < least {
		return min(least, s)
	}

	return s + y
}

// balancedMove is the move of what is stored in slot t that leaves nothing through the meter.
func balancedMove(p *battery.ModeProblem, t int) float64 {
	surplus := -float64(p.Load[t] - p.PV[t])
	if surplus > 0 {
		return surplus * p.ChargeEff
	}

	return surplus / p.DischargeEff
}
