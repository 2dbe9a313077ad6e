package check

import (
	"fmt"
	"math"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// checkPeak holds law S5: peak time only if permitted, when off-peak time is full, and
// no more than is missing then.
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

// checkMode holds law S7: what is open is open, what is bought is not too much, and no
// bought energy could be had cheaper.
func checkMode(p *charge.Problem, atoms []atom) error {
	need, got := float64(p.Need)*3600, 0.0

	for i := range atoms {
		a := &atoms[i]
		mustOpen := p.Mode != flex.Minimise && !a.late && !a.given
		closed := a.off && !a.now

		if mustOpen && closed && a.spare() > 0 {
			return fmt.Errorf(
				"S7: off-peak time at %v is not open",
				time.Unix(a.from, 0).UTC(),
			)
		}

		if a.boughtOff {
			got += a.energy()
		} else if (a.off || a.now) && !a.late {
			need -= a.energy()
		}
	}

	if got > 0 && got >= need+oneMinute*float64(p.Power) {
		return fmt.Errorf(
			"S7: %v Wh bought for %v Wh needed",
			got/3600,
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

// boundOf is what the threshold proves the energy to cost at least. What was bought in full, or
// not at all, had no choice and costs what it costs.
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

// checkFigures works out energy, shortfall and cost again, and the lower bound from the
// threshold alone: any price gives a bound, and the plan's must be as high as its cost.
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

// checkSplit says whether a part of what may be bought, off-peak or in peak time, was
// bought and a part was not, so that a price decided.
func checkSplit(atoms []atom, peak bool) bool {
	some, spare := false, false

	for i := range atoms {
		if a := &atoms[i]; a.bought(peak) {
			some, spare = some || a.energy() > 0, spare || a.spare() > 0
		}
	}

	return some && spare
}

// checkPeriods holds the explanation against the steps.
func checkPeriods(plan *charge.Plan, atoms []atom) error {
	sum, next := flex.WattHours(0), 0

	for i, q := range plan.Periods {
		sum += q.Energy
		drawn := 0.0

		for ; next < len(atoms) && atoms[next].to <= q.To.Unix(); next++ {
			drawn += atoms[next].energy()
		}

		charges := q.Reason >= charge.Now && q.Reason <= charge.PeakNeeded

		if i > 0 && !q.From.Equal(plan.Periods[i-1].To) || q.Len() > flex.HalfHour {
			return fmt.Errorf(
				"period %d does not follow the one before within a half-hour",
				i,
			)
		}

		if charges != (drawn > 0) {
			return fmt.Errorf(
				"period %d draws %v Wh, and its reason is: %v",
				i,
				drawn/3600,
				q.Reason,
			)
		}

		if math.Abs(float64(q.Energy)-drawn/3600) > 1 {
			return fmt.Errorf(
				"period %d draws %v Wh, and says %d",
				i,
				drawn/3600,
				q.Energy,
			)
		}
	}

	if sum != plan.Energy || next != len(atoms) {
		return fmt.Errorf("the periods explain %d Wh of %d", sum, plan.Energy)
	}

	return nil
}
