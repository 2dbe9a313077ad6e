package battery

import (
	"math"

	"flexd/internal/engine/buffer"
	"flexd/internal/engine/piecewise"
)

// MaxKinks is how many kinks the value of stored energy may have in a slot. Beyond it
// the value is lowered to one with fewer, and the plan reports its gap.
const MaxKinks = 512

// nonConvex is the working memory for slots whose cost is not convex.
type nonConvex struct {
	slots []nonConvexSlot
	// of stored energy less Init, before each slot and at the end
	values  []piecewise.Curve
	slider  piecewise.Convolver
	a       piecewise.Curve
	b       piecewise.Curve
	c       piecewise.Curve
	lowered bool
}

// nonConvexSlot is the cost of a slot at the ends of its pieces, by stored energy taken in.
type nonConvexSlot struct {
	n int
	y [maxPieces]float64
	g [maxPieces]float64
}

// anyNonConvex says whether a slot's cost is not of the simple kind.
func (q *storageSolver) anyNonConvex() bool {
	for t := range q.p.Import {
		if !q.simple(t) {
			return true
		}
	}

	return false
}

// load works the cost of slot t out wherever its slope may change.
func (r *nonConvexSlot) load(q *storageSolver, t int) {
	p := q.p
	q.power(t)
	net := p.Load[t] - p.PV[t]
	points := [9]float64{
		-q.discharge,
		q.charge,
		0,
		-net,
		p.ImportLimit - net,
		-p.ExportLimit - net,
	}

	n := 6
	if p.Curtail && p.PV[t] > 0 {
		points[6] = -net - p.PV[t]
		points[7] = p.ImportLimit - net - p.PV[t]
		points[8] = -p.ExportLimit - net - p.PV[t]
		n = 9
	}

	r.n = 0
	for _, e := range points[:n] {
		if e >= -q.discharge && e <= q.charge {
			r.insert(e)
		}
	}

	if p.Curtail && p.Import[t] < 0 && p.Export[t] > 0 {
		r.insertCrossings(q, t)
	}

	for i, e := range r.y[:r.n] {
		r.g[i] = q.cost(t, e)
		if e > 0 {
			r.y[i] = e * p.ChargeEff
		} else {
			r.y[i] = e / p.DischargeEff
		}
	}
}

// insert puts e in its place among y, once.
func (r *nonConvexSlot) insert(e float64) {
	i := r.n
	for i > 0 && r.y[i-1] > e {
		i--
	}

	// Two that differ by rounding may be one once they are scaled; the slope between them is then no number.
	isNear := func(k int) bool {
		return k >= 0 && k < r.n && math.Abs(r.y[k]-e) < piecewise.SameX
	}

	if isNear(i-1) || isNear(i) {
		return
	}

	copy(r.y[i+1:r.n+1], r.y[i:r.n])
	r.y[i] = e
	r.n++
}

// insertCrossings adds where exporting the roof's energy begins to pay less than turning
// the roof down to be paid for importing: a kink that no limit marks.
func (r *nonConvexSlot) insertCrossings(q *storageSolver, t int) {
	gain := func(e float64) float64 {
		a, b, _ := q.grid(t, e)
		return q.pay(t, a) - q.pay(t, b)
	}

	for i := 1; i < r.n && r.n < maxPieces; i++ {
		from, to := gain(r.y[i-1]), gain(r.y[i])
		if (from < 0) != (to < 0) && from != 0 && to != 0 {
			r.insert(r.y[i-1] + from/(from-to)*(r.y[i]-r.y[i-1]))
			i++
		}
	}
}

// slope is the cost of a stored kWh more, between points i-1 and i.
func (r *nonConvexSlot) slope(i int) float64 {
	return (r.g[i] - r.g[i-1]) / (r.y[i] - r.y[i-1])
}

// convexTo is the last point that the cost reaches from point i without a concave kink.
func (r *nonConvexSlot) convexTo(i int) int {
	j := i + 1
	for j < r.n-1 && r.slope(j+1) >= r.slope(j) {
		j++
	}

	return j
}

