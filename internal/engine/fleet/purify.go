package fleet

import (
	"cmp"
	"math"
	"slices"
)

// The barrier shares energy evenly among slots that are worth the same, so that a car would
// charge a little in many of them. purify turns that into whole slots. See cars and slots
// as the two sides of a graph, with an edge wherever a car takes some of a slot, but not
// all that it could. Around a circle in this graph energy can be moved, each car giving
// up in one slot what it takes in the next, until an edge is used up: every slot's load
// and every car's energy stay, so no cap and no position notices, and of the two ways
// round one does not raise what the cars pay on top. When no circle is left the graph is a
// forest: all cars together have fewer partial slots than there are cars and slots.

// edge is a partial slot of a car.
type edge struct {
	car  int32
	slot uint8
	out  bool // no longer partial
}

// forest is the partial slots of the cars of one node, without a circle.
type forest struct {
	*draft
	edges []edge
	from  []int32    // edge by which the search came to an edge
	queue [2][]int32 // edges at whose far ends the search stands, and the next
	path  []int32
}

// purify gives the cars among the assets whole slots, as far as that is possible.
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

// energy returns what the edge's car takes in its slot, and the most that it could.
func (f *forest) energy(e edge) (*float64, float64) {
	ev := &f.p.EVs[e.car]
	return &f.x[int(f.at[e.car])+int(e.slot)-int(ev.First)], ev.most(int(e.slot))
}

// plant adds a car's partial slots one by one and breaks every circle that closes.
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

// prune forgets the cars that have one partial slot left: no circle passes through them.
func (f *forest) prune() {
	f.edges = slices.DeleteFunc(f.edges, func(e edge) bool {
		return !slices.ContainsFunc(f.edges, func(o edge) bool {
			return o.car == e.car && o.slot != e.slot
		})
	})
}

// trace writes the way that the search came to an edge into path, the first edge first.
func (f *forest) trace(edge, first int32) {
	f.path = f.path[:0]
	for j := edge; j != first; j = f.from[j] {
		f.path = append(f.path, j)
	}

	f.path = append(f.path, first)
	slices.Reverse(f.path)
}

// circle looks for a way back from the slot of the newest edge to its car, and leaves it in
// path, the newest edge first.
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

// turn moves energy round the circle, up on its first edge and down on the next or the
// other way, until an edge is used up.
func (f *forest) turn() {
	// the most that can be moved either way
	up, down := math.Inf(1), math.Inf(1)
	// what a kWh moved up on the first edge adds
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

// away is how far, squared, an edge's slot is from the one that the car likes at random. Cars
// that keep to their own middle charge in one go, and not all at once.
func (f *forest) away(e edge) float64 {
	ev := &f.p.EVs[e.car]
	like := float64(ev.First) +
		hash(int(e.car), MaxSlots)*float64(ev.Last-ev.First)
	return (float64(e.slot) - like) * (float64(e.slot) - like)
}
