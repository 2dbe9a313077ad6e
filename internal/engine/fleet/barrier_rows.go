package fleet

import (
	"math"
)

// market is what the whole fleet's energy costs: a fixed price, or, around a traded
// position, load - up + down = kwh with up bought and down sold.
type market struct {
	// p/kWh; with a position, its multiplier between sell and buy
	price  []float64
	traded bool

	kwh    []float64
	buy    []float64
	sell   []float64
	up     []float64
	down   []float64
	dprice []float64
	dup    []float64
	ddown  []float64
	theta  []float64
	rho    []float64
}

// startRows puts every cap and the position inside their bounds.
func (b *barrier) startRows() {
	scale := b.scale()
	for i := range b.nodes {
		v := &b.nodes[i]
		for t, c := range v.cap {
			if !math.IsInf(c, 1) {
				v.slack[t] = max(c-v.load[t], 0.1*c+1e-3)
				v.mu[t] = scale
			}
		}
	}

	k := &b.market
	if !k.traded {
		return
	}

	load := b.nodes[0].load
	most := 0.0
	for t := range load {
		most = max(most, math.Abs(load[t]-k.kwh[t]))
	}

	for t, l := range load {
		k.price[t] = (k.buy[t] + k.sell[t]) / 2
		k.up[t] = max(l-k.kwh[t], 0) + 0.1*most + 1e-3
		k.down[t] = k.up[t] - (l - k.kwh[t])
	}
}

// scale is a typical price.
func (b *barrier) scale() float64 {
	sum := 0.0
	for t := range b.slots {
		if b.market.traded {
			sum += math.Abs(b.market.buy[t])
		} else {
			sum += math.Abs(b.market.price[t])
		}
	}

	return 0.1*sum/float64(b.slots) + 0.1
}

// free reports whether the position leaves the price of slot t open.
func (k *market) free(t int) bool {
	return k.traded && k.buy[t]-k.sell[t] > 1e-9
}

// setPrices adds the prices up from the fleet down to its groups.
func (b *barrier) setPrices() {
	for i := range b.nodes {
		v := &b.nodes[i]
		from := b.market.price
		if i > 0 {
			from = b.nodes[v.parent].w
		}

		for t, p := range from {
			v.w[t] = p + v.mu[t]
		}
	}
}

func (b *barrier) rowProducts() float64 {
	var sum float64
	for i := range b.nodes {
		v := &b.nodes[i]
		for t, c := range v.cap {
			if !math.IsInf(c, 1) {
				sum += v.slack[t] * v.mu[t]
				b.miss = max(b.miss, math.Abs(c-v.load[t]-v.slack[t]))
			}
		}
	}

	k := &b.market
	for t := range b.slots {
		if k.free(t) {
			sum += k.up[t]*(k.buy[t]-k.price[t]) +
				k.down[t]*(k.price[t]-k.sell[t])
			b.miss = max(
				b.miss,
				math.Abs(k.kwh[t]-b.nodes[0].load[t]+k.up[t]-k.down[t]),
			)
		}
	}

	return sum
}

// turnover is the money that changes workers, without signs.
func (b *barrier) turnover() float64 {
	var sum float64
	for t, l := range b.nodes[0].load {
		sum += math.Abs(l * b.market.price[t])
	}

	for i := range b.evs {
		e := &b.evs[i]
		sum += b.v.c[e.at+e.n] * b.v.x[e.at+e.n]
	}

	return sum
}

// setTheta says how strongly node i answers a load with a price.
func (b *barrier) setTheta(i int) {
	v := &b.nodes[i]
	for t, c := range v.cap {
		v.theta[t] = 0
		if !math.IsInf(c, 1) {
			v.theta[t] = v.mu[t] / v.slack[t]
		}
	}

	k := &b.market
	if i > 0 || !k.traded {
		return
	}

	for t := range b.slots {
		k.theta[t] = 0
		if k.free(t) {
			k.theta[t] = 1 / (k.up[t]/(k.buy[t]-k.price[t]) +
				k.down[t]/(k.price[t]-k.sell[t]))
		}
		v.theta[t] += k.theta[t]
	}
}

// capPull is what the target asks of the cap's price, less the second order term.
func (b *barrier) capPull(v *node, t int) float64 {
	p := b.target
	if b.correct {
		p -= v.dslack[t] * v.dmu[t]
	}

	return p / v.slack[t]
}

// tradePull is the same for what is bought and what is sold.
func (b *barrier) tradePull(t int) (up, down float64) {
	k := &b.market
	up, down = b.target, b.target
	if b.correct {
		up, down = up+k.dup[t]*k.dprice[t], down-k.ddown[t]*k.dprice[t]
	}

	return up/(k.buy[t]-k.price[t]) - k.up[t], down/(k.price[t]-k.sell[t]) - k.down[t]
}

