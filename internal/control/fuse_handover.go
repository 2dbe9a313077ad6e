package control

import (
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// limitAll sets what each car is sent for now, and its power after its end. If only the latter
// changes, a car is sent its schedule in force again. That schedule may no longer fit: while
// the car was unplugged for less than a minute, or after its charger refused a schedule, its
// time may have been given to others; or the fuse was set lower. Then it is limited too.
func (f *sitePlan) limitAll(cars []*siteCar) {
	for _, car := range f.withKept(cars) {
		f.limitForNow(car)
	}

	f.setAllStepsAfterEnd()

	for _, car := range cars {
		if !car.renewed && f.differs(car) {
			f.limitToOthers(car)
		}
	}
}

// limitForNow sets what a car is sent for now. A car with a new schedule is limited to what is
// free in any case; another one keeps its schedule in force.
func (f *sitePlan) limitForNow(car *siteCar) {
	car.stepsForNow = car.finalSteps
	if car.renewed {
		f.limitToOthers(car)
	}
}

// limitToOthers limits a car's new schedule to the power that is free whether or not the
// others have accepted theirs. It meets no less of its need than the schedule in force does.
func (f *sitePlan) limitToOthers(car *siteCar) {
	span := flex.Span{From: f.from, To: car.end(f.from)}
	limits := f.safeHeadroom(car, span)
	if staysWithin(car.stepsForNow, car.problem.Power, limits) {
		return
	}

	may := car.possibleDraw()
	own := f.sampleSteps(span, car.least(), func(t time.Time) flex.Watts {
		return min(may.powerAt(t), f.safeHeadroomAt(car, t))
	})

	car.planUntilAccepted(lesserLimits(car.problem.Limits, limits, span), own, limits)
	car.stepsForNow = car.plan.Steps
	car.renewed = car.mustSend() || !sameAhead(
		stepsWithin(car.Current.Steps, span),
		car.stepsForNow,
		f.from,
	)
}

// mustSend reports whether a car must be sent a schedule even if its limits do not change:
// after an event, if it has none, or if its schedule in force discharges.
func (c *siteCar) mustSend() bool {
	caused := c.state != nil && (c.cause.must || c.cause.trigger == ByEvent)

	return caused || c.Current.Generation == 0 || c.Current.From.Discharge != nil
}

// planUntilAccepted plans a car for the time until all others have accepted their schedules:
// at those of its new times that are free (open). If these do not meet its need, the remainder
// is planned at times that its charger has already (own), and then at any other free time
// (remaining). The need is not met only as far as the final plan and the schedules that its
// charger may be following do not meet it either.
func (c *siteCar) planUntilAccepted(open, own, remaining []flex.Step) {
	final := c.plan.Shortfall
	free := c.problem
	free.Limits = own
	before := charge.Solve(free).Shortfall

	c.problem.Limits = open
	c.plan = charge.Solve(c.problem)
	c.fill(own, max(final, before))
	c.fill(remaining, final)

	if c.plan.Shortfall > max(final, before) { // it must charge without a pause
		c.problem.Limits = own
		c.plan = charge.Solve(c.problem)
	}
}

// fill plans the part of a car's shortfall that exceeds what is allowed, within limits and
// beside its plan so far.
func (c *siteCar) fill(limits []flex.Step, allowed flex.WattHours) {
	if c.plan.Shortfall <= allowed {
		return
	}

	missing := c.problem
	missing.Need = c.plan.Shortfall - allowed
	missing.Mode, missing.ChargeNow = flex.Minimise, flex.Span{}
	missing.Limits = remainingLimits(limits, c.plan.Steps, missing.Power)
	more := charge.Solve(missing)

	p := c.problem
	p.Limits = addSteps(c.plan.Steps, more.Steps, p.Power)
	if plan := charge.Solve(p); plan.Shortfall < c.plan.Shortfall {
		c.problem, c.plan = p, plan
	}
}

// remainingLimits returns what limits leave of a power in addition to some steps. The steps
// either fit the limits, or are at times that the limits close.
func remainingLimits(limits, steps []flex.Step, power flex.Watts) []flex.Step {
	return combineSteps(limits, steps, func(most, taken flex.Watts) flex.Watts {
		return max(0, min(most, power)-min(taken, power))
	})
}

// addSteps returns the sum of two lists of steps, each at most power.
func addSteps(a, b []flex.Step, power flex.Watts) []flex.Step {
	return combineSteps(a, b, func(x, y flex.Watts) flex.Watts {
		return min(x, power) + min(y, power)
	})
}

// combineSteps combines two lists of steps that cover the same time without gaps, by a
// function of their limits.
func combineSteps(a, b []flex.Step, of func(x, y flex.Watts) flex.Watts) []flex.Step {
	var out []flex.Step
	for _, x := range a {
		for _, y := range b {
			if span := x.Meet(y.Span); !span.Empty() {
				out = appendStep(out, flex.Step{Span: span, Limit: of(x.Limit, y.Limit)})
			}
		}
	}

	return out
}
