package fleet

import (
	"cmp"
	"math"
	"slices"
)

// The barrier divides energy evenly among slots of equal value, so that a car would charge a
// little in many of them. purify turns that into whole slots. Consider cars and slots as the
// two sides of a graph, with an edge wherever a car uses a part of a slot. Along a cycle in
// this graph energy can be moved: each car gives up in one slot what it takes in the next,
// until an edge is used up. Every slot's load and every car's energy stay the same, so caps
// and position are not affected, and one of the two directions does not raise the cars' cost.
// When no cycle remains, the graph is a forest: all cars together have fewer partial slots
// than there are cars and slots.

// edge is a partial slot of a car.
type edge struct {
	car  int32
	slot uint8
	out  bool // no longer partial
}

// forest has the partial slots of the cars of one node, without a cycle.
type forest struct {
	*draft
	edges []edge
	from  []int32    // edge by which the search came to an edge
	queue [2][]int32 // edges at whose far ends the search stands, and the next
	path  []int32
}

// purify moves the energy of the cars among the assets into whole slots, as far as possible.
func (d *draft) purify(assets []int32) {
	cars := slices.Clone(assets)
	cars = slices.DeleteFunc(cars, func(a int32) bool {
		return int(a) >= len(d.p.EVs)
	})
	slices.SortStableFunc(cars, func(a, b int32) int {
		return cmp.Compare(d.tree.nodeOf(d.p, a), d.tree.nodeOf(d.p, b))
	})
	f := &forest{draft: d}

	for i, a := range cars {
		if i > 0 && d.tree.nodeOf(d.p, a) != d.tree.nodeOf(d.p, cars[i-1]) {
			f.edges = f.edges[:0]
		}
		f.plant(a)
	}
}

// energy returns the energy of the edge's car in its slot, and the most that it could be.
func (f *forest) energy(e edge) (*float64, float64) {
	ev := &f.p.EVs[e.car]
	return &f.x[int(f.at[e.car])+int(e.slot)-int(ev.First)], ev.most(int(e.slot))
}

// plant adds a car's partial slots one by one and removes every cycle that closes.
func (f *forest) plant(car int32) {
	ev := &f.p.EVs[car]
	for t := int(ev.First); t <= int(ev.Last); t++ {
		e := edge{car: car, slot: uint8(t)}
		x, most := f.energy(e)
		if *x <= negligible || *x >= most-negligible {
			continue
		}

		f.edges = append(f.edges, e)
		if f.circle() {
			f.turn()
			f.edges = slices.DeleteFunc(f.edges, func(e edge) bool {
				return e.out
			})
		}
	}

	f.prune()
}

// prune removes the cars with one partial slot, since no cycle passes through them.
func (f *forest) prune() {
	f.edges = slices.DeleteFunc(f.edges, func(e edge) bool {
		return !slices.ContainsFunc(f.edges, func(o edge) bool {
			return o.car == e.car && o.slot != e.slot
		})
	})
}

// trace writes the path on which the search reached an edge, the first edge first.
func (f *forest) trace(edge, first int32) {
	f.path = f.path[:0]
	for j := edge; j != first; j = f.from[j] {
		f.path = append(f.path, j)
	}

	f.path = append(f.path, first)
	slices.Reverse(f.path)
}

// circle searches for a path back from the slot of the newest edge to its car. The path begins
// with the newest edge.
func (f *forest) circle() bool {
	last := int32(len(f.edges) - 1)
	f.from = f.from[:0]
	for range f.edges {
		f.from = append(f.from, -1)
	}

	f.from[last] = last
	f.queue[0] = append(f.queue[0][:0], last)
	for atSlot := true; len(f.queue[0]) > 0; atSlot = !atSlot { // else the search stands at cars
		f.queue[1] = f.queue[1][:0]
		for _, q := range f.queue[0] {
			edge := f.edges[q]
			for i, e := range f.edges {
				meet := e.car == edge.car
				if atSlot {
					meet = e.slot == edge.slot
				}

				if !meet || f.from[i] >= 0 {
					continue
				}

				f.from[i] = q
				if atSlot && e.car == f.edges[last].car {
					f.trace(int32(i), last)
					return true
				}

				f.queue[1] = append(f.queue[1], int32(i))
			}
		}

		f.queue[0], f.queue[1] = f.queue[1], f.queue[0]
	}

	return false
}

// turn moves energy along the cycle, up on its first edge and down on the next, or the other
// way, until an edge is used up.
func (f *forest) turn() {
	// the most that can be moved either way
	up, down := math.Inf(1), math.Inf(1)
	// the cost of a kWh moved up on the first edge
	adders, spread := 0.0, 0.0
	for k, i := range f.path {
		x, most := f.energy(f.edges[i])
		larger, smaller := most-*x, *x
		sign := 1.0
		if k%2 == 1 {
			larger, smaller = smaller, larger
			sign = -1
		}

		up, down = min(up, larger), min(down, smaller)
		adders += sign * f.p.EVs[f.edges[i].car].adder(int(f.edges[i].slot))
		spread += sign * f.away(f.edges[i])
	}

	move := up
	if adders > 1e-9 || adders >= -1e-9 && spread > 0 {
		move = -down
	}

	for k, i := range f.path {
		x, most := f.energy(f.edges[i])
		*x += move * float64(1-2*(k%2))
		if *x <= negligible {
			f.edges[i].out = true
		} else if *x >= most-negligible {
			f.edges[i].out = true
		}

		*x = max(0, min(most, *x))
	}
}

// away is the squared distance of an edge's slot from the car's random preferred slot. Cars
// that stay near their own preference charge without breaks, and not all at once.
func (f *forest) away(e edge) float64 {
	ev := &f.p.EVs[e.car]
	like := float64(ev.First) +
		hash(int(e.car), MaxSlots)*float64(ev.Last-ev.First)
	return (float64(e.slot) - like) * (float64(e.slot) - like)
}
