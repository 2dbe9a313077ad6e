package headroom

import (
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// postponementsMax is how many starts of one car are put off. After that it starts when its
// plan says.
const postponementsMax = 64

// Charge plans a car in the headroom that is left. It returns the problem as it was planned,
// with its limits, and the plan. A start in a full minute is put off to the next minute with a
// place. The need takes precedence over the number of starts, and over the ceiling.
//
// Time that the problem closes stays closed, if the need can be met as well without it and no
// more energy is drawn in peak time.
func (r *Profile) Charge(
	p charge.Problem,
	cap int,
) (charge.Problem, charge.Plan) {
	limits := p.Limits
	p.Limits = r.Limits(&p, cap)
	first := charge.Solve(p)
	// If the ceiling leaves a shortfall, plan without it, and use that plan if it meets more.
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

	p, first = planWithClosed(p, first, limits)

	// Close the minutes in which the car would start but must not, from one postponed start to
	// the next.
	paced, plan := p, first
	for range postponementsMax {
		from, found := r.firstFullStart(&p, cap, plan.Steps)
		if !found {
			return paced, plan
		}

		to := from + 1
		for to < horizon && r.full(cap, to) {
			to++
		}

		paced.Limits = closeSpan(
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

// planWithClosed plans a car with its closed time as further limits. It uses that plan only if
// it meets as much of the need as the given one, and takes no more energy in peak time.
func planWithClosed(
	p charge.Problem,
	plan charge.Plan,
	closed []flex.Step,
) (charge.Problem, charge.Plan) {
	q := p
	for _, s := range closed {
		q.Limits = closeSpan(q.Limits, s.Span, &p)
	}

	if len(closed) == 0 {
		return p, plan
	}
	if closedPlan := charge.Solve(q); !closedPlan.Worse(&plan, p.Power) {
		return q, closedPlan
	}

	return p, plan
}

// Limits returns the headroom of a car as limits of its problem: none if no cap limits it.
// Charge-now is limited only after LimitNow, as its user has a reason for it.
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
			if !r.limitsNow && !now.Empty() && now.From.Equal(at) {
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

// openTo adds an unlimited step from the last limit to an instant.
func openTo(limits []flex.Step, end time.Time) []flex.Step {
	last := limits[len(limits)-1].To
	if last.Before(end) {
		limits = flex.AppendStep(limits, flex.Span{From: last, To: end}, flex.Unbounded)
	}

	return limits
}

// planEnd returns the end of what is planned for a car: ready-by, or charge-now if that is
// later.
func planEnd(p *charge.Problem) time.Time {
	if p.ChargeNow.To.After(p.ReadyBy) {
		return p.ChargeNow.To
	}
	return p.ReadyBy
}

// closeSpan returns the limits with no charging allowed in a span, except for charge-now.
func closeSpan(
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

// Fits reports whether a car's steps, from the problem's start on, stay within the headroom
// and start in no full minute. Charge-now is not checked. Power below the car's least never
// fits.
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
			chargeNow := !r.limitsNow && !p.ChargeNow.Meet(minute).Empty() // it may begin within the minute
			if w, _ := r.freePower(cap, m, draw, leastOf(p)); w < draw && !chargeNow {
				return false
			}
		}
	}

	_, found := r.firstFullStart(p, cap, planned)

	return !found
}

// firstFullStart returns the first minute in which the steps start although it is full. The
// start of a charge-now is not put off.
func (r *Profile) firstFullStart(
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
