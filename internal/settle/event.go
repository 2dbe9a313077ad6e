package settle

import (
	"cmp"
	"slices"
	"time"

	"flexd/internal/flex"
)

// Dispatch is a schedule that an asset followed from an instant until the next dispatch.
type Dispatch struct {
	At    time.Time
	Steps []flex.Step
}

// Steering is how an asset was controlled in a span, and how it would have been without the
// market.
type Steering struct {
	Within     flex.Span  // the plug session, or the client's own schedule
	Dispatched []Dispatch // the schedules that the asset followed
	// the plans without market prices, or the client's schedule
	Counterfactual []Dispatch
	// times when the user decided, such as a charge-now
	Overrides []flex.Span
	Power     flex.Watts // rated; what an unlimited step draws
	Least     flex.WattHours
}

// OutsideSpans returns the parts of the event in the half-hours that touch none of the spans.
func (e Event) OutsideSpans(spans []flex.Span) []Event {
	var parts []Event
	for i, intended := range e.Meant {
		p := e.Day.Period(e.First + i)
		if !slices.ContainsFunc(spans, func(s flex.Span) bool { return !s.Meet(p.Span()).Empty() }) {
			parts = joinEvent(parts, p, intended)
		}
	}

	return parts
}

// LeastFlexed is the printed default of Steering.Least. A smaller difference in a settlement
// period is no event.
const LeastFlexed flex.WattHours = 50

// Event is an unbroken run of settlement periods of one day in which an asset was controlled
// in one direction.
type Event struct {
	Day   flex.Day
	First int // settlement period of the day, from 1
	Last  int
	// Meant is what the schedules would have moved in each period; the meter says what did.
	Meant []flex.WattHours
}

// Down reports whether the asset was made to use less.
func (e Event) Down() bool { return e.Meant[0] < 0 }

// Span returns the event's time.
func (e Event) Span() flex.Span {
	return flex.Span{
		From: e.Day.Period(e.First).Start(),
		To:   e.Day.Period(e.Last).End(),
	}
}

// Detect returns the flex events of a steering, in order: the half-hours in which the
// schedules in force allowed clearly more or less energy than the counterfactual. Time under
// an override, before the first dispatch or without a schedule does not count. Without a
// dispatch there is no event.
func Detect(s Steering) []Event {
	if len(s.Dispatched) == 0 {
		return nil
	}

	first := slices.MinFunc(s.Dispatched, func(a, b Dispatch) int {
		return a.At.Compare(b.At)
	})
	s.Within = s.Within.Meet(flex.Span{From: first.At, To: s.Within.To})
	if s.Within.Empty() {
		return nil
	}

	var events []Event
	actual, counterfactual := InForce(s.Dispatched, s.Within.To), InForce(s.Counterfactual, s.Within.To)

	last := flex.PeriodAt(s.Within.To.Add(-1))
	for p := flex.PeriodAt(s.Within.From); !last.Before(p); p = p.Add(1) {
		intended := s.energy(actual, p) - s.energy(counterfactual, p)
		if max(intended, -intended) < max(s.Least, 1) {
			continue
		}
		events = joinEvent(events, p, intended)
	}

	return events
}

// InForce merges dispatches into one schedule. Each applies until the next one, and the last
// one until the end.
func InForce(dispatches []Dispatch, until time.Time) []flex.Step {
	order := slices.SortedStableFunc(slices.Values(dispatches), func(a, b Dispatch) int {
		return a.At.Compare(b.At)
	})
	var steps []flex.Step

	for i, d := range order {
		validity := flex.Span{From: d.At, To: until}
		if i+1 < len(order) {
			validity.To = order[i+1].At
		}

		for _, step := range d.Steps {
			step.Span = step.Meet(validity)
			if !step.Empty() {
				steps = append(steps, step)
			}
		}
	}

	return steps
}

// Drawn returns the energy of an asset that follows the steps in a span. In time that no step
// covers it draws nothing.
func Drawn(
	steps []flex.Step,
	power flex.Watts,
	in flex.Span,
) flex.WattHours {
	drawn, _ := drawnIn(steps, power, in)
	return flex.WattHours(drawn / 3600)
}

// Planned returns Drawn for each half-hour that the span touches.
func Planned(
	steps []flex.Step,
	power flex.Watts,
	in flex.Span,
) []flex.WattHours {
	stay := Stay{Span: in}
	plan := make([]flex.WattHours, stay.halfHours())
	for i := range plan {
		plan[i] = Drawn(
			steps,
			power,
			flex.PeriodAt(in.From).Add(i).Span().Meet(in),
		)
	}

	return plan
}

// drawnIn returns the energy in watt-seconds, and the seconds that the steps cover.
func drawnIn(
	steps []flex.Step,
	power flex.Watts,
	in flex.Span,
) (wattSeconds, covered int64) {
	for _, step := range steps {
		seconds := int64(step.Meet(in).Len() / time.Second)
		covered += seconds
		wattSeconds += seconds * int64(min(step.Limit, power))
	}

	return wattSeconds, covered
}

// energy returns the energy that the steps allow in the controlled parts of the period. Time
// that no step covers counts at full power.
func (s *Steering) energy(steps []flex.Step, p flex.Period) flex.WattHours {
	var wattSeconds int64
	for _, part := range s.controlledParts(p) {
		drawn, covered := drawnIn(steps, s.Power, part)
		wattSeconds += drawn +
			(int64(part.Len()/time.Second)-covered)*int64(s.Power)
	}

	return flex.WattHours(wattSeconds / 3600)
}

// controlledParts returns the parts of the period under control and without an override.
func (s *Steering) controlledParts(p flex.Period) []flex.Span {
	parts := []flex.Span{p.Span().Meet(s.Within)}
	for _, o := range slices.SortedFunc(
		slices.Values(s.Overrides),
		func(a, b flex.Span) int {
			return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To))
		},
	) {
		rest := parts[len(parts)-1]
		parts[len(parts)-1] = rest.Meet(flex.Span{From: rest.From, To: o.From})

		if o.To.After(rest.From) {
			rest.From = o.To
		}

		parts = append(parts, rest)
	}

	return slices.DeleteFunc(parts, flex.Span.Empty)
}
