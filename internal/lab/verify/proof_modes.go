package verify

import (
	"fmt"
	"math"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/check"
	"flexd/internal/lab/certificate"
)

// ModesProof checks the bound of a plan in modes, which Modes has accepted, against its proof.
// A mode leaves no choice of the energy moved. So the difference between the fall of the
// potential and the cost depends on the stored energy alone, and is piecewise linear.
func ModesProof(
	p *battery.ModeProblem,
	f battery.Result,
	proof certificate.Proof,
) error {
	n := len(p.Import)
	lo, hi := float64(min(p.Min, p.Init)), float64(max(p.Max, p.Init))
	if err := checkPotentials(proof.Modes, n+1, lo, hi); err != nil {
		return err
	}

	if p.Previous >= battery.ModeCount {
		return fmt.Errorf("mode %d is none", p.Previous)
	}
	size := 1.0
	bound := valueAt(&proof.Modes[0][p.Previous], float64(p.Init)) -
		excessValue(p, proof.Modes[n], lo, hi)
	for t := range n {
		bound -= checkModes(p, t, proof.Modes[t], proof.Modes[t+1], lo, hi)
		size += math.Abs(
			float64(p.Load[t]-p.PV[t]),
		) * max(math.Abs(p.Import[t]), math.Abs(p.Export[t])) / 1000
	}

	if !(f.Bound <= bound+proofSlack*max(size, math.Abs(f.Bound))) {
		return fmt.Errorf(
			"the potentials prove a bound of %v, the plan says %v",
			bound,
			f.Bound,
		)
	}

	return nil
}

// checkPotentials refuses potentials unless there is one for each mode before each slot and
// after the last, all from lo to hi.
func checkPotentials(
	modes [][]certificate.Potential,
	slots int,
	lo, hi float64,
) error {
	if len(modes) != slots {
		return fmt.Errorf("%d potentials for %d slots", len(modes), slots-1)
	}

	for t, v := range modes {
		if len(v) != int(battery.ModeCount) {
			return fmt.Errorf(
				"slot %d: %d potentials for %d modes",
				t,
				len(v),
				battery.ModeCount,
			)
		}

		for m := range v {
			if err := checkCurve(&v[m], lo, hi); err != nil {
				return fmt.Errorf("slot %d: %w", t, err)
			}
		}
	}

	return nil
}

// excessValue returns the most by which the potentials at the end exceed the cost of what is
// left there.
func excessValue(
	p *battery.ModeProblem,
	ends []certificate.Potential,
	lo, hi float64,
) float64 {
	excess := math.Inf(-1)
	for m, end := range ends {
		returnCost := p.ReturnCost
		if battery.Mode(m) == battery.ModeSelfUse {
			returnCost = 0
		}

		for _, s := range append([]float64{lo, hi}, end.X...) {
			s = max(lo, min(hi, s))
			excess = max(excess, valueAt(&end, s)+p.Terminal*s/1000-returnCost)
		}
	}

	return excess
}

// checkModes returns the greatest checkMove of slot t, over all modes in it and before it.
func checkModes(
	p *battery.ModeProblem,
	t int,
	v, next []certificate.Potential,
	lo, hi float64,
) float64 {
	var short float64
	for m := range battery.ModeCount {
		for before := range battery.ModeCount {
			short = max(
				short,
				checkMove(p, t, before, m, &v[before], &next[m], lo, hi),
			)
		}
	}

	return short
}

// checkAfter returns the stored energy after a move by y from s, which stops when the battery
// is full or empty.
func checkAfter(p *battery.ModeProblem, s, y float64) float64 {
	if y > 0 {
		return min(s+y, max(s, float64(p.Max)))
	}
	return max(s+y, min(s, float64(p.Min)))
}

// checkCost returns the cost in pence of changing the stored energy from s to after in slot t.
func checkCost(p *battery.ModeProblem, t int, s, after float64) float64 {
	net := float64(p.Load[t] - p.PV[t])
	grid, wear := net+max(0, after-s)/p.ChargeEff, 0.0
	if after < s {
		wear = (s - after) * p.DischargeEff
		grid -= wear
	}

	return (min(grid, 0)*p.Export[t] + max(grid, 0)*p.Import[t] +
		wear*p.Wear) / 1000
}

// checkMove returns the most by which mode m in slot t, after the mode before, can cost less
// than the fall of the potential. It tries every level at which that difference may bend.
func checkMove(
	p *battery.ModeProblem,
	t int,
	before, m battery.Mode,
	v, next *certificate.Potential,
	lo, hi float64,
) float64 {
	y, net := float64(check.ModeMove(p, t, m)), float64(p.Load[t]-p.PV[t])
	change := 0.0
	if m != before {
		change = p.SwitchCost
	}

	var short float64
	try := func(s float64) {
		s = max(lo, min(hi, s))
		after := checkAfter(p, s, y)
		short = max(
			short,
			valueAt(v, s)-valueAt(next, after)-checkCost(p, t, s, after)-change,
		)
	}

	for _, edge := range [...]float64{lo, hi, float64(p.Min), float64(p.Max)} {
		for _, returnCost := range [...]float64{
			0,
			y,
			-net * p.ChargeEff,
			-net / p.DischargeEff,
		} {
			try(edge - returnCost)
		}
	}

	for _, s := range v.X {
		try(s)
	}

	for _, s := range next.X {
		try(s)
		try(s - y)
	}

	return short
}
