package plan

import "math"

// MaxKinks is how many kinks the value of stored energy may have in a slot. Beyond it
// the value is lowered to one with fewer, and the plan reports its gap.
const MaxKinks = 512

// rough is the working memory for slots whose cost is not convex.
type rough struct {
	slots   []roughSlot
	values  []curve // of stored energy less Init, before each slot and at the end
	slider  slider
	a, b, c curve
	lowered bool
}

// roughSlot is the cost of a slot at the ends of its pieces, by stored energy taken in.
type roughSlot struct {
	n    int
	y, g [maxPieces]float64
}

// anyRough says whether a slot's cost is not of the simple kind.
func (q *stored) anyRough() bool {
	for t := range q.p.Import {
		if !q.simple(t) {
			return true
		}
	}
	return false
}

// load works the cost of slot t out wherever its slope may change.
func (r *roughSlot) load(q *stored, t int) {
	p := q.p
	net := p.Load[t] - p.PV[t]
	points := [9]float64{-p.Discharge, p.Charge, 0, -net, p.ImportLimit - net, -p.ExportLimit - net}
	n := 6
	if p.Curtail && p.PV[t] > 0 {
		points[6], points[7], points[8] = -net-p.PV[t], p.ImportLimit-net-p.PV[t], -p.ExportLimit-net-p.PV[t]
		n = 9
	}
	r.n = 0
	for _, e := range points[:n] {
		if e >= -p.Discharge && e <= p.Charge {
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
func (r *roughSlot) insert(e float64) {
	i := r.n
	for i > 0 && r.y[i-1] > e {
		i--
	}
	if i > 0 && r.y[i-1] == e {
		return
	}
	copy(r.y[i+1:r.n+1], r.y[i:r.n])
	r.y[i] = e
	r.n++
}

// insertCrossings adds where exporting the roof's energy begins to pay less than turning
// the roof down to be paid for importing: a kink that no limit marks.
func (r *roughSlot) insertCrossings(q *stored, t int) {
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
func (r *roughSlot) slope(i int) float64 { return (r.g[i] - r.g[i-1]) / (r.y[i] - r.y[i-1]) }

// convexTo is the last point that the cost reaches from point i without a concave kink.
func (r *roughSlot) convexTo(i int) int {
	j := i + 1
	for j < r.n-1 && r.slope(j+1) >= r.slope(j) {
		j++
	}
	return j
}

// roughBackward values stored energy exactly, convex or not, and leaves in z what each
// slot gives off from a start at Init. It returns the least cost.
//
// The cost of a slot is the lower of a few convex parts, and a convex part is the sum, in
// the sense of slide, of its straight pieces; so the value of stored energy, going back a
// slot, is the lower of the sums of the value after it with each part. Nothing bounds the
// number of its kinks but practice: on real days it stays below fifty.
func (q *stored) roughBackward() float64 {
	p, r := q.p, &q.rough
	n := len(p.Import)
	r.slots = resize(r.slots, n)
	r.values = resize(r.values, n+1)
	r.lowered = false
	last := &r.values[n]
	last.reset()
	last.put(q.lo[n], -p.Terminal*(p.Init+q.lo[n]))
	last.put(q.hi[n], -p.Terminal*(p.Init+q.hi[n]))
	for t := n - 1; t >= 0; t-- {
		s := &r.slots[t]
		s.load(q, t)
		for i := 0; i == 0 || i < s.n-1; {
			j := s.convexTo(i)
			q.part(&r.values[t+1], s, i, j)
			if i == 0 {
				r.b, r.a = r.a, r.b
			} else {
				lower(&r.c, &r.a, &r.b)
				r.b, r.c = r.c, r.b
			}
			i = j
		}
		v := &r.values[t]
		clip(v, &r.b, q.lo[t], q.hi[t])
		if len(v.x) > MaxKinks {
			v.coarsen(MaxKinks)
			r.lowered = true
		}
	}
	q.forward()
	return r.values[0].v[0]
}

// part puts into a the sum of a value and the convex part of a slot's cost from point i
// to point j.
func (q *stored) part(value *curve, s *roughSlot, i, j int) {
	r := &q.rough
	if s.n == 1 { // no power: the value as it is
		r.slider.slide(&r.a, value, line{0, 0, s.g[0], 0})
		return
	}
	g := line{-s.y[j], -s.y[j-1], s.g[j], -s.slope(j)}
	r.slider.slide(&r.a, value, g)
	for k := j - 1; k > i; k-- {
		r.slider.slide(&r.c, &r.a, line{0, s.y[k] - s.y[k-1], 0, -s.slope(k)})
		r.a, r.c = r.c, r.a
	}
}

// forward follows the values from Init: in each slot the least of cost and value after
// it lies at a kink of one of the two. Of equals the battery moves the least.
func (q *stored) forward() {
	r, stored := &q.rough, 0.0
	for t := range q.z {
		s, value := &r.slots[t], &r.values[t+1]
		best, least := math.Inf(1), 0.0
		try := func(y, cost float64) {
			if math.IsInf(cost, 1) {
				return
			}
			tie := 1e-12 * max(1, math.Abs(cost))
			if cost < best-tie || cost <= best+tie && math.Abs(y) < math.Abs(least) {
				best, least = min(best, cost), y
			}
		}
		for i, k := 0, 0; i < s.n; i++ {
			var v float64
			v, k = value.at(k, stored+s.y[i])
			try(s.y[i], s.g[i]+v)
		}
		cost := curve{s.y[:s.n], s.g[:s.n]}
		for i, k := 0, 0; i < len(value.x); i++ {
			y := max(s.y[0], min(s.y[s.n-1], value.x[i]-stored))
			if math.Abs(y-(value.x[i]-stored)) < sameX {
				var g float64
				g, k = cost.at(k, y)
				try(y, g+value.v[i])
			}
		}
		q.z[t] = -least
		stored += least
	}
}
