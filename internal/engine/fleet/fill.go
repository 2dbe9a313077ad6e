package fleet

import (
	"math"
	"math/bits"
	"slices"

	"flexd/internal/engine/random"
)

// A large fleet is too large to be solved as one. Prices found on a sample are nearly right
// for all; open is only which car takes which of several slots of the same cost. So the cars
// choose one after the other: those with few choices first, the others in random order, each
// its cheapest slots with free headroom. Between parts of the fleet every price is adjusted a
// little, so that its cap is filled evenly.

const (
	fillParts = 512
	// fillNodes is the most caps whose prices are adjusted in a run. With many caps there are
	// fewer parts.
	fillNodes = 250_000
	// relative to the mean price, for a cap that is filled twice as fast as it should be
	fillGain = 0.02
)

// priceFill is one such run over a draft.
type priceFill struct {
	*draft
	f      *pricer
	market []float64
	mu     [][]float64
	gain   float64
	// slots in which the fleet should draw exactly the traded energy
	tracked []bool
	// of a node's cap, or of the position: the smallest that a load is measured against
	least   []float64
	workers [2]fillWorker
}

// fillWorker is one worker's half of the headroom under every cap and up to the traded energy,
// what it used of both, and its working memory.
type fillWorker struct {
	headroom [][]float64
	took     [][]float64
	position []float64
	cell     cell
	y        []float64
	own      curve
}

// fillAtPrices places all assets into an empty draft, within the caps.
func (d *draft) fillAtPrices(f *pricer, market []float64, mu [][]float64) {
	c := d.newPriceFill(f, market, mu)
	c.prepare()

	energy, done := 1e-9, 0.0
	for i := range d.p.EVs {
		energy += d.p.EVs[i].EnergyKWh
	}

	cars := d.order()
	steered, prices := grid(len(mu), d.p.Slots), slices.Clone(market)
	parts := max(1, min(fillParts, fillNodes/len(mu), (len(cars)+len(d.net))/64))

	for k := range parts {
		share := float64(k) / float64(parts)
		if len(cars) > 0 {
			share = done / energy
		}

		part := cars[len(cars)*k/parts : len(cars)*(k+1)/parts]
		c.steer(steered, prices, share)
		f.setFor(part, prices, steered)

		for _, i := range part {
			done += d.p.EVs[i].EnergyKWh
		}

		c.divide()
		c.place(part, len(d.net)*k/parts, len(d.net)*(k+1)/parts)
		c.gather()
	}
}

// newPriceFill returns a fill at the prices, with a worker for each half of a part.
func (d *draft) newPriceFill(
	f *pricer,
	market []float64,
	mu [][]float64,
) *priceFill {
	n := d.p.Slots
	c := &priceFill{
		draft:   d,
		f:       f,
		market:  market,
		mu:      mu,
		tracked: make([]bool, n),
	}

	for k := range c.workers {
		c.workers[k] = fillWorker{
			headroom: grid(len(mu), n),
			took:     grid(len(mu), n),
			position: make([]float64, n),
			y:        make([]float64, n),
		}
	}

	return c
}

// place lets cars and a range of batteries choose, one half for each worker.
func (c *priceFill) place(cars []int32, from, to int) {
	inParallel(func(k int) {
		first, end := half(to-from, k)
		for i := from + first; i < from+end; i++ {
			c.placeBattery(&c.workers[k], i)
		}

		first, end = half(len(cars), k)
		for _, i := range cars[first:end] {
			c.placeCar(&c.workers[k], int(i))
		}
	})
}

// prepare sets the limits that loads are compared with.
func (c *priceFill) prepare() {
	mean := func(s []float64) float64 {
		var sum float64
		for _, v := range s {
			if !math.IsInf(v, 1) {
				sum += math.Abs(v)
			}
		}
		return max(1e-3, sum/float64(len(s)))
	}

	c.gain = mean(c.market) * fillGain
	c.least = make([]float64, len(c.tree.cap)+1)
	for v, limit := range c.tree.cap {
		c.least[v] = mean(limit) / 10
	}

	if q := c.p.Position; q != nil {
		c.least[len(c.tree.cap)] = mean(q.KWh) / 10
		for t, p := range c.market {
			edge := 1e-3 * (q.Buy[t] - q.Sell[t])
			c.tracked[t] = p > q.Sell[t]+edge && p < q.Buy[t]-edge
		}
	}
}

