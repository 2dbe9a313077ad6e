package paths

import "math"

// Step is a choice in a slot, from a state before it to one after it. States are counted from 0.
type Step struct {
	From   int
	To     int
	Short  int     // what it falls short by; not below zero
	Energy float64 // that is drawn
}

// Graph is what a device may do in slot after slot. Before the first slot it is in state 0.
type Graph struct {
	slots  [][]Step
	states []int // before each slot, and after the last
}

// New is a graph without slots.
func New() *Graph { return &Graph{states: []int{1}} }

// Add adds a slot with all steps in it, and how many states there are after it.
func (g *Graph) Add(
	steps []Step,
	states int,
) {
	g.slots = append(g.slots, steps)
	g.states = append(g.states, states)
}

// Slots is how many slots there are.
func (g *Graph) Slots() int { return len(g.slots) }

// infinite is the shortfall of a state that is not reached.
const infinite = math.MaxInt / 4

// Bound drops the steps that no sequence with the least shortfall has, and returns that shortfall.
func (g *Graph) Bound() int {
	before, after := g.sofar(), g.remainingRanges()
	least := after[0][0]

	for t, steps := range g.slots {
		useful := steps[:0]
		for _, s := range steps {
			sum := before[t][s.From] + s.Short + after[t+1][s.To]
			if sum == least {
				useful = append(useful, s)
			}
		}

		g.slots[t] = useful
	}

	return least
}

// shortfalls is a shortfall for each state of each slot, which nothing reaches yet.
func (g *Graph) shortfalls() [][]int {
	all := make([][]int, len(g.states))
	for t, n := range g.states {
		all[t] = make([]int, n)
		for i := range all[t] {
			all[t][i] = infinite
		}
	}

	return all
}

// sofar is the least shortfall up to each state.
func (g *Graph) sofar() [][]int {
	all := g.shortfalls()
	all[0][0] = 0

	for t, steps := range g.slots {
		for _, s := range steps {
			next := &all[t+1][s.To]
			*next = min(*next, all[t][s.From]+s.Short)
		}
	}

	return all
}

// remainingRanges is the least shortfall from each state on.
func (g *Graph) remainingRanges() [][]int {
	all := g.shortfalls()
	clear(all[len(g.slots)])

	for t := len(g.slots) - 1; t >= 0; t-- {
		for _, s := range g.slots[t] {
			ranges := &all[t][s.From]
			*ranges = min(*ranges, s.Short+all[t+1][s.To])
		}
	}

	return all
}

// Range is the least and the most energy.
type Range struct {
	Least float64
	Most  float64
}

// unreachable is what no way leads to.
func unreachable() Range { return Range{Least: math.Inf(1), Most: math.Inf(-1)} }

// Windows returns the least and the most that is drawn in the windows that begin with a slot: of that slot, of it and the next, and so
// on to the length that is given, or to the last slot. Bound has been called.
func (g *Graph) Windows(
	from,
	length int,
) []Range {
	// At the start of the window each state is good that a kept step leaves.
	now := rangesOf(g.states[from])
	to := min(len(g.slots), from+length)

	for _, s := range g.slots[from] {
		now[s.From] = Range{}
	}

	var all []Range
	for t := from; t < to; t++ {
		next := rangesOf(g.states[t+1])
		for i := range g.slots[t] {
			s := &g.slots[t][i]
			before, reached := &now[s.From], &next[s.To]
			reached.Least = min(reached.Least, before.Least+s.Energy)
			reached.Most = max(reached.Most, before.Most+s.Energy)
		}

		sum := unreachable()
		for _, r := range next {
			sum.Least = min(sum.Least, r.Least)
			sum.Most = max(sum.Most, r.Most)
		}

		all = append(all, sum)
		now = next
	}

	return all
}

// rangesOf are the ranges of some states, none of which is reached.
func rangesOf(states int) []Range {
	all := make([]Range, states)
	for i := range all {
		all[i] = unreachable()
	}

	return all
}
