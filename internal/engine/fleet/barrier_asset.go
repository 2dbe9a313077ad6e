package fleet

import (
	"math"
)

// barrierEV is a car, or several alike: n slots from the slot first, then what is left
// unserved, in the variables from at on.
type barrierEV struct {
	at      int
	n       int
	first   int
	node    int
	need    float64
	nu, dnu float64 // value of a kWh to the car
	total   float64 // of the inverses
}

// barrierBattery has charge, discharge and stored energy of every slot, in this order,
// in the variables from at on.
type barrierBattery struct {
	at        int
	node      int
	in, out   float64 // stored per kWh charged, and per kWh discharged
	init      float64
	nu, dnu   []float64 // value of a kWh stored
	diag, off []float64 // factor L D L' of the tridiagonal system for nu
	gain      []float64
}

// spans returns the ranges of variables that the shard's assets hold.
func (b *barrier) spans(s *barrierShard) [2][2]int {
	var out [2][2]int
	if s.evs[0] < s.evs[1] {
		last := &b.evs[s.evs[1]-1]
		out[0] = [2]int{b.evs[s.evs[0]].at, last.at + last.n + 1}
	}

	if s.batteries[0] < s.batteries[1] {
		out[1] = [2]int{
			b.batteries[s.batteries[0]].at,
			b.batteries[s.batteries[1]-1].at + 3*b.slots,
		}
	}

	return out
}

// measureShard adds up the shard's loads, products and the largest fault of its balances.
func (b *barrier) measureShard(s *barrierShard) {
	v := &b.v
	s.products, s.miss = 0, 0
	for _, sp := range b.spans(s) {
		for j := sp[0]; j < sp[1]; j++ {
			s.products += v.x[j]*v.zl[j] + (v.u[j]-v.x[j])*v.zu[j]
		}
	}

	for i := range s.nodes {
		clear(s.nodes[i].load)
	}

	for i := s.evs[0]; i < s.evs[1]; i++ {
		e := &b.evs[i]
		miss := e.measure(v, s.nodes[e.node].load)
		s.miss = max(s.miss, miss)
	}

	for i := s.batteries[0]; i < s.batteries[1]; i++ {
		e := &b.batteries[i]
		miss := e.measure(v, s.nodes[e.node].load, b.slots)
		s.miss = max(s.miss, miss)
	}
}

// measure adds the car to the load of its node and returns the fault of its balance.
func (e *barrierEV) measure(v *variables, load []float64) float64 {
	load = load[e.first : e.first+e.n]
	sum := v.x[e.at+e.n]
	for t, x := range v.x[e.at : e.at+e.n] {
		load[t] += x
		sum += x
	}

	return math.Abs(e.need - sum)
}

// measure adds the battery to the load of its node and returns the largest fault of its
// balances.
func (e *barrierBattery) measure(
	v *variables,
	load []float64,
	n int,
) float64 {
	x := v.x[e.at : e.at+3*n]

	var miss float64
	for t := range n {
		load[t] += x[t] - x[n+t]
		miss = max(miss, math.Abs(e.fault(x, t, n)))
	}

	return miss
}

// fault is by how much the balance of stored energy fails in slot t.
func (e *barrierBattery) fault(x []float64, t, n int) float64 {
	before := e.init
	if t > 0 {
		before = x[2*n+t-1]
	}

	return before + e.in*x[t] - e.out*x[n+t] - x[2*n+t]
}

// factor prepares Newton's system: the inverses, and every asset's part of its node's M.
func (b *barrier) factor(s *barrierShard) {
	v := &b.v
	for _, sp := range b.spans(s) {
		for j := sp[0]; j < sp[1]; j++ {
			low, high := 1/v.x[j], 1/(v.u[j]-v.x[j])
			v.low[j], v.high[j] = low, high
			v.inv[j] = 1 / (v.zl[j]*low + v.zu[j]*high)
		}
	}

	for i := range s.nodes {
		clear(s.nodes[i].m.a)
	}

	for i := s.evs[0]; i < s.evs[1]; i++ {
		e := &b.evs[i]
		inv := v.inv[e.at : e.at+e.n+1]
		if b.nodes[e.node].cars != nil {
			e.addUp(inv)
			continue
		}
		e.factor(inv, s.nodes[e.node].m, s.scratch)
	}

	for i := s.batteries[0]; i < s.batteries[1]; i++ {
		b.batteries[i].factor(b, s)
	}
}

// addUp sets the sum of the inverses.
func (e *barrierEV) addUp(inv []float64) {
	e.total = 0
	for t := len(inv) - 1; t >= 0; t-- {
		e.total += inv[t]
	}
}

