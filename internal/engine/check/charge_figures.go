package check

import (
	"fmt"
	"math"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// checkPeak checks law S5: peak time is used only if it is permitted and off-peak time is
// full, and no more than is then missing.
func checkPeak(p *charge.Problem, atoms []atom) error {
	peak := 0.0
	spare := 0.0
	missing := float64(p.Need) * 3600

	for i := range atoms {
		a := &atoms[i]

		switch {
		case a.late:
		case a.off || a.now:
			missing -= a.energy()
			spare += a.spare()

		default:
			peak += a.energy()
		}
	}

	if peak > 0 && !p.MayChargePeak {
		return fmt.Errorf(
			"S5: %v Wh in peak time, which is not permitted",
			peak/3600,
		)
	}

	if peak > 0 && spare > 0 {
		return fmt.Errorf(
			"S5: peak time is used while off-peak time has room for %v Wh",
			spare/3600,
		)
	}

	if peak > 0 && peak >= missing+oneMinute*float64(p.Power) {
		return fmt.Errorf(
			"S5: %v Wh in peak time for %v Wh missing",
			peak/3600,
			missing/3600,
		)
	}

	return nil
}

// checkMode checks law S7: open time is used, no more than needed is bought, and no bought
// energy would be cheaper elsewhere.
func checkMode(p *charge.Problem, atoms []atom) error {
	need, actual := float64(p.Need)*3600, 0.0

	for i := range atoms {
		a := &atoms[i]
		mustOpen := p.Mode != flex.Minimise && !a.late && !a.mayGiveUp
		closed := a.off && !a.now

		if mustOpen && closed && a.spare() > 0 {
			return fmt.Errorf(
				"S7: off-peak time at %v is not open",
				time.Unix(a.from, 0).UTC(),
			)
		}

		if a.boughtOff {
			actual += a.energy()
		} else if (a.off || a.now) && !a.late {
			need -= a.energy()
		}
	}

	if actual > 0 && actual >= need+oneMinute*float64(p.Power) {
		return fmt.Errorf(
			"S7: %v Wh bought for %v Wh needed",
			actual/3600,
			need/3600,
		)
	}

	for _, peak := range []bool{false, true} {
		dearest, cheapest := math.Inf(-1), math.Inf(1)

		for i := range atoms {
			a := &atoms[i]

			if a.bought(peak) && a.energy() > 0 {
				dearest = max(dearest, a.price)
			}

			if a.bought(peak) && a.spare() > 0 {
				cheapest = min(cheapest, a.price)
			}
		}

		if dearest > cheapest {
			return fmt.Errorf(
				"S7: bought at £%v/MWh while there is room at £%v/MWh",
				dearest,
				cheapest,
			)
		}
	}

	return nil
}

// boundOf returns the lower bound on the cost that the threshold proves. Energy that was
// bought completely, or not at all, had no choice and counts at its cost.
func boundOf(plan *charge.Plan, atoms []atom) float64 {
	lambda := plan.Threshold.GBPPerMWh()
	splitPeak, splitOff := checkSplit(atoms, true), checkSplit(atoms, false)

	var bound float64
	for i := range atoms {
		a := &atoms[i]
		split := a.boughtOff && splitOff || a.boughtPeak && splitPeak

		if plan.HasThreshold && split {
			bound += lambda*a.energy() + min(0, a.price-lambda)*a.most*a.seconds
		} else {
			bound += a.price * a.energy()
		}
	}

	return bound
}

// checkFigures computes energy, shortfall and cost again, and the lower bound from the
// threshold alone. Any price gives a valid bound; the plan's must equal its cost.
func checkFigures(p *charge.Problem, plan *charge.Plan, atoms []atom) error {
	energy := 0.0
	inTime := 0.0
	cost := 0.0

	for i := range atoms {
		a := &atoms[i]
		energy += a.energy()
		cost += a.price * a.energy()

		if !a.late {
			inTime += a.energy()
		}
	}

	bound := boundOf(plan, atoms)
	missing := max(0, float64(p.Need)*3600-inTime)
	pounds := func(x float64) float64 {
		return x / 3600

	} // from pounds x watts x seconds per MWh to micro-pounds
	switch {
	case plan.Energy != flex.WattHours(math.Floor(energy/3600)):
		return fmt.Errorf(
			"energy is %v Wh, the plan says %d",
			energy/3600,
			plan.Energy,
		)

	case plan.Shortfall != flex.WattHours(math.Ceil(missing/3600)):
		return fmt.Errorf(
			"S4: shortfall is %v Wh, the plan says %d",
			missing/3600,
			plan.Shortfall,
		)

	case math.Abs(float64(plan.Cost)-pounds(cost)) > 1:
		return fmt.Errorf(
			"cost is %v micro-pounds, the plan says %d",
			pounds(cost),
			plan.Cost,
		)

	case float64(plan.LowerBound) > pounds(bound)+1:
		return fmt.Errorf(
			"the threshold proves a bound of %v micro-pounds, the plan says %d",
			pounds(bound),
			plan.LowerBound,
		)

	case plan.Cost-plan.LowerBound > 2:
		return fmt.Errorf(
			"S7: cost %d is above the lower bound %d",
			plan.Cost,
			plan.LowerBound,
		)
	}

	return nil
}

// checkSplit reports whether a part of the energy that may be bought, off-peak or in peak
// time, was bought and another part was not. Then a price decided.
func checkSplit(atoms []atom, peak bool) bool {
	some, spare := false, false

	for i := range atoms {
		if a := &atoms[i]; a.bought(peak) {
			some, spare = some || a.energy() > 0, spare || a.spare() > 0
		}
	}

	return some && spare
}

// checkPeriods checks the explanation against the steps.
func checkPeriods(plan *charge.Plan, atoms []atom) error {
	sum, next := flex.WattHours(0), 0

	for i, q := range plan.Periods {
		sum += q.Energy
		energy := 0.0

		for ; next < len(atoms) && atoms[next].to <= q.To.Unix(); next++ {
			energy += atoms[next].energy()
		}

		charges := q.Reason >= charge.Now && q.Reason <= charge.PeakNeeded

		if i > 0 && !q.From.Equal(plan.Periods[i-1].To) || q.Len() > flex.HalfHour {
			return fmt.Errorf(
				"period %d does not follow the one before within a half-hour",
				i,
			)
		}

		if charges != (energy > 0) {
			return fmt.Errorf(
				"period %d draws %v Wh, and its reason is: %v",
				i,
				energy/3600,
				q.Reason,
			)
		}

		if math.Abs(float64(q.Energy)-energy/3600) > 1 {
			return fmt.Errorf(
				"period %d draws %v Wh, and says %d",
				i,
				energy/3600,
				q.Energy,
			)
		}
	}

	if sum != plan.Energy || next != len(atoms) {
		return fmt.Errorf("the periods explain %d Wh of %d", sum, plan.Energy)
	}

	return nil
}
