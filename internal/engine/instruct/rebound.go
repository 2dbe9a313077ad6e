package instruct

import (
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// ReboundMost is how much of an instruction's power called cars may draw above their plans after it, as far as
// their needs allow.
const ReboundMost Percent = 10

const (
	reboundSlot  = 5 * time.Minute
	reboundSlots = int(24 * time.Hour / reboundSlot)
)

// Rebound is what called cars draw above their plans after a window, slot by slot: those that are planned
// later leave the time out that others have taken. The zero value is of no use: NewRebound.
type Rebound struct {
	end  time.Time // of the window
	most flex.Watts
	more [reboundSlots]flex.Watts
}

// NewRebound is for cars that reduce their power by a mean in a window that ends then.
func NewRebound(end time.Time, power flex.Watts) *Rebound {
	return &Rebound{end: end, most: power * flex.Watts(ReboundMost) / 100}
}

// levels are parts of what is allowed that may be drawn: the first as a rule, with a little left for cars whose needs
// leave no choice; those try the others, one after the other.
var levels = []Percent{96, 110, 125, 150, 200, 300}

// afters are the times after the window that a car may leave out so that it does not come back with others, the one
// that is best first. The last is none, but for a car that must not come back with more others than allowed.
func (o Order) afters(power flex.Watts) [][]flex.Span {
	hour := []flex.Span{{
		From: o.Window.To,
		To:   o.Window.To.Add(Guard),
	}}

	var all [][]flex.Span
	if o.Rebound != nil && !o.Up {
		full := o.Rebound.full(power, levels[0])
		all = append(all, Union(hour, full), full)
		if !o.Over {
			return all
		}
		for _, level := range levels[1:] {
			all = append(all, o.Rebound.full(power, level))
		}
	}

	return append(all, hour, nil)
}

// full is the time in which a car of some power would take what is drawn above the plans over a level. Where
// nobody came back yet there is always room for one.
func (r *Rebound) full(power flex.Watts, level Percent) []flex.Span {
	most := r.most * flex.Watts(level) / 100

	var out []flex.Span
	for i, more := range r.more {
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

// Add counts a car that is planned: a slot counts as filled by the most that is drawn in it above the schedule in
// force.
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
		r.more[i] += w
	}
}

// AddPowers counts a heater that is planned: by how much it draws more than by the plan that it had.
func (r *Rebound) AddPowers(steps, before []flex.Step, power flex.Watts) {
	var more [reboundSlots]charge.Joules
	r.count(&more, steps, power, 1)
	r.count(&more, before, power, -1)

	for i, e := range more {
		r.more[i] += max(0, flex.Watts(e/charge.Joules(reboundSlot/time.Second)))
	}
}

// count adds what steps draw in each slot, times a factor: 1, or -1 to take it away.
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

// FreePower returns by how much a heater of some power may draw more than by the plan that it had throughout a span, beside those that were counted:
// at its power where nobody came back yet, as there is always room for one. False outside of the day after the window.
// The share is what the others take, of ten times what is allowed.
func (r *Rebound) FreePower(span flex.Span, power flex.Watts) (free flex.Watts, share float64, limited bool) {
	from := int(span.From.Sub(r.end) / reboundSlot)
	to := int((span.To.Sub(r.end) + reboundSlot - 1) / reboundSlot)
	if span.From.Before(r.end) || to > reboundSlots {
		return 0, 0, false
	}

	most := r.most * flex.Watts(levels[0]) / 100
	others := flex.Watts(0)
	for _, more := range r.more[from:to] {
		others = max(others, more)
	}

	if others == 0 {
		return max(power, most), 0, true
	}

	share = float64(others) / float64(max(1, 10*most))

	return max(0, most-others), min(1, share), true
}

// drawingSpans is when steps draw.
func drawingSpans(steps []flex.Step) []flex.Span {
	var out []flex.Span
	for _, s := range steps {
		if s.Limit > 0 {
			out = append(out, s.Span)
		}
	}

	return out
}

// rounds is how often others are chosen in the place of cars that would come back with too many.
const rounds = 20

// ChooseApart is Choose for cars that are not to come back all at once: plan plans the car at a place again, and
// reports whether it comes back with no more others than allowed; one that does not may be planned again, over
// that, if nobody else brings what is missing. The cars with the earliest ready-by are planned first. Fair
// chooses nobody in the place of another who was called more often.
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
		takeOff(missing, &all[i], -1)
	}

	for range rounds {
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

// replacements is who may be chosen in the place of others: who was not chosen yet, and if it is fair was called no
// more often than they.
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
