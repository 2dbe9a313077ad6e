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
	Change  []charge.Joules  // in each slot, positive in the direction that is asked for
	Cost    flex.MicroPounds // of calling it
	Calls   int              // how often its site was called before
	Quality Percent          // how much of its change counts
}

// Percent is a share of 100.
type Percent int

// counts returns how much of a candidate's change in a slot is counted, by its quality.
func (c *Candidate) counts(slot int) charge.Joules {
	return c.Change[slot] * charge.Joules(c.Quality) / 100
}

// Choose returns the indexes of the candidates to call so that every slot's target is reached
// at little cost (see the package), in the order in which they were chosen. If the target
// cannot be reached, these are all candidates that bring it nearer. With fair, nobody is
// called again before all who bring it nearer were called as often.
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

	return removeUnneeded(missing, all, called)
}

// cheapest chooses candidates by rising cost for each joule that is still missing, until
// nothing is missing. It subtracts what they bring from missing.
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
		case now > next.rate: // less of what it brings is still missing, so each useful joule costs more: back into the queue
			q.waiting[0].rate = now
			heap.Fix(q, 0)

		default:
			heap.Pop(q)
			called = append(called, next.place)
			subtractChange(missing, c, -1)
		}
	}

	return called
}

// removeUnneeded removes, from the last on, the candidates without which the targets are
// reached just as well. It returns the others.
func removeUnneeded(
	missing []charge.Joules,
	all []Candidate,
	called []int,
) []int {
	var needed []int
	for _, i := range slices.Backward(called) {
		c := &all[i]
		before := shortfall(missing)
		subtractChange(missing, c, 1)
		if shortfall(missing) <= before {
			continue
		}

		subtractChange(missing, c, -1)
		needed = append(needed, i)
	}

	slices.Reverse(needed)

	return needed
}

// subtractChange subtracts a candidate's change from what is missing (sign -1), or adds it
// again (sign 1).
func subtractChange(missing []charge.Joules, c *Candidate, sign charge.Joules) {
	for t := range missing {
		missing[t] += sign * c.counts(t)
	}
}

// useful returns how much of what is missing a candidate brings.
func useful(missing []charge.Joules, c *Candidate) charge.Joules {
	var sum charge.Joules
	for t, m := range missing {
		if m > 0 {
			sum += min(m, c.counts(t))
		}
	}

	return sum
}

// shortfall returns the sum of what is missing in all slots.
func shortfall(missing []charge.Joules) charge.Joules {
	var sum charge.Joules
	for _, m := range missing {
		sum += max(0, m)
	}
	return sum
}

func isShort(missing []charge.Joules) bool { return shortfall(missing) > 0 }

// costPerJoule returns the cost of a candidate for each joule that it brings. One that saves
// money costs nothing.
func costPerJoule(c *Candidate, useful charge.Joules) float64 {
	return float64(max(0, c.Cost)) / float64(max(1, useful))
}

// waiting is a candidate with its cost for each joule when that was last computed.
type waiting struct {
	place int
	rate  float64
}

// queue is a heap with the cheapest candidate first, and of equal ones the first in the list.
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

// Pop removes the last element.
func (q *queue) Pop() any {
	n := len(q.waiting) - 1
	last := q.waiting[n]
	q.waiting = q.waiting[:n]
	return last
}

// Tolerance is how far the delivered energy may be from its target before it is corrected.
const Tolerance Percent = 1

// Missing returns the targets less what the called cars bring, in each slot; it is negative
// where they bring more. short reports whether more than the tolerance is missing in any slot.
func Missing(
	target []charge.Joules,
	called []Candidate,
) (missing []charge.Joules, short bool) {
	missing = slices.Clone(target)
	for i := range called {
		subtractChange(missing, &called[i], -1)
	}

	for t := range missing {
		short = short || missing[t] > target[t]*charge.Joules(Tolerance)/100
	}

	return missing, short
}

// Correct compares what called cars bring with the targets. If something is missing, it
// returns the indexes of the candidates to call in addition. If there is more than enough, it
// returns the indexes of the called cars to release, the most expensive first, and of equal
// ones the first. A called car that brings nothing, as far as is known, is not released.
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
		subtractChange(missing, &called[i], 1)
		if shortfall(missing) > before {
			subtractChange(missing, &called[i], -1)
			continue
		}
		release = append(release, i)
	}

	return nil, release
}
