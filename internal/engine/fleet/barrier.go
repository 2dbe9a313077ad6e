package fleet

import (
	"math"
)

// The barrier finds the prices of a coupled fleet, and a plan that shares energy among
// equally cheap slots, by a primal-dual interior point method (Mehrotra's predictor and
// corrector). Every variable x lies between 0 and u, with multipliers zl and zu for the
// two bounds; the method keeps reduced cost = zl - zu exactly, and drives x zl and
// (u - x) zu to zero together. An asset's part of Newton's system is eliminated by hand
// and leaves dL = r - M dw, the answer of its load to a price; sums of these over a
// group, with the group's cap folded in, again have that form, so the work is linear in
// the assets and cubic only in the slots, once a group.

const (
	maxIterations = 100
	stepShare     = 0.9995 // of the way to the boundary
)

// variables are the variables of all assets, one place each.
type variables struct {
	x, u, c   []float64 // value, upper bound, cost beside the price of energy
	zl        []float64
	zu        []float64
	low, high []float64 // 1/x and 1/(u-x)
	inv       []float64 // 1 / (zl/x + zu/(u-x))
	h         []float64 // right side of Newton's system
	dx        []float64
	dl        []float64
	du        []float64
}

func newVariables(n int) variables {
	a := newArena(12, n)
	return variables{
		x:    a.row(),
		u:    a.row(),
		c:    a.row(),
		zl:   a.row(),
		zu:   a.row(),
		low:  a.row(),
		high: a.row(),
		inv:  a.row(),
		h:    a.row(),
		dx:   a.row(),
		dl:   a.row(),
		du:   a.row(),
	}
}

// arena is memory for rows of one length, side by side.
type arena struct {
	free []float64
	n    int
}

func newArena(rows, n int) *arena { return &arena{make([]float64, rows*n), n} }

// row returns the next row.
func (a *arena) row() []float64 {
	row := a.free[:a.n:a.n]
	a.free = a.free[a.n:]
	return row
}

// barrier is one run of the method.
type barrier struct {
	slots     int
	nodes     []node
	evs       []barrierEV // in the order of their nodes, as are the batteries
	batteries []barrierBattery
	v         variables
	market    market

	shards  [2]barrierShard
	target  float64 // of the products
	correct bool    // second order terms are known
	rounds  int
	// sum of the products: by how much the plan may be above the best
	gap  float64
	miss float64 // largest fault of a balance, kWh
}

// barrierShard is what one of the two workers adds up for itself. The split is fixed and
// the sums are joined in order, so the answer does not depend on who was first.
type barrierShard struct {
	evs, batteries [2]int // from, to
	nodes          []nodePart
	scratch        []float64
	spare          matrix  // for one node at a time
	primal, dual   float64 // longest steps, turned upside down
	products       float64
	after          float64 // products after the steps
	miss           float64
}

// nodePart is a shard's part of a node.
type nodePart struct {
	m    matrix // empty if the shard has no assets there, or M is not built
	r    []float64
	load []float64
}

// both runs f for the two shards at once.
func (b *barrier) both(f func(s *barrierShard)) {
	inParallel(func(k int) { f(&b.shards[k]) })
}

// split deals the assets to the shards.
func (b *barrier) split() {
	e, t := (len(b.evs)+1)/2, len(b.batteries)/2
	b.shards[0].evs, b.shards[1].evs = [2]int{0, e}, [2]int{e, len(b.evs)}
	b.shards[0].batteries, b.shards[1].batteries = [2]int{0, t}, [2]int{t, len(b.batteries)}

	for k := range b.shards {
		s := &b.shards[k]
		s.nodes = make([]nodePart, len(b.nodes))
		s.scratch = make([]float64, b.slots+2)
		s.spare = newMatrix(b.slots)
		uses := make([]bool, len(b.nodes))

		for _, e := range b.evs[s.evs[0]:s.evs[1]] {
			uses[e.node] = true
		}

		for i := s.batteries[0]; i < s.batteries[1]; i++ {
			uses[b.batteries[i].node] = true
		}

		for i, used := range uses {
			if used {
				s.nodes[i] = nodePart{
					b.partMatrix(i),
					make([]float64, b.slots),
					make([]float64, b.slots),
				}
			}
		}
	}
}

// partMatrix is where a shard adds up its part of a node's M: nowhere where M is not built.
func (b *barrier) partMatrix(node int) matrix {
	if b.nodes[node].cars != nil {
		return matrix{}
	}
	return newMatrix(b.slots)
}

