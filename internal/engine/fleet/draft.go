package fleet

import (
	"math"
	"sync"

	"flexd/internal/flex"
)

// draft is an unfinished plan: the energies of every asset, and the resulting loads.
type draft struct {
	p    *Problem
	tree *tree
	at   []uint32  // car i has the slots First to Last in x[at[i]:at[i+1]]
	x    []float64 // kWh
	net  [][]float64
	load [][]float64 // of every node, groups within it included
}

func newDraft(p *Problem, tree *tree) *draft {
	d := &draft{
		p:    p,
		tree: tree,
		at:   make([]uint32, len(p.EVs)+1),
	}

	n := uint32(0)
	for i := range p.EVs {
		d.at[i] = n
		n += uint32(p.EVs[i].Last-p.EVs[i].First) + 1
	}

	d.at[len(p.EVs)] = n
	d.x = make([]float64, n)
	d.net = grid(len(p.Batteries), p.Slots)
	d.load = grid(len(tree.parent), p.Slots)

	return d
}

// carCost returns what car i pays in addition to the energy: adders and unserved need.
func (d *draft) carCost(i int) float64 {
	e := &d.p.EVs[i]
	remaining := e.EnergyKWh

	var cost float64
	for t, x := range d.x[d.at[i]:d.at[i+1]] {
		remaining -= x
		cost += x * e.adder(int(e.First)+t)
	}

	return cost + max(remaining, 0)*d.p.Unserved
}

// batteryCost returns battery i's wear minus the value of its stored energy at the end.
func (d *draft) batteryCost(i int) float64 {
	b := &d.p.Batteries[i]
	stored := b.InitKWh

	var cost float64
	for _, q := range d.net[i] {
		if q > 0 {
			stored += q * b.EffCharge
		} else {
			stored += q / b.EffDischarge
			cost -= q * b.Wear
		}
	}

	return cost - b.Terminal*stored
}

// partCost returns the cost of the energy and of the given assets.
func (d *draft) partCost(assets []int32) float64 {
	var cost float64
	for _, a := range assets {
		if i := int(a) - len(d.p.EVs); i >= 0 {
			cost += d.batteryCost(i)
		} else {
			cost += d.carCost(int(a))
		}
	}

	for t, l := range d.load[0] {
		cost += d.p.energyCost(t, l)
	}

	return cost
}

// cost returns the cost of the draft, and the turnover: the sum of the absolute payments.
func (d *draft) cost() (cost, turnover float64) {
	var part [2]float64
	inParallel(func(k int) {
		sum := 0.0
		from, to := half(len(d.p.EVs), k)
		for i := from; i < to; i++ {
			sum += d.carCost(i)
		}
		part[k] = sum
	})

	cost = part[0] + part[1]
	turnover = cost
	for i := range d.p.Batteries {
		cost += d.batteryCost(i)
	}

	for t, l := range d.load[0] {
		m := d.p.energyCost(t, l)
		cost += m
		turnover += math.Abs(m)
	}

	return cost, turnover
}

// inParallel runs f for two halves of the work at the same time.
func inParallel(f func(k int)) {
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() {
		defer flex.Recover(&failed)
		f(1)
	})

	f(0)
	wg.Wait()

	if failed != nil { // as if it had been done here: who asked for the plan makes an error of it
		panic(failed)
	}
}

// half returns the range of n assets for half k.
func half(n, k int) (from, to int) { return n * k / 2, n * (k + 1) / 2 }

// energyCost returns the cost of a load of the whole fleet in slot t.
func (p *Problem) energyCost(t int, load float64) float64 {
	q := p.Position
	if q == nil {
		return load * p.Price[t]
	}

	if load > q.KWh[t] {
		return (load - q.KWh[t]) * q.Buy[t]
	}

	return (load - q.KWh[t]) * q.Sell[t]
}
