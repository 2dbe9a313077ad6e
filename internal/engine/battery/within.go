package battery

import "math"

// Bounds are how far the stored energy may move in a slot, in Wh.
type Bounds struct{ Least, Most int }

// Unbounded are the bounds of a slot in which the device may do all that it can.
var Unbounded = Bounds{Least: math.MinInt32, Most: math.MaxInt32}

const (
	// pathBeyond is what a slot counts, in pence, in which a path passes its bounds: more than any plan within them comes to.
	pathBeyond = 1e6
	// rowBeyond is what a Wh beyond the bounds counts, in pence, where the value of stored energy is worked out: it is known on
	// a grid of levels only, and so it rises evenly.
	rowBeyond = 1.0
)

// beyond is how far a move passes the bounds of slot t, in Wh.
func (p *ModeProblem) beyond(t int, y float64) float64 {
	if p.Within == nil {
		return 0
	}

	b := p.Within[t]

	return max(0, y-float64(b.Most), float64(b.Least)-y)
}

// boundRow has each level count what mode m passes the bounds of slot t by from there.
func (q *modeSolver) boundRow(
	t int,
	m Mode,
	level float64,
) {
	p := q.Problem
	if p.Within == nil || p.Within[t] == Unbounded {
		return
	}

	row, y := &q.q[m], float64(q.moves[t][m].y)
	for i := range row {
		below := float64(i) * level
		above := float64(p.Max-p.Min) - below
		row[i] += rowBeyond * p.beyond(t, max(-below, min(above, y)))
	}
}