// setRho sets the part of every node's price change that its load does not cause.
func (b *barrier) setRho() {
	for i := range b.nodes {
		v := &b.nodes[i]
		for t, c := range v.cap {
			v.rho[t] = 0
			if !math.IsInf(c, 1) {
				miss := c - v.load[t] - v.slack[t]
				v.rho[t] = b.capPull(v, t) - v.mu[t] - v.mu[t]/v.slack[t]*miss
			}
		}
	}

	k, v := &b.market, &b.nodes[0]
	for t := range b.slots {
		if k.free(t) {
			up, down := b.tradePull(t)
			miss := k.kwh[t] - v.load[t] + k.up[t] - k.down[t]
			k.rho[t] = -k.theta[t] * (miss + up - down)
			v.rho[t] += k.rho[t]
		}
	}
}

// applyMarket gives the market its part of the fleet's change of price in a slot, where the
// load changes by dload, and returns the longest steps that the position allows.
func (b *barrier) applyMarket(t int, dload float64) (primal, dual float64) {
	k, v := &b.market, &b.nodes[0]
	d := v.dmu[t]
	if k.theta[t] < v.theta[t] { // the cap takes its part of the price
		d = k.theta[t]*dload + k.rho[t]
	}

	primal, dual = b.applyTrade(t, d)
	v.dmu[t] -= d

	return primal, dual
}

// applyRows carries the solution down from the fleet to its groups and returns the longest
// steps that caps and position allow.
func (b *barrier) applyRows() (primal, dual float64) {
	primal, dual = 1e9, 1e9
	for i := range b.nodes {
		v := &b.nodes[i]
		clear(v.dw)
		if i > 0 {
			copy(v.dw, b.nodes[v.parent].dw)
		}

		v.answer(v.dw)
		for t, dload := range v.response {
			v.dw[t] += v.dmu[t]
			if i == 0 && b.market.free(t) {
				p, q := b.applyMarket(t, dload)
				primal, dual = min(primal, p), min(dual, q)
			}

			if math.IsInf(v.cap[t], 1) {
				continue
			}
			ds := v.cap[t] - v.load[t] - v.slack[t] - dload
			v.dslack[t] = ds
			if ds < 0 {
				primal = min(primal, -v.slack[t]/ds)
			}

			if v.dmu[t] < 0 {
				dual = min(dual, -v.mu[t]/v.dmu[t])
			}
		}
	}

	return primal, dual
}

// applyTrade sets the direction of what is bought and sold for a change d of the price.
func (b *barrier) applyTrade(t int, d float64) (primal, dual float64) {
	primal, dual = 1e9, 1e9
	k := &b.market
	up, down := b.tradePull(t)
	du, dd := up+k.up[t]/(k.buy[t]-k.price[t])*d, down-k.down[t]/(k.price[t]-k.sell[t])*d
	k.dprice[t] = d
	k.dup[t] = du
	k.ddown[t] = dd

	if du < 0 {
		primal = min(primal, -k.up[t]/du)
	}
	if dd < 0 {
		primal = min(primal, -k.down[t]/dd)
	}

	if d > 0 {
		dual = (k.buy[t] - k.price[t]) / d
	} else if d < 0 {
		dual = (k.sell[t] - k.price[t]) / d
	}

	return primal, dual
}

func (b *barrier) rowAfter(primal, dual float64) float64 {
	primal, dual = min(1, primal), min(1, dual)

	var sum float64
	for i := range b.nodes {
		v := &b.nodes[i]
		for t, c := range v.cap {
			if !math.IsInf(c, 1) {
				sum += (v.slack[t] + primal*v.dslack[t]) * (v.mu[t] +
					dual*v.dmu[t])
			}
		}
	}

	k := &b.market
	for t := range b.slots {
		if k.free(t) {
			p := k.price[t] + dual*k.dprice[t]
			sum += (k.up[t]+primal*k.dup[t])*(k.buy[t]-p) +
				(k.down[t]+primal*k.ddown[t])*(p-k.sell[t])
		}
	}

	return sum
}

func (b *barrier) moveRows(primal, dual float64) {
	for i := range b.nodes {
		v := &b.nodes[i]
		for t, c := range v.cap {
			if !math.IsInf(c, 1) {
				v.slack[t] += primal * v.dslack[t]
				v.mu[t] += dual * v.dmu[t]
			}
		}
	}

	k := &b.market
	for t := range b.slots {
		if k.free(t) {
			k.price[t] += dual * k.dprice[t]
			k.up[t] += primal * k.dup[t]
			k.down[t] += primal * k.ddown[t]
		}
	}
}
