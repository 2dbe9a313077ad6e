package plan

import (
	"math"
)

// MaxNodes is how many ways of splitting slots Store looks at before it stops and
// reports its gap.
const MaxNodes = 1000

// roughSlot is a slot whose cost is not convex: its cost at the ends of its pieces, by
// stored energy taken in, and the convex envelope over the range in force.
type roughSlot struct {
	t        int32
	n        int
	y, g     [maxPieces]float64
	first    int // range in force
	last     int
	hull     [maxPieces]int8
	vertices int
}

// loadRough finds the slots that are not simple. Those whose cost is convex all the same
// have an envelope that touches it everywhere.
func (q *stored) loadRough() {
	q.roughAt = resize(q.roughAt, len(q.p.Import))
	q.rough = q.rough[:0]
	for t := range q.roughAt {
		q.roughAt[t] = -1
		if q.simple(t) {
			continue
		}
		q.roughAt[t] = int32(len(q.rough))
		q.rough = append(q.rough, roughSlot{t: int32(t)})
		q.rough[len(q.rough)-1].load(q)
	}
}

// load works the cost of the slot out wherever its slope may change.
func (r *roughSlot) load(q *stored) {
	p, t := q.p, r.t
	net := p.Load[t] - p.PV[t]
	points := [maxPieces]float64{-p.Discharge, p.Charge, 0, -net, p.ImportLimit - net, -p.ExportLimit - net}
	n := 6
	if p.Curtail && p.PV[t] > 0 {
		points[6], points[7], points[8] = -net-p.PV[t], p.ImportLimit-net-p.PV[t], -p.ExportLimit-net-p.PV[t]
		n = 9
	}
	for _, e := range points[:n] {
		if e < -p.Discharge || e > p.Charge {
			continue
		}
		i := r.n
		for i > 0 && r.y[i-1] > e {
			i--
		}
		if i > 0 && r.y[i-1] == e {
			continue
		}
		copy(r.y[i+1:r.n+1], r.y[i:r.n])
		r.y[i] = e
		r.n++
	}
	for i, e := range r.y[:r.n] {
		r.g[i] = q.cost(int(t), e)
		if e > 0 {
			r.y[i] = e * p.ChargeEff
		} else {
			r.y[i] = e / p.DischargeEff
		}
	}
	r.envelop(0, r.n-1)
}

// envelop draws the lower convex envelope over a range of points.
func (r *roughSlot) envelop(first, last int) {
	r.first, r.last, r.vertices = first, last, 0
	for i := first; i <= last; i++ {
		for r.vertices >= 2 {
			a, b := int(r.hull[r.vertices-2]), int(r.hull[r.vertices-1])
			if (r.g[b]-r.g[a])*(r.y[i]-r.y[a]) < (r.g[i]-r.g[a])*(r.y[b]-r.y[a]) {
				break
			}
			r.vertices--
		}
		r.hull[r.vertices] = int8(i)
		r.vertices++
	}
}

// stage is the envelope as pieces.
func (r *roughSlot) stage(room *[maxPieces]seg) stage {
	s := stage{full: r.g[r.last], up: r.y[r.last], down: -r.y[r.first]}
	k := 0
	for v := r.vertices - 1; v > 0; v-- {
		a, b := r.hull[v-1], r.hull[v]
		length := r.y[b] - r.y[a]
		room[k] = seg{(r.g[a] - r.g[b]) / length, length, r.t}
		k++
	}
	s.pieces = room[:k]
	return s
}

// gap is how far the cost lies above the envelope when the slot takes in y, and the
// point at which a split closes the most of it.
func (r *roughSlot) gap(y float64) (gap float64, kink int) {
	for v := 1; v < r.vertices; v++ {
		a, b := int(r.hull[v-1]), int(r.hull[v])
		if y > r.y[b] && v < r.vertices-1 {
			continue
		}
		if b-a < 2 {
			return 0, 0
		}
		slope := (r.g[b] - r.g[a]) / (r.y[b] - r.y[a])
		above := func(i int) float64 { return r.g[i] - r.g[a] - slope*(r.y[i]-r.y[a]) }
		kink = a + 1
		for i := a + 1; i < b; i++ {
			if above(i) > above(kink) {
				kink = i
			}
		}
		for i := a; i < b; i++ {
			if y <= r.y[i+1] || i == b-1 {
				share := (y - r.y[i]) / (r.y[i+1] - r.y[i])
				return above(i) + share*(above(i+1)-above(i)), kink
			}
		}
	}
	return 0, 0
}