// run continues until the products are below the given share of the turnover.
func (b *barrier) run(tolerance float64) {
	for b.rounds = 0; b.rounds < maxIterations; b.rounds++ {
		b.measure()
		count := b.count()
		sum := b.rowProducts()

		for k := range b.shards {
			sum += b.shards[k].products
		}
		b.gap = sum
		limit := tolerance * (1 + b.turnover())
		if sum <= limit && b.miss <= 1e-5+1e-8*b.energy() || math.IsNaN(sum) {
			return
		}

		b.both(b.factor)
		b.joinMatrices()
		b.fold()
		b.target, b.correct = 0, false
		primal, dual := b.direction()
		after := b.productAfter(primal, dual)
		ratio := after / sum
		b.target, b.correct = sum/float64(count)*max(ratio*ratio*ratio, 1e-6), true
		primal, dual = b.direction()
		b.move(min(1, stepShare*primal), min(1, stepShare*dual))
	}
}

// leaves calls f for every node without nodes within it, half of them in each shard.
func (b *barrier) leaves(f func(*barrierShard, *node)) {
	inParallel(func(k int) {
		from, to := half(len(b.nodes), k)
		for i := from; i < to; i++ {
			if b.nodes[i].leaf {
				f(&b.shards[k], &b.nodes[i])
			}
		}
	})
}

// fold folds every cap into what the node above it sees.
func (b *barrier) fold() {
	for i := range b.nodes {
		b.setTheta(i)
	}

	b.leaves(func(s *barrierShard, v *node) { v.fold(s.spare) })
	for i := len(b.nodes) - 1; i >= 0; i-- {
		v := &b.nodes[i]
		if !v.leaf {
			v.fold(b.shards[0].spare)
		}
		if i > 0 {
			b.nodes[v.parent].m.add(v.m)
		}
	}
}

// direction solves Newton's system for the present target and returns how far the values
// and the prices may go along the solution.
func (b *barrier) direction() (primal, dual float64) {
	b.both(b.rightSide)
	for i := range b.nodes {
		v := &b.nodes[i]
		clear(v.r)
		for k := range b.shards {
			for t, r := range b.shards[k].nodes[i].r {
				v.r[t] += r
			}
		}
	}

	b.setRho()
	b.leaves(func(_ *barrierShard, v *node) { v.answer(nil) })
	for i := len(b.nodes) - 1; i >= 0; i-- {
		v := &b.nodes[i]
		if !v.leaf {
			v.answer(nil)
		}

		if i > 0 {
			for t, r := range v.response {
				b.nodes[v.parent].r[t] += r
			}
		}
	}

	primal, dual = b.applyRows()
	b.both(b.apply)
	for k := range b.shards {
		primal, dual = min(primal, 1/b.shards[k].primal), min(dual, 1/b.shards[k].dual)
	}

	return primal, dual
}

// joinMatrices adds up the shards' parts of every node's matrix.
func (b *barrier) joinMatrices() {
	for i := range b.nodes {
		if b.nodes[i].cars != nil {
			continue
		}

		clear(b.nodes[i].m.a)
		for k := range b.shards {
			if m := b.shards[k].nodes[i].m; m.n > 0 {
				m.mirror()
				b.nodes[i].m.add(m)
			}
		}
	}
}

// measure adds up loads, products and the faults of the balances.
func (b *barrier) measure() {
	b.both(b.measureShard)
	b.miss = 0
	for i := range b.nodes {
		v := &b.nodes[i]
		clear(v.load)
	}

	for i := len(b.nodes) - 1; i >= 0; i-- {
		v := &b.nodes[i]
		for k := range b.shards {
			for t, l := range b.shards[k].nodes[i].load {
				v.load[t] += l
			}
		}

		if i > 0 {
			for t, l := range v.load {
				b.nodes[v.parent].load[t] += l
			}
		}
	}

	for k := range b.shards {
		b.miss = max(b.miss, b.shards[k].miss)
	}
	b.setPrices()
}

func (b *barrier) count() int {
	n := 2 * len(b.v.x)
	for i := range b.nodes {
		for _, c := range b.nodes[i].cap {
			if !math.IsInf(c, 1) {
				n++
			}
		}
	}

	if b.market.traded {
		n += 2 * b.slots
	}

	return n
}

// productAfter returns the sum of the products after steps of the given lengths.
func (b *barrier) productAfter(primal, dual float64) float64 {
	b.both(func(s *barrierShard) { b.afterShard(s, primal, dual) })
	return b.shards[0].after + b.shards[1].after + b.rowAfter(primal, dual)
}

// energy is what the fleet moves, without signs.
func (b *barrier) energy() float64 {
	var sum float64
	for _, l := range b.nodes[0].load {
		sum += math.Abs(l)
	}
	return sum
}

func (b *barrier) move(primal, dual float64) {
	b.moveRows(primal, dual)
	b.both(func(s *barrierShard) { b.moveShard(s, primal, dual) })
}
