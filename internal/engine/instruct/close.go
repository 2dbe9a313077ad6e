package instruct

import (
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// Close plans a car that is not to charge in the closed time. It returns the problem with that
// time closed, and its plan. The need takes precedence: the car still charges in the closed
// time as much as it must, so that it falls no shorter, and takes no more energy in peak time,
// than without. The spans must be in order and must not overlap. Limits that the problem
// already has are dropped.
func Close(p charge.Problem, closed []flex.Span) (charge.Problem, charge.Plan) {
	p.Limits = nil

	return CloseBeside(p, charge.Solve(p), closed)
}

// CloseBeside is Close for a problem that keeps the limits that it has. free is its plan under
// these limits alone.
func CloseBeside(
	p charge.Problem,
	free charge.Plan,
	closed []flex.Span,
) (charge.Problem, charge.Plan) {
	otherLimits := p.Limits
	p.Limits = unionOfClosed(otherLimits, limits(&p, closed))
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
		total += roundedMinutes(d.Len())
	}

	// More open minutes never make the plan worse, so the least number that is enough is found
	// by bisection.
	enough := func(numMinutes int) bool {
		closedNow := Without(closed, firstMinutes(draws, numMinutes))
		p.Limits = unionOfClosed(otherLimits, limits(&p, closedNow))
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

// unionOfClosed returns the limits of two lists of closed time.
func unionOfClosed(a, b []flex.Step) []flex.Step {
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

// Union returns the time that is in one or both of two lists of spans, in order and without
// overlaps.
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

// Common returns the time that is in both of two lists of spans. Each list must be in order
// and without overlaps.
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

// limits returns closed time as limits of a problem; none if nothing of it is closed.
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

// drawnIn returns the times at which a plan draws power within spans, cut at half-hours: the
// cheapest first, and of equal ones the earliest.
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

// firstMinutes returns the first minutes of spans, in the order of the list, and sorts them by
// time.
func firstMinutes(draws []flex.Span, count int) []flex.Span {
	var out []flex.Span
	for _, d := range draws {
		if count <= 0 {
			break
		}

		most := time.Duration(count) * time.Minute
		count -= roundedMinutes(d.Len())
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

// roundedMinutes returns a duration in minutes, rounded up.
func roundedMinutes(d time.Duration) int {
	return int((d + time.Minute - 1) / time.Minute)
}

// Without returns the spans without the time of removed. Both must be in order.
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