// branchTree is the search over splits.
type branchTree struct {
	nodes []branchNode
	open  []int32 // a heap, the least bound first
	best  float64
	z     []float64 // of the best
	looks int
}

// branchNode is a solution with some slots held to a part of their range. It holds slot
// split to the points from first to last, and all that its parents hold; what is to be
// split next is next at kink.
type branchNode struct {
	bound       float64
	parent      int32
	split, next int16
	first, last int8
	kink        int8
}

// branch searches for the least true cost, the most promising bound first, and returns
// the bound that is proven. The slot furthest above its envelope is split at the point
// where the cost lies highest above it, so that each half's envelope is closer.
func (q *stored) branch(value float64) (bound float64) {
	b := &q.tree
	b.nodes, b.open, b.best, b.looks = b.nodes[:0], b.open[:0], math.Inf(1), 0
	b.z = resize(b.z, len(q.z))
	q.judge(branchNode{bound: value, parent: -1, split: -1})
	for len(b.open) > 0 {
		i := b.open[0]
		n := b.nodes[i]
		if n.bound >= b.cut() || b.looks >= MaxNodes {
			break
		}
		b.pop()
		q.hold(i, true)
		r := &q.rough[n.next]
		first, last := r.first, r.last
		for _, half := range [2][2]int{{first, int(n.kink)}, {int(n.kink), last}} {
			r.envelop(half[0], half[1])
			child := branchNode{parent: i, split: n.next, first: int8(half[0]), last: int8(half[1])}
			child.bound = max(n.bound, q.backward())
			b.looks++
			q.judge(child)
		}
		r.envelop(first, last)
		q.hold(i, false)
	}
	copy(q.z, b.z)
	if len(b.open) > 0 {
		return min(b.best, b.nodes[b.open[0]].bound)
	}
	return b.best
}

// cut is the bound that a node must stay below to be worth a look.
func (b *branchTree) cut() float64 { return b.best - 1e-9*max(1, math.Abs(b.best)) }

// hold narrows the slots that node i and its parents split, or widens them again.
func (q *stored) hold(i int32, narrow bool) {
	for ; i > 0; i = q.tree.nodes[i].parent {
		n := &q.tree.nodes[i]
		r := &q.rough[n.split]
		switch {
		case !narrow && (r.first > 0 || r.last < r.n-1):
			r.envelop(0, r.n-1)
		case narrow && (int(n.first) > r.first || int(n.last) < r.last):
			r.envelop(max(r.first, int(n.first)), min(r.last, int(n.last)))
		}
	}
}

// judge looks at the solution in z: its true cost may be the best so far, and if its
// bound is better still it is worth splitting.
func (q *stored) judge(n branchNode) {
	b := &q.tree
	if n.bound >= b.cut() && len(b.nodes) > 0 {
		return
	}
	cost, widest := n.bound, 0.0
	for i := range q.rough {
		r := &q.rough[i]
		gap, kink := r.gap(-q.z[r.t])
		cost += gap
		if gap > widest {
			widest, n.next, n.kink = gap, int16(i), int8(kink)
		}
	}
	if cost < b.best {
		b.best = cost
		copy(b.z, q.z)
	}
	if n.bound < b.cut() || len(b.nodes) == 0 {
		b.nodes = append(b.nodes, n)
		if widest > 0 {
			b.push(int32(len(b.nodes) - 1))
		}
	}
}

// push adds a node to the heap.
func (b *branchTree) push(i int32) {
	b.open = append(b.open, i)
	for k := len(b.open) - 1; k > 0; {
		up := (k - 1) / 2
		if !b.before(k, up) {
			break
		}
		b.open[k], b.open[up] = b.open[up], b.open[k]
		k = up
	}
}

// pop takes the node with the least bound off the heap.
func (b *branchTree) pop() {
	n := len(b.open) - 1
	b.open[0] = b.open[n]
	b.open = b.open[:n]
	for k := 0; ; {
		least := k
		for _, c := range [2]int{2*k + 1, 2*k + 2} {
			if c < n && b.before(c, least) {
				least = c
			}
		}
		if least == k {
			return
		}
		b.open[k], b.open[least] = b.open[least], b.open[k]
		k = least
	}
}

// before orders the heap; of equal bounds the older node comes first.
func (b *branchTree) before(i, j int) bool {
	x, y := b.open[i], b.open[j]
	return b.nodes[x].bound < b.nodes[y].bound || b.nodes[x].bound == b.nodes[y].bound && x < y
}