// order returns the cars, those with the fewest free slots first.
func (d *draft) order() []int32 {
	bucket := func(i int32) int {
		e := &d.p.EVs[i]
		spare := float64(e.Last-e.First) + e.FirstFraction -
			e.EnergyKWh/max(e.MaxKW*SlotHours, 1e-9)
		return bits.Len(uint(max(0, min(15, spare))))
	}

	var start [6]int
	mixed := make([]int32, len(d.p.EVs))
	source := random.Source(len(mixed))

	for i := range mixed {
		j := source.Below(i + 1)
		mixed[i] = mixed[j]
		mixed[j] = int32(i)
		start[bucket(int32(i))+1]++
	}

	for b := 1; b < len(start); b++ {
		start[b] += start[b-1]
	}
	order := make([]int32, len(mixed))
	for _, i := range mixed {
		b := bucket(i)
		order[start[b]] = i
		start[b]++
	}

	return order
}

// steer adjusts the prices of caps, and of the position, that fill faster or slower than the
// given share.
func (c *priceFill) steer(mu [][]float64, market []float64, share float64) {
	for v, limit := range c.tree.cap {
		for t, k := range limit {
			mu[v][t] = c.mu[v][t]
			if !math.IsInf(k, 1) && mu[v][t] > 1e-6 {
				mu[v][t] = max(
					0,
					mu[v][t]+c.gain*(c.load[v][t]-share*k)/max(k, c.least[v]),
				)
			}
		}
	}

	if q := c.p.Position; q != nil {
		for t, p := range c.market {
			if c.tracked[t] {
				p += c.gain * (c.load[0][t] - share*q.KWh[t]) / max(
					math.Abs(q.KWh[t]),
					c.least[len(c.tree.cap)],
				)
			}
			market[t] = max(q.Sell[t], min(q.Buy[t], p))
		}
	}
}

// divide gives each worker half of the headroom.
func (c *priceFill) divide() {
	for h := range c.workers {
		worker := &c.workers[h]
		for v, limit := range c.tree.tightLimit {
			clear(worker.took[v])
			for t, k := range limit {
				worker.headroom[v][t] = (k - c.load[v][t]) / 2
			}
		}

		for t := range worker.position {
			worker.position[t] = math.Inf(1)
			if c.tracked[t] {
				worker.position[t] = (c.p.Position.KWh[t] - c.load[0][t]) / 2
			}
		}
	}
}

// gather adds up what the workers used.
func (c *priceFill) gather() {
	for v := range c.load {
		for t := range c.load[v] {
			c.load[v][t] += c.workers[0].took[v][t] + c.workers[1].took[v][t]
		}
	}
}

// addLoad adds a load of a node in slot t.
func (c *priceFill) addLoad(h *fillWorker, node int32, t int, q float64) {
	h.position[t] -= q
	for v := node; v >= 0; v = c.tree.parent[v] {
		h.headroom[v][t] -= q
		h.took[v][t] += q
	}
}

// placeCar lets a car choose: first among the slots with traded energy that is not drawn yet,
// then among all.
func (c *priceFill) placeCar(h *fillWorker, i int) {
	remaining := c.p.EVs[i].EnergyKWh
	if c.p.Position != nil {
		remaining = c.placeEnergy(h, i, remaining, true)
		if remaining <= 0 {
			return
		}
	}

	c.placeEnergy(h, i, remaining, false)
}

// placeEnergy places energy of a car in its cheapest slots with headroom, and if requested
// within the traded energy. It returns the remaining energy.
func (c *priceFill) placeEnergy(
	h *fillWorker,
	i int,
	remaining float64,
	traded bool,
) float64 {
	e, curve := &c.p.EVs[i], c.f.curve(i, &h.own)
	x := c.x[c.at[i]:c.at[i+1]]
	node := c.tree.node[e.Group]

	for open := curve.before[e.Last+1] &^ curve.before[e.First]; open != 0 && remaining > 0; open &= open -
		1 {
		t := curve.slot[bits.TrailingZeros64(open)]
		q := e.MaxKW * SlotHours
		if t == e.First {
			q *= e.FirstFraction
		}

		q = min(q-x[t-e.First], remaining)
		if traded {
			q = min(q, h.position[t])
		}

		for v := node; v >= 0; v = c.tree.parent[v] {
			q = min(q, h.headroom[v][t])
		}

		if q > 0 {
			x[t-e.First] += q
			remaining -= q
			c.addLoad(h, node, int(t), q)
		}
	}

	return remaining
}

// placeBattery lets a battery choose, within the headroom to charge.
func (c *priceFill) placeBattery(h *fillWorker, i int) {
	b, x := &c.p.Batteries[i], c.net[i]
	node := c.tree.node[b.Group]
	h.cell.plan(b, c.f.w[node], h.y)

	for t, y := range h.y {
		x[t] = b.net(y)
		for v := node; v >= 0; v = c.tree.parent[v] {
			x[t] = min(x[t], max(0, h.headroom[v][t]))
		}
	}

	b.clampStored(x)
	for t, q := range x {
		c.addLoad(h, node, t, q)
	}
}
