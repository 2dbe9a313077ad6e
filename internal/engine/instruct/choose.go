package instruct

import (
	"cmp"
	"container/heap"
	"slices"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// Candidate is a car that may be called.
type Candidate struct {
	Change  []charge.Joules  // in each slot, the way that is asked for
	Cost    flex.MicroPounds // of calling it
	Calls   int              // how often its site was called before
	Quality Percent          // how much of its change counts
}

// Percent is a share of 100.
type Percent int

// counts is what of a candidate's change is counted on in a slot.
func (c *Candidate) counts(slot int) charge.Joules {
	return c.Change[slot] * charge.Joules(c.Quality) / 100
}

// Choose returns the places of the candidates that are to be called so that every slot's target
// is reached, at little cost (see the package), in the order in which they were chosen. Where
// the target cannot be reached it is all that bring it nearer. Fair calls nobody again before
// all who bring it nearer were called as often.
func Choose(target []charge.Joules, all []Candidate, fair bool) []int {
	missing := slices.Clone(target)
	places := make([]int, len(all))
	for i := range places {
		places[i] = i
	}

	round := func(i int) int { return 0 }
	if fair {
		round = func(i int) int { return all[i].Calls }
	}

	slices.SortStableFunc(places, func(a, b int) int {
		return cmp.Compare(round(a), round(b))
	})

	var called []int
	for len(places) > 0 && isShort(missing) {
		n := 1
		for n < len(places) && round(places[n]) == round(places[0]) {
			n++
		}

		called = append(called, cheapest(missing, all, places[:n])...)
		places = places[n:]
	}

	return unneeded(missing, all, called)
}

// cheapest takes candidates by rising cost for each joule that is still missing, until nothing
// is, and takes off what they bring.
func cheapest(
	missing []charge.Joules,
	all []Candidate,
	places []int,
) []int {
	q := &queue{}
	for _, i := range places {
		if u := useful(missing, &all[i]); u > 0 {
			q.waiting = append(q.waiting, waiting{i, costPerJoule(&all[i], u)})
		}
	}

	heap.Init(q)

	var called []int
	for q.Len() > 0 && isShort(missing) {
		next := q.waiting[0]
		c := &all[next.place]
		u := useful(missing, c)

		switch now := costPerJoule(c, u); {
		case u <= 0:
			heap.Pop(q)
		case now > next.rate: // less of it is missing than there was: it waits for its turn
			q.waiting[0].rate = now
			heap.Fix(q, 0)

		default:
			heap.Pop(q)
			called = append(called, next.place)
			takeOff(missing, c, -1)
		}
	}

	return called
}

// unneeded lets those go, the last first, without whom the targets are reached as well.
func unneeded(
	missing []charge.Joules,
	all []Candidate,
	called []int,
) []int {
	var needed []int
	for _, i := range slices.Backward(called) {
		c := &all[i]
		before := shortfall(missing)
		takeOff(missing, c, 1)
		if shortfall(missing) <= before {
			continue
		}

		takeOff(missing, c, -1)
		needed = append(needed, i)
	}

	slices.Reverse(needed)

	return needed
}

// takeOff takes a candidate's change off what is missing, or puts it back.
func takeOff(missing []charge.Joules, c *Candidate, sign charge.Joules) {
	for t := range missing {
		missing[t] += sign * c.counts(t)
	}
}

// useful is what a candidate brings of what is missing.
func useful(missing []charge.Joules, c *Candidate) charge.Joules {
	var sum charge.Joules
	for t, m := range missing {
		if m > 0 {
			sum += min(m, c.counts(t))
		}
	}

	return sum
}

// shortfall is what is missing in all slots.
func shortfall(missing []charge.Joules) charge.Joules {
	var sum charge.Joules
	for _, m := range missing {
		sum += max(0, m)
	}
	return sum
}

func isShort(missing []charge.Joules) bool { return shortfall(missing) > 0 }

// costPerJoule is what a candidate costs for each joule that it brings. One that saves costs nothing.
func costPerJoule(c *Candidate, useful charge.Joules) float64 {
	return float64(max(0, c.Cost)) / float64(max(1, useful))
}

// waiting is a candidate with what it cost for each joule when that was last looked at.
type waiting struct {
	place int
	rate  float64
}

// queue has the cheapest candidate first, and of equals the first.
type queue struct{ waiting []waiting }

func (q *queue) Len() int { return len(q.waiting) }

func (q *queue) Less(i, j int) bool {
	a, b := q.waiting[i], q.waiting[j]
	if a.rate != b.rate {
		return a.rate < b.rate
	}

	return a.place < b.place
}

func (q *queue) Swap(i, j int) {
	q.waiting[i], q.waiting[j] = q.waiting[j], q.waiting[i]
}

// Push is never called: nothing joins a queue.
func (q *queue) Push(any) {}

// Pop takes the last away.
func (q *queue) Pop() any {
	n := len(q.waiting) - 1
	last := q.waiting[n]
	q.waiting = q.waiting[:n]
	return last
}

// Tolerance is how far from its target what is delivered may be before it is corrected.
const Tolerance Percent = 1

// Missing is what called cars leave of the targets, in each slot, negative where they bring more;
// and whether that is more than is tolerated anywhere.
func Missing(
	target []charge.Joules,
	called []Candidate,
) (missing []charge.Joules, short bool) {
	missing = slices.Clone(target)
	for i := range called {
		takeOff(missing, &called[i], -1)
	}

	for t := range missing {
		short = short || missing[t] > target[t]*charge.Joules(Tolerance)/100
	}

	return missing, short
}

// Correct compares what called cars bring with the targets. It returns the places of the
// candidates that are to be called beside them, where something is missing, or of the called
// ones that are to be released, the dearest first, and of equals the first, where there is more than enough. A called car
// that brings nothing, as far as is known, is not released.
func Correct(
	target []charge.Joules,
	called, others []Candidate,
	fair bool,
) (call, release []int) {
	missing, short := Missing(target, called)
	if short {
		for t := range missing {
			missing[t] = max(0, missing[t])
		}
		return Choose(missing, others, fair), nil
	}

	dearest := make([]int, 0, len(called))
	for i := range called {
		if called[i].Quality > 0 {
			dearest = append(dearest, i)
		}
	}

	slices.SortStableFunc(dearest, func(a, b int) int {
		return cmp.Compare(called[b].Cost, called[a].Cost)
	})
	for _, i := range dearest {
		before := shortfall(missing)
		takeOff(missing, &called[i], 1)
		if shortfall(missing) > before {
			takeOff(missing, &called[i], -1)
			continue
		}
		release = append(release, i)
	}

	return nil, release
}
