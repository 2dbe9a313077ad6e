package slots

import (
	"math"
)

// label is a path up to some slot.
type label struct {
	energy int64
	cost   float64 // relative to the price of f, without mu
	parent int32
	run    int16
	on     bool // in the last slot
}

// aim is what the paths of one guess are carried to.
type aim struct {
	guess  int32
	lo, hi int64   // the window in which a path's energy ends
	mu     float64 // price of energy beyond the target
	shift  float64 // cost of a path without steps, relative to mu
	width  int     // states in a slot: off, or on for so many slots
}

// label carries the paths of guess f forward, slot by slot, and keeps the best that ends
// in the window. It reports false if there are too many.
func (q *switching) label(
	f int32,
	lo, hi int64,
	mu float64,
	target int64,
) bool {
	q.priceGuess(f, mu) // h as the bound to go
	base := q.price[f] * float64(q.need) / microWh
	a := &aim{
		guess: f,
		lo:    lo,
		hi:    hi,
		mu:    mu,
		shift: base - mu*float64(target)/microWh,
		width: q.m + 1,
	}

	q.boundRest(f)

	start := len(q.arena)
	q.arena = append(q.arena, label{parent: -1})
	from, to := start, start+1

	for t := range q.n {
		q.newLayer()
		for i := from; i < to; i++ {
			q.extend(int32(i), t, to, a)
		}

		if len(q.arena) > MaxLabels {
			return false
		}
		from, to = to, len(q.arena)
	}

	for i := from; i < to; i++ {
		if l := q.arena[i]; base+l.cost < q.best {
			q.addLabel(i)
		}
	}

	q.arena = q.arena[:start]

	return true
}

// boundRest sets what can still be drawn from each slot on, the guessed slot left out.
func (q *switching) boundRest(f int32) {
	q.rest[q.n] = 0
	for t := q.n - 1; t >= 0; t-- {
		_, e := q.energyOf(t, f)
		if t == int(f) {
			e = 0
		}
		q.rest[t] = q.rest[t+1] + e
	}
}

// extend carries path i through slot t, both off and on, into the layer that begins at a label.
func (q *switching) extend(i int32, t, layer int, a *aim) {
	l := q.arena[i]
	run := int(l.run)
	isGuess := t == int(a.guess)
	mayBeOff := run == 0 || run == q.m
	if mayBeOff && !isGuess {
		q.lay(label{l.energy, l.cost, i, 0, false}, t+1, layer, a)
	}

	if q.full[t] <= 0 {
		return
	}

	kWh, e := q.energyOf(t, a.guess)
	cost := l.cost + (q.price[t]-q.price[a.guess])*kWh
	if isGuess { // its energy is what the others leave, and priced as the reference
		cost = l.cost
		e = 0
	}
	if run == 0 {
		cost += q.start
	}

	q.lay(
		label{l.energy + e, cost, i, int16(min(run+1, q.m)), true},
		t+1,
		layer,
		a,
	)
}

// addLabel takes the pattern of a finished label, which offer prices and fills.
func (q *switching) addLabel(i int) {
	for t := q.n - 1; t >= 0; t-- {
		q.on[t] = q.arena[i].on
		i = int(q.arena[i].parent)
	}
	q.offer()
}

// newLayer empties the table of labels.
func (q *switching) newLayer() {
	if len(q.table) == 0 {
		q.table, q.stamp = make([]int32, 1<<10), make([]uint32, 1<<10)
	}
	q.generation++
	if q.generation == 0 {
		clear(q.stamp)
		q.generation = 1
	}
}

// lay adds a label before slot t, unless it cannot end well or a cheaper one is there.
func (q *switching) lay(l label, t, layer int, a *aim) {
	if l.energy > a.hi || l.energy+q.rest[t] < a.lo {
		return
	}
	if a.shift+l.cost+a.mu*float64(l.energy)/microWh+q.h[t*a.width+int(l.run)] >= q.cut() {
		return
	}

	if (len(q.arena)-layer)*2 >= len(q.table) {
		q.grow(layer)
	}

	if i := q.find(l.energy, l.run); q.stamp[i] != q.generation {
		q.stamp[i], q.table[i] = q.generation, int32(len(q.arena))
		q.arena = append(q.arena, l)
	} else if old := &q.arena[q.table[i]]; l.cost < old.cost {
		*old = l
	}
}

// find is the place of a label in the table, or where it would go.
func (q *switching) find(energy int64, run int16) int {
	mask := len(q.table) - 1
	i := int((uint64(energy)*0x9e3779b97f4a7c15+
		uint64(run)*0xc2b2ae3d27d4eb4f)>>32) & mask
	for q.stamp[i] == q.generation {
		if l := &q.arena[q.table[i]]; l.energy == energy && l.run == run {
			break
		}
		i = (i + 1) & mask
	}

	return i
}

// grow doubles the table and puts the layer back into it.
func (q *switching) grow(layer int) {
	n := 2 * len(q.table)
	q.table = make([]int32, n)
	q.stamp = make([]uint32, n)
	q.generation = 1

	for j := layer; j < len(q.arena); j++ {
		i := q.find(q.arena[j].energy, q.arena[j].run)
		q.stamp[i], q.table[i] = q.generation, int32(j)
	}
}

// raiseNeed raises the need to the least energy above it that a pattern can hold: the
// sum of the least powers of its slots.
func (q *switching) raiseNeed() bool {
	start := len(q.arena)
	q.arena = append(q.arena, label{parent: -1})
	from := start
	to := start + 1
	above := int64(math.MaxInt64)

	for t := range q.n {
		q.newLayer()
		for i := from; i < to; i++ {
			l := q.arena[i]
			if l.run == 0 || int(l.run) == q.m {
				q.reach(l.energy, 0, above, to)
			}

			if q.full[t] > 0 {
				q.reach(
					l.energy+q.eLow[t],
					int16(min(int(l.run)+1, q.m)),
					above,
					to,
				)
			}
		}

		from, to = to, len(q.arena)
		if to > MaxLabels {
			break
		}

		for _, l := range q.arena[from:to] {
			free := l.run == 0 || int(l.run) == q.m || t == q.n-1
			if free && l.energy > q.need {
				above = min(above, l.energy)
			}
		}
	}

	q.arena = q.arena[:start]
	if above == math.MaxInt64 {
		return false
	}

	q.need = above

	return true
}

// reach notes that a path can have taken this energy.
func (q *switching) reach(energy int64, run int16, above int64, layer int) {
	if energy >= above {
		return
	}
	if (len(q.arena)-layer)*2 >= len(q.table) {
		q.grow(layer)
	}

	if i := q.find(energy, run); q.stamp[i] != q.generation {
		q.stamp[i], q.table[i] = q.generation, int32(len(q.arena))
		q.arena = append(q.arena, label{energy: energy, run: run})
	}
}