// backwardNonConvex values stored energy exactly, convex or not, and leaves in z what each
// slot gives off from a start at Init. It returns the least cost.
//
// The cost of a slot is the lower of a few convex parts, and a convex part is the sum, in
// the sense of slide, of its straight pieces; so the value of stored energy, going back a
// slot, is the lower of the sums of the value after it with each part. Nothing bounds the
// number of its kinks but practice: on real days it stays below fifty.
func (q *storageSolver) backwardNonConvex() float64 {
	p, r := q.p, &q.rough
	n := len(p.Import)
	r.slots = buffer.Resize(r.slots, n)
	r.values = buffer.Resize(r.values, n+1)
	r.lowered = false
	last := &r.values[n]
	last.Reset()
	last.Put(q.lo[n], -p.Terminal*(p.Init+q.lo[n]))
	last.Put(q.hi[n], -p.Terminal*(p.Init+q.hi[n]))

	for t := n - 1; t >= 0; t-- {
		r.slots[t].load(q, t)
		q.lowest(t)

		v := &r.values[t]
		piecewise.Clip(v, &r.b, q.lo[t], q.hi[t])
		if len(v.X) > MaxKinks {
			v.Coarsen(MaxKinks)
			r.lowered = true
		}
	}

	q.forward()

	return r.values[0].V[0]
}

// lowest puts the lower of slot t's convex parts, each with the value after it, into b.
func (q *storageSolver) lowest(t int) {
	r := &q.rough
	s := &r.slots[t]
	for i := 0; i == 0 || i < s.n-1; {
		j := s.convexTo(i)
		q.part(&r.values[t+1], s, i, j)
		if i == 0 {
			r.b, r.a = r.a, r.b
		} else {
			piecewise.Lower(&r.c, &r.a, &r.b)
			r.b, r.c = r.c, r.b
		}

		i = j
	}
}

// CostToGo returns the cost from each slot on, and at the end, by what is stored before it
// less Init. The curves are the solver's, good until it plans again.
func (w *Solver) CostToGo(p *Storage) []piecewise.Curve {
	q := &w.store
	q.load(p)
	q.backwardNonConvex()
	return q.rough.values
}

// part puts into a the sum of a value and the convex part of a slot's cost from point i
// to point j.
func (q *storageSolver) part(
	value *piecewise.Curve,
	s *nonConvexSlot,
	i, j int,
) {
	r := &q.rough
	if s.n == 1 { // no power: the value as it is
		r.slider.Convolve(&r.a, value, piecewise.Line{Full: s.g[0]})
		return
	}

	g := piecewise.Line{
		From:  -s.y[j],
		To:    -s.y[j-1],
		Full:  s.g[j],
		Slope: -s.slope(j),
	}

	r.slider.Convolve(&r.a, value, g)
	for k := j - 1; k > i; k-- {
		r.slider.Convolve(&r.c, &r.a, piecewise.Line{
			To:    s.y[k] - s.y[k-1],
			Slope: -s.slope(k),
		})

		r.a, r.c = r.c, r.a
	}
}

// forward follows the values from Init: in each slot the least of cost and value after
// it lies at a kink of one of the two.
func (q *storageSolver) forward() {
	r, stored := &q.rough, 0.0
	for t := range q.z {
		s, value := &r.slots[t], &r.values[t+1]
		best := bestMove{cost: math.Inf(1)}

		for i, k := 0, 0; i < s.n; i++ {
			var v float64
			v, k = value.At(k, stored+s.y[i])
			best.try(s.y[i], s.g[i]+v)
		}

		cost := piecewise.Curve{X: s.y[:s.n], V: s.g[:s.n]}
		for i, k := 0, 0; i < len(value.X); i++ {
			y := max(s.y[0], min(s.y[s.n-1], value.X[i]-stored))
			if math.Abs(y-(value.X[i]-stored)) < piecewise.SameX {
				var g float64
				g, k = cost.At(k, y)
				best.try(y, g+value.V[i])
			}
		}

		q.z[t] = -best.y
		stored += best.y
	}
}

// bestMove is the cheapest of the moves that were tried, and of equals the least.
type bestMove struct{ y, cost float64 }

func (b *bestMove) try(y, cost float64) {
	if math.IsInf(cost, 1) {
		return
	}

	tie := 1e-12 * max(1, math.Abs(cost))
	if cost < b.cost-tie || cost <= b.cost+tie && math.Abs(y) < math.Abs(b.y) {
		b.cost = min(b.cost, cost)
		b.y = y
	}
}
