package instruct

import (
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// Close plans a car that is to leave time out. It returns the problem with that time closed,
// and its plan. The need wins: of what the car would have drawn in that time it keeps as much
// as it takes to fall no shorter, and to take no more from peak time, than without. The spans
// are in order and apart; limits that the problem has already are dropped.
func Close(p charge.Problem, closed []flex.Span) (charge.Problem, charge.Plan) {
	p.Limits = nil

	return CloseBeside(p, charge.Solve(p), closed)
}

// CloseBeside closes time of a car beside the limits that its problem has, which stay as they are. Free
// is its plan by these.
func CloseBeside(
	p charge.Problem,
	free charge.Plan,
	closed []flex.Span,
) (charge.Problem, charge.Plan) {
	otherLimits := p.Limits
	p.Limits = closedByEither(otherLimits, limits(&p, closed))
	if slices.Equal(p.Limits, otherLimits) {
		return p, free
	}

	plan := charge.Solve(p)
	if !plan.Worse(&free, p.Power) {
		return p, plan
	}

	draws := drawnIn(&free, closed)
	total := 0
	for _, d := range draws {
		total += minutes(d.Len())
	}

	// More that is kept never makes it worse: the least number of minutes is found by halving.
	enough := func(numMinutes int) bool {
		closedNow := Without(closed, firstMinutes(draws, numMinutes))
		p.Limits = closedByEither(otherLimits, limits(&p, closedNow))
		plan = charge.Solve(p)
		return !plan.Worse(&free, p.Power)
	}

	low, high := 1, total
	for low < high {
		middle := (low + high) / 2
		if enough(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}

	if !enough(low) {
		p.Limits = otherLimits
		return p, free
	}

	return p, plan
}

// closedByEither returns the limits of two lists of closed time.
func closedByEither(a, b []flex.Step) []flex.Step {
	if len(a) == 0 || len(b) == 0 {
		return append(a[:len(a):len(a)], b...)
	}

	var out []flex.Step
	for _, s := range Union(spansOf(a), spansOf(b)) {
		out = append(out, flex.Step{Span: s})
	}

	return out
}

func spansOf(steps []flex.Step) []flex.Span {
	var spans []flex.Span
	for _, s := range steps {
		spans = append(spans, s.Span)
	}

	return spans
}

// Union is the time that is in one or the other of two lists of spans, in order and apart.
func Union(a, b []flex.Span) []flex.Span {
	all := append(slices.Clone(a), b...)
	slices.SortFunc(all, func(x, y flex.Span) int { return x.From.Compare(y.From) })

	var out []flex.Span
	for _, s := range all {
		last := len(out) - 1
		if last < 0 || out[last].To.Before(s.From) {
			out = append(out, s)
			continue
		}

		if s.To.After(out[last].To) {
			out[last].To = s.To
		}
	}

	return out
}

// Common is the time that is in both of two lists of spans, each in order and apart.
func Common(a, b []flex.Span) []flex.Span {
	var out []flex.Span
	for _, s := range a {
		for _, t := range b {
			if overlap := s.Meet(t); !overlap.Empty() {
				out = append(out, overlap)
			}
		}
	}

	return out
}

// limits writes closed time as limits of a problem: none if nothing of it is closed.
func limits(p *charge.Problem, closed []flex.Span) []flex.Step {
	planning := flex.Span{From: p.From, To: p.ReadyBy}

	var out []flex.Step
	for _, s := range Without(closed, []flex.Span{p.ChargeNow}) {
		s = s.Meet(planning)
		if !s.Empty() {
			out = append(out, flex.Step{Span: s})
		}
	}

	return out
}

// drawnIn returns when a plan draws within spans, cut at half-hours, the cheapest first, and of
// equal ones the earliest.
func drawnIn(plan *charge.Plan, within []flex.Span) []flex.Span {
	type priced struct {
		flex.Span
		price flex.Price
	}

	var all []priced
	for i := range plan.Periods {
		for _, s := range plan.Steps {
			if s.Limit <= 0 {
				continue
			}

			for _, span := range within {
				overlap := span.Meet(s.Meet(plan.Periods[i].Span))
				if !overlap.Empty() {
					all = append(all, priced{overlap, plan.Periods[i].Price})
				}
			}
		}
	}

	slices.SortStableFunc(all, func(a, b priced) int {
		return int(min(1, max(-1, a.price-b.price)))
	})

	var draws []flex.Span
	for _, a := range all {
		draws = append(draws, a.Span)
	}

	return draws
}

// firstMinutes returns the first minutes of spans, one after the other, sorted by time.
func firstMinutes(draws []flex.Span, count int) []flex.Span {
	var out []flex.Span
	for _, d := range draws {
		if count <= 0 {
			break
		}

		most := time.Duration(count) * time.Minute
		count -= minutes(d.Len())
		if d.Len() > most {
			d.To = d.From.Add(most)
		}

		out = append(out, d)
	}

	slices.SortFunc(out, func(a, b flex.Span) int {
		return a.From.Compare(b.From)
	})

	return out
}

// minutes is a time in minutes, the last one begun.
func minutes(d time.Duration) int {
	return int((d + time.Minute - 1) / time.Minute)
}

// Without returns what is left of spans when others are taken out, both in order.
func Without(spans, removed []flex.Span) []flex.Span {
	var out []flex.Span
	for _, s := range spans {
		for _, t := range removed {
			cut := t.Meet(s)
			if cut.Empty() {
				continue
			}

			if s.From.Before(cut.From) {
				out = append(out, flex.Span{From: s.From, To: cut.From})
			}
			s.From = cut.To
		}

		if s.From.Before(s.To) {
			out = append(out, s)
		}
	}

	return out
}
