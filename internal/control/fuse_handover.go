package control

import (
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// fence holds a car that is planned anew to what the others leave whether or not they have
// accepted their own schedules yet. It is sent no less of its need for that than its schedule in force brings.
func (f *behindFuse) fence(car *siteCar) {
	car.core = car.want
	if !car.renewed {
		return
	}

	span := flex.Span{From: f.from, To: car.end(f.from)}
	limits := f.left(car, span)
	if fits(car.core, car.problem.Power, limits) {
		return
	}

	may := car.mayDraw()
	kept := f.stepped(span, car.least(), func(t time.Time) flex.Watts {
		return min(may.at(t), f.leftAt(car, t))
	})

	car.plan = car.yielding(lower(car.problem.Limits, limits, span), kept)
	car.core = car.plan.Steps
}

// yielding is the plan of a car until all others have accepted theirs: at the times that stay its own (open), and where those do not
// meet its need at those of its schedule in force that the others leave it (kept), until it may have others.
// What another car is to have of those it gives up only as far as its new plan has it do with less.
func (c *siteCar) yielding(open, kept []flex.Step) charge.Plan {
	p := c.problem
	allowed := c.plan.Shortfall // once all have accepted

	p.Limits = kept
	allowed = max(allowed, charge.Solve(p).Shortfall)
	c.problem.Limits = open
	plan := charge.Solve(c.problem)
	if plan.Shortfall <= allowed {
		return plan
	}

	missing := p
	missing.Need = plan.Shortfall - allowed
	missing.Mode, missing.ChargeNow = flex.Minimise, flex.Span{}
	missing.Limits = besides(kept, plan.Steps, p.Power)
	more := charge.Solve(missing)

	for _, limits := range [][]flex.Step{
		added(plan.Steps, more.Steps, p.Power),
		kept,
	} {
		c.problem.Limits = limits
		plan = charge.Solve(c.problem)
		if plan.Shortfall <= allowed {
			break
		}
	}

	return plan
}

// besides is what limits leave of a power beside some steps, which keep them or are at times that they close.
func besides(limits, steps []flex.Step, power flex.Watts) []flex.Step {
	return combined(limits, steps, func(most, taken flex.Watts) flex.Watts {
		return max(0, min(most, power)-min(taken, power))
	})
}

// added is the sum of steps.
func added(a, b []flex.Step, power flex.Watts) []flex.Step {
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
