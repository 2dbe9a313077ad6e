package control

import (
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// fenceAll says what cars may do for now, and what each has once it is done. A car that keeps its schedule in force is sent it again where
// only the latter changes. It may not fit any more then: a car that came back within a minute may still follow a schedule whose time others
// were given meanwhile, and so may one whose charger refused the next, and the fuse may have been set lower.
func (f *behindFuse) fenceAll(cars []*siteCar) {
	for _, car := range f.going(cars) {
		f.fence(car)
	}

	f.finishAll()

	for _, car := range cars {
		if !car.renewed && f.differs(car) {
			f.holdBack(car)
		}
	}
}

// fence is holdBack for a car that is planned again; another one keeps its schedule in force.
func (f *behindFuse) fence(car *siteCar) {
	car.stepsForNow = car.finalSteps
	if car.renewed {
		f.holdBack(car)
	}
}

// holdBack holds a car that is sent a schedule to what the others leave whether or not they have
// accepted their own schedules yet. It is sent no less of its need for that than its schedule in force brings.
func (f *behindFuse) holdBack(car *siteCar) {
	span := flex.Span{From: f.from, To: car.end(f.from)}
	limits := f.left(car, span)
	if staysWithin(car.stepsForNow, car.problem.Power, limits) {
		return
	}

	may := car.mayDraw()
	kept := f.stepped(span, car.least(), func(t time.Time) flex.Watts {
		return min(may.powerAt(t), f.leftAt(car, t))
	})

	car.yield(lesserLimits(car.problem.Limits, limits, span), kept, limits)
	car.stepsForNow = car.plan.Steps
	car.renewed = car.asked() || !sameAhead(
		stepsWithin(car.Current.Steps, span),
		car.stepsForNow,
		f.from,
	)
}

// asked reports whether somebody asked for another schedule of a car, or its schedule in force gives, which is planned again.
func (c *siteCar) asked() bool {
	caused := c.charging != nil && (c.cause.must || c.cause.trigger == ByEvent)

	return caused || c.Current.Generation == 0 || c.Current.From.Discharge != nil
}

// yield plans a car until all others have accepted theirs: at the times that stay its own (open). Where those do not meet its need, it
// takes what is missing at the times that its charger has already (kept), and then at those that are left, until it may have others.
// It gives up its need only as far as its plan once all have accepted, and what its charger may be doing now, do with less.
func (c *siteCar) yield(open, kept, left []flex.Step) {
	final := c.plan.Shortfall
	free := c.problem
	free.Limits = kept
	before := charge.Solve(free).Shortfall

	c.problem.Limits = open
	c.plan = charge.Solve(c.problem)
	c.fill(kept, max(final, before))
	c.fill(left, final)

	if c.plan.Shortfall > max(final, before) { // it is to charge in one go
		c.problem.Limits = kept
		c.plan = charge.Solve(c.problem)
	}
}

// fill has a car take what it lacks more than allowed beside its plan so far, within limits.
func (c *siteCar) fill(limits []flex.Step, allowed flex.WattHours) {
	if c.plan.Shortfall <= allowed {
		return
	}

	missing := c.problem
	missing.Need = c.plan.Shortfall - allowed
	missing.Mode, missing.ChargeNow = flex.Minimise, flex.Span{}
	missing.Limits = besides(limits, c.plan.Steps, missing.Power)
	more := charge.Solve(missing)

	p := c.problem
	p.Limits = addSteps(c.plan.Steps, more.Steps, p.Power)
	if plan := charge.Solve(p); plan.Shortfall < c.plan.Shortfall {
		c.problem, c.plan = p, plan
	}
}

// besides is what limits leave of a power beside some steps, which keep them or are at times that they close.
func besides(limits, steps []flex.Step, power flex.Watts) []flex.Step {
	return combined(limits, steps, func(most, taken flex.Watts) flex.Watts {
		return max(0, min(most, power)-min(taken, power))
	})
}

// addSteps returns the sum of steps.
func addSteps(a, b []flex.Step, power flex.Watts) []flex.Step {
	return combined(a, b, func(x, y flex.Watts) flex.Watts {
		return min(x, power) + min(y, power)
	})
}

// combined is what a function makes of two lists that cover the same time without a gap.
func combined(a, b []flex.Step, of func(x, y flex.Watts) flex.Watts) []flex.Step {
	var out []flex.Step
	for _, x := range a {
		for _, y := range b {
			if span := x.Meet(y.Span); !span.Empty() {
				out = joined(out, flex.Step{Span: span, Limit: of(x.Limit, y.Limit)})
			}
		}
	}

	return out
}
