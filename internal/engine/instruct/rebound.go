package instruct

import (
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// ReboundMost is how much of an instruction's power the called cars may draw above their plans
// after it, as far as their needs allow.
const ReboundMost Percent = 10

const (
	reboundSlot  = 5 * time.Minute
	reboundSlots = int(24 * time.Hour / reboundSlot)
)

// Rebound counts what called cars draw above their plans after a window, slot by slot. Cars
// that are planned later avoid the slots that are full. Use NewRebound: the zero value is not
// usable.
type Rebound struct {
	end     time.Time // of the window
	allowed flex.Watts
	extra   [reboundSlots]flex.Watts
}

// NewRebound returns an empty count for a window that ends at end, in which cars reduce their
// power by power on average.
func NewRebound(end time.Time, power flex.Watts) *Rebound {
	return &Rebound{end: end, allowed: power * flex.Watts(ReboundMost) / 100}
}

// reboundLevels are percentages of the allowed rebound up to which a slot may be filled. The
// first is the usual one, and leaves a little for cars whose needs leave no choice. Those try
// the others in order.
var reboundLevels = []Percent{96, 110, 125, 150, 200, 300}

// spansToAvoid returns lists of times after the window that a car may avoid so that it does not
// return together with others, the best list first. The last list is empty, except for a car
// that must not exceed the allowed rebound.
func (o Order) spansToAvoid(power flex.Watts) [][]flex.Span {
	hour := []flex.Span{{
		From: o.Window.To,
		To:   o.Window.To.Add(Guard),
	}}

	var all [][]flex.Span
	if o.Rebound != nil && !o.Up {
		full := o.Rebound.fullSpans(power, reboundLevels[0])
		all = append(all, Union(hour, full), full)
		if !o.Over {
			return all
		}
		for _, level := range reboundLevels[1:] {
			all = append(all, o.Rebound.fullSpans(power, level))
		}
	}

	return append(all, hour, nil)
}

// fullSpans returns the slots in which one more car of a given power would exceed a level of
// the allowed rebound. A slot to which nobody returns yet always has room for one car.
func (r *Rebound) fullSpans(power flex.Watts, level Percent) []flex.Span {
	most := r.allowed * flex.Watts(level) / 100

	var out []flex.Span
	for i, more := range r.extra {
		if more <= 0 || more+power <= most {
			continue
		}

		from := r.end.Add(time.Duration(i) * reboundSlot)
		if n := len(out); n > 0 && out[n-1].To.Equal(from) {
			out[n-1].To = from.Add(reboundSlot)
			continue
		}
		out = append(out, flex.Span{From: from, To: from.Add(reboundSlot)})
	}

	return out
}

// Add counts a car that is planned. A slot counts as filled by the most that is drawn in it
// above the schedule in force.
func (r *Rebound) Add(steps, inForce []flex.Step, power flex.Watts) {
	var more [reboundSlots]flex.Watts
	for _, s := range steps {
		if s.Limit <= 0 {
			continue
		}

		for _, extra := range Without([]flex.Span{s.Span}, drawingSpans(inForce)) {
			from := max(0, int(extra.From.Sub(r.end)/reboundSlot))
			to := int((extra.To.Sub(r.end) + reboundSlot - 1) / reboundSlot)
			for i := from; i < min(reboundSlots, to); i++ {
				more[i] = max(more[i], min(s.Limit, power))
			}
		}
	}

	for i, w := range more {
		r.extra[i] += w
	}
}

// AddPowers counts a heater that is planned, by how much more it draws than by its plan from
// before.
func (r *Rebound) AddPowers(steps, before []flex.Step, power flex.Watts) {
	var more [reboundSlots]charge.Joules
	r.count(&more, steps, power, 1)
	r.count(&more, before, power, -1)

	for i, e := range more {
		r.extra[i] += max(0, flex.Watts(e/charge.Joules(reboundSlot/time.Second)))
	}
}

// count adds what steps draw in each slot, times a factor: 1, or -1 to subtract it.
func (r *Rebound) count(
	more *[reboundSlots]charge.Joules,
	steps []flex.Step,
	power flex.Watts,
	times charge.Joules,
) {
	const width = int64(reboundSlot / time.Second)
	for _, s := range steps {
		energy := times * charge.Joules(min(s.Limit, power))
		from := max(0, int64(s.From.Sub(r.end)/time.Second))
		to := min(int64(reboundSlots)*width, int64(s.To.Sub(r.end)/time.Second))
		if energy == 0 || from >= to {
			continue
		}

		for i := from / width; i*width < to; i++ {
			part := min(to, (i+1)*width) - max(from, i*width)
			more[i] += energy * charge.Joules(part)
		}
	}
}

// FreePower returns by how much a heater may draw more than by its plan from before throughout
// a span, given the rebound counted so far. To a span to which nobody returns yet it may
// return at its full power. limited is false outside of the day after the window, where
// nothing is limited. share is what the others take, as a fraction of ten times the allowed
// rebound.
func (r *Rebound) FreePower(span flex.Span, power flex.Watts) (free flex.Watts, share float64, limited bool) {
	from := int(span.From.Sub(r.end) / reboundSlot)
	to := int((span.To.Sub(r.end) + reboundSlot - 1) / reboundSlot)
	if span.From.Before(r.end) || to > reboundSlots {
		return 0, 0, false
	}

	most := r.allowed * flex.Watts(reboundLevels[0]) / 100
	others := flex.Watts(0)
	for _, more := range r.extra[from:to] {
		others = max(others, more)
	}

	if others == 0 {
		return max(power, most), 0, true
	}

	share = float64(others) / float64(max(1, 10*most))

	return max(0, most-others), min(1, share), true
}

// drawingSpans returns the times at which steps draw power.
func drawingSpans(steps []flex.Step) []flex.Span {
	var out []flex.Span
	for _, s := range steps {
		if s.Limit > 0 {
			out = append(out, s.Span)
		}
	}

	return out
}

// rounds is how often cars are chosen to replace those that would exceed the allowed rebound.
const rounds = 20

// ChooseApart is Choose for cars that should not all return at once. plan plans the car at an
// index again, and reports whether it stays within the allowed rebound. A car that does not
// may be planned again with overLimit, if no other car brings what is missing. The cars with
// the earliest ready-by are planned first. With fair, no car replaces another one that was
// called less often.
func ChooseApart(
	target []charge.Joules,
	all []Candidate,
	fair bool,
	readyBy func(place int) time.Time,
	plan func(place int, overLimit bool) bool,
) []int {
	missing := slices.Clone(target)
	remaining := make([]int, len(all))
	for i := range remaining {
		remaining[i] = i
	}

	var called, overLimit []int
	include := func(i int) {
		called = append(called, i)
		subtractChange(missing, &all[i], -1)
	}

	for range rounds {
		// Choose, plan those with the earliest ready-by first, and replace those over the
		// limit.
		chosen := chooseAmong(missing, all, remaining, fair)
		slices.SortStableFunc(chosen, func(a, b int) int { return readyBy(a).Compare(readyBy(b)) })

		before := len(overLimit)
		for _, i := range chosen {
			if plan(i, false) {
				include(i)
			} else {
				overLimit = append(overLimit, i)
			}
		}

		if len(overLimit) == before {
			break
		}
		remaining = replacements(all, remaining, chosen, overLimit, fair)
	}

	// What is still missing can only come from cars that exceed the limit.
	for _, i := range chooseAmong(missing, all, overLimit, fair) {
		plan(i, true)
		include(i)
	}

	return called
}

// chooseAmong is Choose among some places.
func chooseAmong(
	target []charge.Joules,
	all []Candidate,
	places []int,
	fair bool,
) []int {
	candidates := make([]Candidate, len(places))
	for n, i := range places {
		candidates[n] = all[i]
	}

	chosen := Choose(target, candidates, fair)
	for n := range chosen {
		chosen[n] = places[chosen[n]]
	}

	return chosen
}

// replacements returns the indexes of the cars that may replace others: those that were not
// chosen yet and, with fair, were not called more often.
func replacements(all []Candidate, remaining, chosen, overLimit []int, fair bool) []int {
	calls := 0
	for _, i := range overLimit {
		calls = max(calls, all[i].Calls)
	}

	chosenAlready := make(map[int]bool, len(chosen))
	for _, i := range chosen {
		chosenAlready[i] = true
	}

	return slices.DeleteFunc(remaining, func(i int) bool {
		return chosenAlready[i] || fair && all[i].Calls > calls
	})
}
