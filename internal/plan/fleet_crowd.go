package plan

import (
	"math"
	"math/bits"
	"slices"
	"sync"
)

// A crowd is a fleet too large to be solved as one. Prices found on a sample are nearly
// right for all; what they leave open is who takes which of the slots that cost the same.
// So the cars choose one after the other, those with little choice first, the others in
// an order without meaning, each its cheapest slots with room left. Between parts of the
// crowd every price is moved a little towards filling its cap evenly.

const (
	fleetCrowdParts = 256
	fleetCrowdGain  = 0.1 // of the mean price, for a cap that is filled twice as fast as it should be
)

// fleetCrowd is one such run over a draft.
type fleetCrowd struct {
	*fleetDraft
	f      *fleetPricer
	market []float64
	mu     [][]float64
	base   [][]float64 // load before any car
	gain   float64
	hands  [2]fleetHand
}

// fleetHand is a worker's half of the room under every cap, and what it took of it.
type fleetHand struct{ room, took [][]float64 }

// crowd places all cars into the draft, under the caps: those that it holds already again,
// one part of them after the other.
func (d *fleetDraft) crowd(f *fleetPricer, market []float64, mu [][]float64, order []int32, again bool) {
	n := d.p.Slots
	c := &fleetCrowd{fleetDraft: d, f: f, market: market, mu: mu, base: fleetGrid(len(mu), n)}
	for k := range c.hands {
		c.hands[k] = fleetHand{fleetGrid(len(mu), n), fleetGrid(len(mu), n)}
	}
	if !again {
		for v := range c.base {
			copy(c.base[v], d.load[v])
		}
	}
	for _, p := range market {
		c.gain += math.Abs(p) / float64(n) * fleetCrowdGain
	}
	part := max(64, (len(order)+fleetCrowdParts-1)/fleetCrowdParts)
	steered, prices := fleetGrid(len(mu), n), slices.Clone(market)
	done, energy := 0.0, 1e-9
	for i := range d.p.EVs {
		energy += d.p.EVs[i].EnergyKWh
	}
	for lo := 0; lo < len(order); lo += part {
		hi := min(lo+part, len(order))
		if again {
			done = energy
		}
		c.steer(steered, prices, done/energy)
		f.set(prices, steered)
		for _, i := range order[lo:hi] {
			done += d.p.EVs[i].EnergyKWh
		}
		c.deal()
		mid := (lo + hi) / 2
		var wg sync.WaitGroup
		wg.Go(func() { c.place(&c.hands[1], order[mid:hi]) })
		c.place(&c.hands[0], order[lo:mid])
		wg.Wait()
		c.gather()
	}
}

// order returns the cars, those with the fewest slots to spare first.
func (d *fleetDraft) order() (order []int32) {
	bucket := func(i int32) int {
		e := &d.p.EVs[i]
		spare := float64(e.Last-e.First) + e.FirstFraction - e.EnergyKWh/max(e.MaxKW*fleetHours, 1e-9)
		return bits.Len(uint(max(0, min(15, spare))))
	}
	var start [6]int
	mixed := make([]int32, len(d.p.EVs))
	dice := FleetDice(len(mixed))
	for i := range mixed {
		j := dice.Below(i + 1)
		mixed[i] = mixed[j]
		mixed[j] = int32(i)
		start[bucket(int32(i))+1]++
	}
	for b := 1; b < len(start); b++ {
		start[b] += start[b-1]
	}
	order = make([]int32, len(mixed))
	for _, i := range mixed {
		b := bucket(i)
		order[start[b]] = i
		start[b]++
	}
	return order
}

// steer moves the prices of caps, and of the position, that fill faster or slower than
// the given share.
func (c *fleetCrowd) steer(mu [][]float64, market []float64, share float64) {
	for v, limit := range c.tree.cap {
		for t, k := range limit {
			mu[v][t] = c.mu[v][t]
			if !math.IsInf(k, 1) && mu[v][t] > 1e-6 {
				mu[v][t] = max(0, mu[v][t]+c.pull(v, t, k, share))
			}
		}
	}
	if q := c.p.Position; q != nil {
		for t, p := range c.market {
			market[t] = max(q.Sell[t], min(q.Buy[t], p+c.pull(0, t, q.KWh[t], share)))
		}
	}
}

func (c *fleetCrowd) pull(v, t int, goal, share float64) float64 {
	base := c.base[v][t]
	return c.gain * ((c.load[v][t]-base)/max(goal-base, 1e-3) - share)
}

// deal gives each hand half of the room.
func (c *fleetCrowd) deal() {
	for h := range c.hands {
		for v, limit := range c.tree.keep {
			clear(c.hands[h].took[v])
			for t, k := range limit {
				c.hands[h].room[v][t] = max(0, k-c.load[v][t]) / 2
			}
		}
	}
}

// gather counts what the hands took.
func (c *fleetCrowd) gather() {
	for v := range c.load {
		for t := range c.load[v] {
			c.load[v][t] += c.hands[0].took[v][t] + c.hands[1].took[v][t]
		}
	}
}

// place lets the cars choose.
func (c *fleetCrowd) place(h *fleetHand, cars []int32) {
	for _, i := range cars {
		e, curve := &c.p.EVs[i], &c.f.curves[c.f.of[i]]
		x, left := c.x[c.at[i]:c.at[i+1]], e.EnergyKWh
		node := c.tree.node[e.Group]
		u := e.MaxKW * fleetHours
		for s, q := range x {
			if q > 0 {
				t := int(e.First) + s
				for v := node; v >= 0; v = c.tree.parent[v] {
					h.room[v][t] += q
					h.took[v][t] -= q
				}
				x[s] = 0
			}
		}
		for open := curve.before[e.Last+1] &^ curve.before[e.First]; open != 0 && left > 0; open &= open - 1 {
			t := curve.slot[bits.TrailingZeros64(open)]
			q := min(u, left)
			if t == e.First {
				q = min(u*e.FirstFraction, left)
			}
			for v := node; v >= 0; v = c.tree.parent[v] {
				q = min(q, h.room[v][t])
			}
			if q <= 0 {
				continue
			}
			x[t-e.First] = q
			left -= q
			for v := node; v >= 0; v = c.tree.parent[v] {
				h.room[v][t] -= q
				h.took[v][t] += q
			}
		}
	}
}
