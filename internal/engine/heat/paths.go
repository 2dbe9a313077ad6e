package heat

import (
	"math"

	"flexd/internal/engine/paths"
)

// condition is how a house is before a slot: how warm, and for how many slots on end the heat pump has been locked.
type condition struct {
	cell   int
	locked int
}

// Paths is all that the heat pump may do. In some slots, by their places, its choice is given.
func (p *Problem) Paths(allowed map[int]int) *paths.Graph {
	g := paths.New()
	first := condition{cell: cellOf(p.Init)}
	if !p.Runs {
		first.locked = min(p.Locked, p.Locks)
	}

	conditions := []condition{first}
	for t := range p.Slots {
		b := p.branching(t, conditions)
		choice, fixed := allowed[t]
		for from, s := range conditions {
			if fixed {
				b.addChoice(from, s, choice)
			} else {
				b.branch(from, s)
			}
		}

		g.Add(b.steps, len(b.conditions))
		conditions = b.conditions
	}

	return g
}

// branching collects where a slot leads to.
type branching struct {
	*Problem
	slot       *Slot
	course     course
	steps      []paths.Step
	conditions []condition
	coldest    int
	places     []int // of what was reached, from the coldest on, after one; 0: not yet
}

// branching prepares a slot in which the house may be as some say.
func (p *Problem) branching(t int, conditions []condition) branching {
	b := branching{
		Problem: p,
		slot:    &p.Slots[t],
		course:  p.courseOf(&p.Slots[t]),
	}

	low, high := conditions[0].cell, conditions[0].cell
	for _, s := range conditions {
		low, high = min(low, s.cell), max(high, s.cell)
	}

	coldest, warmest := math.MaxInt, math.MinInt
	for i := range b.slot.Choices {
		c := &b.slot.Choices[i]
		coldest = min(coldest, b.course.move(low, c).cell)
		warmest = max(warmest, b.course.move(high, c).cell)
	}

	b.coldest = coldest
	b.places = make([]int, (warmest-coldest+1)*(p.Locks+1))
	b.steps = make([]paths.Step, 0, len(conditions)*len(b.slot.Choices))

	return b
}

// place is that of one among those that are reached.
func (b *branching) place(s condition) int {
	at := &b.places[(s.cell-b.coldest)*(b.Locks+1)+s.locked]
	if *at == 0 {
		b.conditions = append(b.conditions, s)
		*at = len(b.conditions)
	}

	return *at - 1
}

// branch takes each choice that may be made. Where none may be, it is the first, as in a plan.
func (b *branching) branch(from int, s condition) {
	made := false
	for c := range b.slot.Choices {
		if b.slot.Choices[c].Lock && b.Locks > 0 && s.locked >= b.Locks {
			continue
		}

		b.addChoice(from, s, c)
		made = true
	}

	if !made {
		b.addChoice(from, s, 0)
	}
}

// addChoice takes one choice.
func (b *branching) addChoice(
	from int,
	s condition,
	choice int,
) {
	c := &b.slot.Choices[choice]
	m := b.course.move(s.cell, c)
	to := condition{cell: m.cell}
	if c.Lock && b.Locks > 0 {
		to.locked = min(b.Locks, s.locked+1)
	}

	b.steps = append(b.steps, paths.Step{
		From:   from,
		To:     b.place(to),
		Short:  m.short,
		Energy: m.energy,
	})
}
