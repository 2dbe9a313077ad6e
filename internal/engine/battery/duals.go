package battery

import (
	"math"

	"flexd/internal/engine/buffer"
)

// slopePoint is a point of a plan at which the slopes of cost and value are looked up.
type slopePoint struct {
	s, z      float64 // stored before the slot, less Init, and given off in it
	tolerance float64
	value     [2]float64
	margin    [2]float64
}

// update notes what a stored kWh more is worth at s, and what it costs to take one more in
// while z is given off: from the least to the most where there is a kink.
func (m *slopePoint) update(l *slopes, g stage, lo float64) {
	m.value = around(l.segs[l.head:l.tail], m.s-lo, m.tolerance)
	m.margin = around(g.pieces, m.z+g.up, m.tolerance)
}

// around is the range of the slopes about a place in a convex function, their signs
// turned. At an end it is open. As near to a kink as that counts as on it.
func around(segs []seg, place, tolerance float64) [2]float64 {
	r := [2]float64{math.Inf(-1), math.Inf(1)} // least, most
	for _, s := range segs {
		if place > tolerance {
			r[1] = -s.slope
		}

		if place < s.length-tolerance {
			r[0] = -s.slope
			return r
		}

		place -= s.length
	}

	return r
}

// Duals works out what a stored kWh more would be worth after each slot of the plan that
// SolveStorage makes, in pence, and reports whether it could: the cost of every slot must be
// convex.
//
// These are the multipliers of the plan: priced at them, every slot alone would do what
// the plan has it do, and every level of stored energy alone would lie where it lies. So
// they prove that the plan costs the least; see Storage. The values of stored energy
// going back give, at the plan's own levels, the range from which each may come, and any
// choice from it can be carried on.
func (w *Solver) Duals(p *Storage, values []float64) bool {
	q := &w.store
	q.load(p)
	if q.anyNonConvex() {
		return false
	}

	q.backward() // for what each slot gives off
	n := len(q.z)
	q.marks = buffer.Resize(q.marks, n+1)
	s, tolerance := 0.0, 1e-12*(1+q.up+q.down+p.Max)

	for t, z := range q.z {
		q.marks[t] = slopePoint{
			s:         s,
			z:         z,
			tolerance: tolerance,
		}

		s -= z
	}

	q.marks[n] = slopePoint{s: s, tolerance: tolerance}
	q.backward()
	v := p.Terminal

	for t := range values {
		least := max(q.marks[t].margin[0], q.marks[t+1].value[0])
		most := min(q.marks[t].margin[1], q.marks[t+1].value[1])
		v = max(least, min(most, v))
		values[t] = v
	}

	q.marks = q.marks[:0]

	return true
}