// factor eliminates the car: with a its inverses and A their sum, its part of M is
// diag(a) - a a' / A. The diagonal is a times the sum of the others, over A, so that no
// difference is taken.
func (e *barrierEV) factor(inv []float64, m matrix, scratch []float64) {
	after := scratch[:e.n+2] // sums of the inverses from each on
	after[e.n+1] = 0
	for t := e.n; t >= 0; t-- {
		after[t] = after[t+1] + inv[t]
	}

	e.total = after[0]

	before := 0.0
	for t, a := range inv[:e.n] {
		k, row := a/e.total, m.row(e.first + t)[e.first:]
		for q, c := range inv[:t] {
			row[q] -= k * c
		}
		row[t] += k * (before + after[t+1])
		before += a
	}
}

// factor eliminates the battery: with g the answer of the balances to the price, its part
// of M is diag(1/theta of charge and discharge) - g (tridiagonal)^-1 g.
func (e *barrierBattery) factor(b *barrier, s *barrierShard) {
	n := b.slots
	inv := b.v.inv[e.at : e.at+3*n]
	e.tridiagonal(inv, n)

	// Column t of the inverse, from row t down: the rest is symmetric.
	m := s.nodes[e.node].m
	col := s.scratch[:n]
	for t := range n {
		e.column(col, t)
		for q := t; q < n; q++ {
			m.a[q*n+t] -= e.gain[q] * col[q] * e.gain[t]
		}
		m.a[t*n+t] += inv[t] + inv[n+t]
	}
}

// tridiagonal factors the system of the balances, and sets the answer of each to its price.
func (e *barrierBattery) tridiagonal(inv []float64, n int) {
	for t := range n {
		a, d := inv[t], inv[n+t]
		stored := inv[2*n+t]
		e.gain[t] = e.in*a + e.out*d
		e.diag[t] = stored + e.in*e.in*a + e.out*e.out*d
		if t > 0 {
			prev := inv[2*n+t-1]
			e.off[t] = -prev / e.diag[t-1]
			e.diag[t] += prev + prev*e.off[t]
		}
	}
}

// column sets col to column t of the inverse of the tridiagonal system.
func (e *barrierBattery) column(col []float64, t int) {
	n := len(col)
	clear(col)
	col[t] = 1

	for q := t + 1; q < n; q++ {
		col[q] = -e.off[q] * col[q-1]
	}

	for q := n - 1; q >= t; q-- {
		col[q] /= e.diag[q]
		if q+1 < n {
			col[q] -= e.off[q+1] * col[q+1]
		}
	}
}

// pull returns what the target, less the second order terms, asks of variable j at its
// two bounds.
func (b *barrier) pull(j int) (low, high float64) {
	v := &b.v
	low, high = b.target, b.target
	if b.correct {
		low, high = low-v.dx[j]*v.dl[j], high+v.dx[j]*v.du[j]
	}

	return low * v.low[j], high * v.high[j]
}

// rightSide sets h and adds up every node's r.
func (b *barrier) rightSide(s *barrierShard) {
	for i := range s.nodes {
		clear(s.nodes[i].r)
	}

	for i := s.evs[0]; i < s.evs[1]; i++ {
		e := &b.evs[i]
		e.rightSide(b, s.nodes[e.node].r[e.first:])
	}

	for i := s.batteries[0]; i < s.batteries[1]; i++ {
		e := &b.batteries[i]
		e.rightSide(b, s.nodes[e.node].r)
	}
}

// rightSide sets the car's h, and adds to r what its load does at unchanged prices.
func (e *barrierEV) rightSide(b *barrier, r []float64) {
	v := &b.v
	w := b.nodes[e.node].w[e.first:]
	sum, balance := 0.0, e.need

	for t := range e.n + 1 {
		j := e.at + t
		low, high := b.pull(j)
		h := e.nu - v.c[j] + low - high
		if t < e.n {
			h -= w[t]
		}

		v.h[j] = h
		sum += h * v.inv[j]
		balance -= v.x[j]
	}

	nu := (balance - sum) / e.total
	for t := range e.n {
		r[t] += (v.h[e.at+t] + nu) * v.inv[e.at+t]
	}
}

// rightSide sets the battery's h, and adds to r what its load does at unchanged prices.
func (e *barrierBattery) rightSide(b *barrier, r []float64) {
	v, n := &b.v, b.slots
	w := b.nodes[e.node].w
	h, inv := v.h[e.at:e.at+3*n], v.inv[e.at:e.at+3*n]

	for t := range n {
		for k := range 3 {
			j := e.at + k*n + t
			low, high := b.pull(j)
			h[k*n+t] = low - high - v.c[j]
		}

		h[t] += e.in*e.nu[t] - w[t]
		h[n+t] += w[t] - e.out*e.nu[t]
		h[2*n+t] -= e.nu[t]
		if t+1 < n {
			h[2*n+t] += e.nu[t+1]
		}
	}

	e.solve(v, n, nil)
	for t := range n {
		r[t] += h[t]*inv[t] - h[n+t]*inv[n+t] + e.gain[t]*e.dnu[t]
	}
}

