package ramp

import (
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// Apply returns the problem of a car with its offset within a spread. The need has priority: a
// plan of it misses no more of the need, and takes no more from peak time, than one without an
// offset. Limits that the problem has already are dropped.
func Apply(p charge.Problem, offset, spread time.Duration) charge.Problem {
	if spread <= 0 {
		return p
	}

	p.Offset = offset
	p.Limits = nil
	windows := windowsOf(&p)
	loss := mostDelay(&p, windows, spread)
	if loss <= 0 {
		return p
	}

	for _, w := range windows {
		d := min(loss, w.Len()/2).Truncate(time.Second)
		begin := (time.Duration(float64(d) * offset.Seconds() / spread.Seconds())).Truncate(
			time.Second,
		)

		if w.From.After(p.From) {
			p.Limits = limitedIn(p.Limits, &p, flex.Span{
				From: w.From,
				To:   w.From.Add(begin),
			})
		}

		p.Limits = limitedIn(p.Limits, &p, flex.Span{
			From: w.To.Add(begin - d),
			To:   w.To,
		})
	}

	return p
}

// windowsOf returns the off-peak time until ready-by.
func windowsOf(p *charge.Problem) []flex.Span {
	planning := flex.Span{From: p.From, To: p.ReadyBy}
	if planning.Empty() {
		return nil
	}
	if p.AllOffPeak {
		return []flex.Span{planning}
	}

	var out []flex.Span
	for _, s := range p.OffPeak {
		s = s.Meet(planning)
		switch n := len(out); {
		case s.Empty():
		case n > 0 && !out[n-1].To.Before(s.From):
			out[n-1].To = s.To
		default:
			out = append(out, s)
		}
	}

	return out
}

// mostDelay returns how much time each window can lose, in whole seconds: the spread, or what
// the need leaves. One minute is reserved, because plans are rounded to minutes.
func mostDelay(
	p *charge.Problem,
	windows []flex.Span,
	spread time.Duration,
) time.Duration {
	if len(windows) == 0 || p.Power <= 0 {
		return 0
	}

	slack := -fullPowerTime(p) - time.Minute
	for _, w := range windows {
		slack += w.Len()
	}

	return max(
		0,
		min(spread, slack/time.Duration(len(windows))),
	).Truncate(time.Second)
}

// limitedIn appends a span without charging, except for charge-now.
func limitedIn(limits []flex.Step, p *charge.Problem, s flex.Span) []flex.Step {
	now := s.Meet(p.ChargeNow)
	if now.Empty() {
		now = flex.Span{From: s.To, To: s.To}
	}

	for _, part := range []flex.Span{
		{From: s.From, To: now.From},
		{From: now.To, To: s.To},
	} {
		if !part.Empty() {
			limits = append(limits, flex.Step{Span: part})
		}
	}

	slices.SortFunc(limits, func(a, b flex.Step) int {
		return a.From.Compare(b.From)
	})

	return limits
}

// Keep returns a problem in which the car continues its present state until its own next
// half-hour begins. So many cars that are planned again together do not change together. A car
// that charges continues in open time, at most for as long as its need takes, and at most
// until the given instant, if there is one. A car that does not charge begins later, if the
// need leaves the time. Charge-now is unchanged. The limits must be those of Apply.
func Keep(
	p charge.Problem,
	offset time.Duration,
	most time.Time,
) charge.Problem {
	own := p.From.Add(-offset).Truncate(flex.HalfHour).Add(flex.HalfHour + offset)
	until := flex.Span{From: p.From, To: own}
	if !p.ChargeNow.Empty() || p.Power <= 0 {
		return p
	}

	if p.Running {
		if !most.IsZero() && most.Before(own) {
			until.To = most
		}
		p.ChargeNow = goingOn(&p, until)
		return p
	}

	limited := p
	limited.Limits = limitedIn(slices.Clone(p.Limits), &p, until)
	limited.Limits = joinOverlaps(limited.Limits)
	if openTime(&limited) >= fullPowerTime(&p)+time.Minute {
		return limited
	}

	return p
}

// goingOn returns how long a charging car continues.
func goingOn(p *charge.Problem, until flex.Span) flex.Span {
	for _, w := range windowsOf(p) {
		if !w.Contains(p.From) {
			continue
		}

		on := until.Meet(w)
		for _, l := range p.Limits {
			if l.To.After(p.From) && l.From.Before(on.To) {
				on.To = l.From
			}
		}

		end := p.From.Add(fullPowerTime(p))
		if p.Mode == flex.Minimise && end.Before(on.To) {
			on.To = end
		}

		if on.Empty() {
			break
		}
		return on
	}

	return flex.Span{}
}

// fullPowerTime returns how long the need takes at full power.
func fullPowerTime(p *charge.Problem) time.Duration {
	return max(
		0,
		time.Duration((int64(p.Need)*3600+int64(p.Power)-1)/int64(p.Power))*time.Second,
	)
}

// openTime returns the off-peak time until ready-by without closed spans.
func openTime(p *charge.Problem) time.Duration {
	var sum time.Duration
	for _, w := range windowsOf(p) {
		sum += w.Len()
		for _, l := range p.Limits {
			sum -= l.Meet(w).Len()
		}
	}

	return sum
}

// joinOverlaps merges overlapping closed spans, which must be sorted.
func joinOverlaps(limits []flex.Step) []flex.Step {
	var out []flex.Step
	for _, l := range limits {
		n := len(out)
		if n > 0 && !out[n-1].To.Before(l.From) {
			out[n-1].To = flex.Later(out[n-1].To, l.To)
			continue
		}
		out = append(out, l)
	}

	return out
}
