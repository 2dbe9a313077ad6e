package tank

import (
	"cmp"
	"slices"

	"flexd/internal/engine/paths"
)

// Paths is all that the element may do. In some slots, by their places, it is on or off as is given.
func (p *Problem) Paths(allowed map[int]bool) *paths.Graph {
	g := paths.New()
	levels := []int{min(max(p.Init, p.Floor), p.Top)}

	for t := range p.Slots {
		var steps []paths.Step
		var reached []int
		for from, level := range levels {
			for _, on := range p.isAllowed(t, allowed) {
				s := p.after(
					t,
					state{level: level},
					0,
					on,
				)

				reached = append(reached, s.level)
				steps = append(steps, paths.Step{
					From:   from,
					To:     s.level,
					Short:  s.short,
					Energy: float64(s.heat),
				})
			}
		}

		levels = places(reached, steps)
		g.Add(steps, len(levels))
	}

	return g
}

// isAllowed is what the element may be in a slot.
func (p *Problem) isAllowed(
	t int,
	allowed map[int]bool,
) []bool {
	on, fixed := allowed[t]
	if fixed {
		return []bool{on}
	}

	if p.Slots[t].Closed {
		return []bool{false}
	}

	return []bool{false, true}
}

// places puts the levels that steps lead to in order, each once, and has the steps name them by their places.
func places(
	levels []int,
	steps []paths.Step,
) []int {
	slices.Sort(levels)
	levels = slices.Compact(levels)

	for i := range steps {
		at, _ := slices.BinarySearchFunc(levels, steps[i].To, cmp.Compare[int])
		steps[i].To = at
	}

	return levels
}
