package headroom

import (
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// postponements is how many starts of one car are put off before it starts when it likes.
const postponements = 64

// Charge plans a car in the headroom that is left. It returns the problem as it was planned,
// with its limits. A start in a full minute is put off to the next that has a place; but the
// need goes before the pace of starts, and before the ceiling.
// Time that the problem closes already stays closed, if the need can be met as well then, and with no more from peak time.
func (r *Profile) Charge(
	p charge.Problem,
	cap int,
) (charge.Problem, charge.Plan) {
	limits := p.Limits
	p.Limits = r.Limits(&p, cap)
	first := charge.Solve(p)
	if r.ceiling != nil && first.Shortfall > 0 {
		ceiling := r.ceiling
		r.ceiling = nil
		defer func() { r.ceiling = ceiling }()

		free := p
		free.Limits = r.Limits(&p, cap)
		unlimited := charge.Solve(free)
		if unlimited.Shortfall < first.Shortfall {
			p, first = free, unlimited
		}
	}

	p, first = keepClosed(p, first, limits)

	// Close the minutes in which the car would start and must not, one gap after the other.
	paced, plan := p, first
	for range postponements {
		from, found := r.fullStart(&p, cap, plan.Steps)
		if !found {
			return paced, plan
		}

		to := from + 1
		for to < horizon && r.full(cap, to) {
			to++
		}

		paced.Limits = without(
			paced.Limits,
			flex.Span{From: r.instant(from), To: r.instant(to)},
			&p,
		)

		plan = charge.Solve(paced)
		if plan.Shortfall > first.Shortfall {
			break
		}
	}

	return p, first
}

// keepClosed plans a car with some time closed beside its limits, if that meets as much of its
// need as a plan that there is, and takes no more from peak time.
func keepClosed(
	p charge.Problem,
	plan charge.Plan,
	closed []flex.Step,
) (charge.Problem, charge.Plan) {
	q := p
	for _, s := range closed {
		q.Limits = without(q.Limits, s.Span, &p)
	}

	if len(closed) == 0 {
		return p, plan
	}
	if closedPlan := charge.Solve(q); !closedPlan.Worse(&plan, p.Power) {
		return q, closedPlan
	}

	return p, plan
}

// Limits returns the headroom of a car as limits of its problem: none if nothing binds it.
// Charge-now is not limited, but by LimitNow: whoever asks for it has their reason.
func (r *Profile) Limits(p *charge.Problem, cap int) []flex.Step {
	end := planEnd(p)
	bound := false
	m, to := r.minutes(flex.Span{From: p.From, To: end})

	var limits []flex.Step
	for at := p.From; m < to; m++ {
		until := r.instant(m + 1)
		if until.After(end) {
			until = end
		}

		limit := flex.Unbounded
		if w, _ := r.freePower(cap, m, int64(p.Power), leastOf(p)); w < int64(p.Power) {
			limit = flex.Watts(w)
			bound = true

			// Charge-now may end within the minute.
			now := p.ChargeNow.Meet(flex.Span{From: at, To: until})
			if !r.hard && !now.Empty() && now.From.Equal(at) {
				limits = flex.AppendStep(limits, now, flex.Unbounded)
				at = now.To
			}
		}

		if at.Before(until) {
			limits = flex.AppendStep(limits, flex.Span{From: at, To: until}, limit)
		}
		at = until
	}

	if !bound {
		return nil
	}

	return openTo(limits, end)
}

// openTo adds that nothing is known to bind from the last limit to an instant.
func openTo(limits []flex.Step, end time.Time) []flex.Step {
	last := limits[len(limits)-1].To
	if last.Before(end) {
		limits = flex.AppendStep(limits, flex.Span{From: last, To: end}, flex.Unbounded)
	}

	return limits
}

// planEnd returns the end of what is planned for a car: ready-by, or charge-now if that is later.
func planEnd(p *charge.Problem) time.Time {
	if p.ChargeNow.To.After(p.ReadyBy) {
		return p.ChargeNow.To
	}
	return p.ReadyBy
}

// without returns the limits with nothing allowed in a span, charge-now apart.
func without(
	limits []flex.Step,
	closed flex.Span,
	p *charge.Problem,
) []flex.Step {
	if len(limits) == 0 {
		limits = []flex.Step{
			{Span: flex.Span{From: p.From, To: planEnd(p)}, Limit: flex.Unbounded},
		}
	}
	if !p.ChargeNow.Empty() && closed.From.Before(p.ChargeNow.To) {
		closed.From = p.ChargeNow.To
	}

	var out []flex.Step
	add := func(s flex.Span, limit flex.Watts) {
		if !s.Empty() {
			out = flex.AppendStep(out, s, limit)
		}
	}

	for _, l := range limits {
		add(l.Meet(flex.Span{From: l.From, To: closed.From}), l.Limit)
		add(l.Meet(closed), 0)
		add(l.Meet(flex.Span{From: closed.To, To: l.To}), l.Limit)
	}

	return out
}

// Fits reports whether steps of a car stay within the headroom from the problem's start on,
// charge-now apart, without a start in a full minute. Power below the car's least does not.
func (r *Profile) Fits(p *charge.Problem, cap int, steps []flex.Step) bool {
	planned := make([]flex.Step, 0, len(steps))
	for _, s := range steps {
		s.Span = s.Meet(flex.Span{From: p.From, To: s.To})
		if s.Empty() {
			continue
		}

		planned = append(planned, s)
		draw := int64(min(s.Limit, p.Power))
		if draw > 0 && draw < int64(min(leastOf(p), p.Power)) {
			return false
		}

		for m, to := r.minutes(s.Span); draw > 0 && m < to; m++ {
			minute := flex.Span{From: r.instant(m), To: r.instant(m + 1)}
			chargeNow := !r.hard && !p.ChargeNow.Meet(minute).Empty() // it may begin within the minute
			if w, _ := r.freePower(cap, m, draw, leastOf(p)); w < draw && !chargeNow {
				return false
			}
		}
	}

	_, found := r.fullStart(p, cap, planned)

	return !found
}

// fullStart returns the first minute in which steps start although it is full. A start of
// charge-now is not put off.
func (r *Profile) fullStart(
	p *charge.Problem,
	cap int,
	steps []flex.Step,
) (int, bool) {
	var (
		minute int
		found  bool
	)

	r.eachStart(steps, p.Running, func(m int) bool {
		last := r.instant(m + 1).Add(-time.Second)
		if r.full(cap, m) && !p.ChargeNow.Contains(last) {
			minute = m
			found = true
		}
		return !found
	})

	return minute, found
}