// solve sets dnu for a change dw of the price; nil is none.
func (e *barrierBattery) solve(v *variables, n int, dw []float64) {
	x := v.x[e.at : e.at+3*n]
	h := v.h[e.at : e.at+3*n]
	inv := v.inv[e.at : e.at+3*n]
	d := e.dnu

	for t := range n {
		// Row t: ds(t) - ds(t-1) - in da + out dd = fault, solved for dnu.
		d[t] = h[2*n+t]*inv[2*n+t] - e.in*h[t]*inv[t] + e.out*h[n+t]*inv[n+t] -
			e.fault(x, t, n)
		if t > 0 {
			d[t] -= h[2*n+t-1] * inv[2*n+t-1]
		}
		if dw != nil {
			d[t] += e.gain[t] * dw[t]
		}
	}

	for t := 1; t < n; t++ {
		d[t] -= e.off[t] * d[t-1]
	}

	for t := n - 1; t >= 0; t-- {
		d[t] /= e.diag[t]
		if t+1 < n {
			d[t] -= e.off[t+1] * d[t+1]
		}
	}
}

// apply sets the direction of every variable, given that of the prices, and the longest
// steps.
func (b *barrier) apply(s *barrierShard) {
	s.primal, s.dual = 1e-9, 1e-9
	for i := s.evs[0]; i < s.evs[1]; i++ {
		b.evs[i].apply(b, s)
	}

	for i := s.batteries[0]; i < s.batteries[1]; i++ {
		b.batteries[i].apply(b, s)
	}
}

// apply sets the direction of the car's variables.
func (e *barrierEV) apply(b *barrier, s *barrierShard) {
	v := &b.v
	dw := b.nodes[e.node].dw[e.first : e.first+e.n]
	sum := e.need

	for t := range e.n + 1 {
		j := e.at + t
		if t < e.n {
			v.h[j] -= dw[t]
		}
		sum -= v.h[j]*v.inv[j] + v.x[j]
	}

	e.dnu = sum / e.total
	for j := e.at; j <= e.at+e.n; j++ {
		b.turn(s, j, (v.h[j]+e.dnu)*v.inv[j])
	}
}

// apply sets the direction of the battery's variables.
func (e *barrierBattery) apply(b *barrier, s *barrierShard) {
	v, n := &b.v, b.slots
	dw := b.nodes[e.node].dw
	h, inv := v.h[e.at:e.at+3*n], v.inv[e.at:e.at+3*n]
	e.solve(v, n, dw)

	for t := range n {
		b.turn(s, e.at+t, (h[t]-dw[t]+e.in*e.dnu[t])*inv[t])
		b.turn(s, e.at+n+t, (h[n+t]+dw[t]-e.out*e.dnu[t])*inv[n+t])
		ds := h[2*n+t] - e.dnu[t]
		if t+1 < n {
			ds += e.dnu[t+1]
		}

		b.turn(s, e.at+2*n+t, ds*inv[2*n+t])
	}
}

// turn sets the direction of variable j and of its two multipliers.
func (b *barrier) turn(s *barrierShard, j int, dx float64) {
	v := &b.v
	low, high := b.pull(j)
	zl := v.zl[j]
	zu := v.zu[j]
	toLow := -dx * v.low[j]
	toHigh := dx * v.high[j]
	dl, du := low-zl+zl*toLow, high-zu+zu*toHigh
	v.dx[j] = dx

	v.dl[j] = dl
	v.du[j] = du
	s.primal = max(s.primal, toLow, toHigh)
	if -dl > s.dual*zl {
		s.dual = -dl / zl
	}
	if -du > s.dual*zu {
		s.dual = -du / zu
	}
}

func (b *barrier) afterShard(s *barrierShard, primal, dual float64) {
	v := &b.v
	s.after = 0
	primal, dual = min(1, primal), min(1, dual)

	for _, sp := range b.spans(s) {
		for j := sp[0]; j < sp[1]; j++ {
			x := v.x[j] + primal*v.dx[j]
			s.after += x*(v.zl[j]+dual*v.dl[j]) +
				(v.u[j]-x)*(v.zu[j]+dual*v.du[j])
		}
	}
}

func (b *barrier) moveShard(s *barrierShard, primal, dual float64) {
	v := &b.v
	for _, sp := range b.spans(s) {
		for j := sp[0]; j < sp[1]; j++ {
			v.x[j] += primal * v.dx[j]
			v.zl[j] += dual * v.dl[j]
			v.zu[j] += dual * v.du[j]
		}
	}

	for i := s.evs[0]; i < s.evs[1]; i++ {
		b.evs[i].nu += dual * b.evs[i].dnu
	}

	for i := s.batteries[0]; i < s.batteries[1]; i++ {
		e := &b.batteries[i]
		for t := range e.nu {
			e.nu[t] += dual * e.dnu[t]
		}
	}
}
