package fleet

import (
	"cmp"
	"slices"

	"flexd/internal/engine/random"
)

// pick is an asset that stands for several alike: a car by its index, a battery by
// its own after that of all cars.
type pick struct {
	asset  int32
	weight float64
}

// tieBreak is how many pence the barrier adds to a slot of a car, by chance of the car
// and the slot, so that cars split ties by taking whole slots.
const tieBreak = 1e-4

// hash is a number in [0, 1) that only its two arguments decide.
func hash(a, b int) float64 {
	d := random.Source(uint64(a)<<20 ^ uint64(b))
	return d.Between(0, 1)
}

// newBarrier sets the method up for some of the problem's assets, each with its
// weight, started inside all bounds. It sorts the picks: cars before batteries, either in
// the order of their nodes.
func newBarrier(p *Problem, tree *tree, picks []pick) *barrier {
	slices.SortStableFunc(picks, func(a, b pick) int {
		ca, cb := int(a.asset) < len(p.EVs), int(b.asset) < len(p.EVs)
		if ca != cb && ca {
			return -1
		} else if ca != cb {
			return 1
		}

		return cmp.Compare(tree.of(p, a.asset), tree.of(p, b.asset))
	})

	b := &barrier{slots: p.Slots}
	total := 0
	for _, k := range picks {
		if int(k.asset) < len(p.EVs) {
			e := &p.EVs[k.asset]
			total += int(e.Last-e.First) + 2
		} else {
			total += 3 * p.Slots
		}
	}

	b.v = newVariables(total)
	b.makeNodes(p, tree)
	at := 0

	for _, k := range picks {
		node := int(tree.of(p, k.asset))
		if int(k.asset) < len(p.EVs) {
			at += b.addEV(p, k, at, node)
		} else {
			at += b.addBattery(&p.Batteries[int(k.asset)-len(p.EVs)], k.weight, at, node)
		}
	}

	b.split()
	b.measure()
	b.startRows()
	b.setPrices()
	b.startDuals()

	return b
}

func (b *barrier) makeNodes(p *Problem, tree *tree) {
	n := p.Slots
	b.nodes = make([]node, len(tree.parent))
	for i := range b.nodes {
		all := make([]float64, 14*n)
		cut := func() []float64 { s := all[:n:n]; all = all[n:]; return s }
		b.nodes[i] = node{
			parent: int(tree.parent[i]), cap: cut(),
			slack: cut(), mu: cut(), dslack: cut(), dmu: cut(), load: cut(), w: cut(), dw: cut(),
			theta: cut(), root: cut(), rho: cut(), r: cut(), response: cut(), work: cut(),
			m: newMatrix(n), inner: newMatrix(n), raw: newMatrix(n), spare: newMatrix(n),
		}

		for t, c := range tree.cap[i] { // a cap of zero has no inside
			b.nodes[i].cap[t] = max(c, 1e-6)
		}
	}

	all := make([]float64, 8*n)
	cut := func() []float64 { s := all[:n:n]; all = all[n:]; return s }
	b.market = market{price: cut(), up: cut(), down: cut(), dprice: cut(), dup: cut(), ddown: cut(), theta: cut(), rho: cut()}
	if q := p.Position; q != nil {
		b.market.traded = true
		b.market.kwh = q.KWh
		b.market.buy = q.Buy
		b.market.sell = q.Sell
		copy(b.market.price, q.Buy)
	} else {
		copy(b.market.price, p.Price)
	}
}

// addEV adds a car that stands for weight alike and returns how many variables it has.
func (b *barrier) addEV(p *Problem, k pick, at, node int) int {
	e := &p.EVs[k.asset]
	v, slots := &b.v, int(e.Last-e.First)+1
	need, room := max(e.EnergyKWh*k.weight, 1e-6), 0.0

	for i := range slots {
		t := int(e.First) + i
		v.u[at+i] = max(e.most(t)*k.weight, 1e-7)
		v.c[at+i] = e.adder(t) + tieBreak*hash(int(k.asset), t)
		room += v.u[at+i]
	}

	rest := at + slots
	v.u[rest] = 2*need + 1
	v.c[rest] = p.Unserved
	v.x[rest] = need
	share := min(0.5, 0.9*need/room)

	for j := at; j < rest; j++ {
		v.x[j] = share * v.u[j]
		v.x[rest] -= v.x[j]
	}

	b.evs = append(b.evs, barrierEV{at: at, n: slots, first: int(e.First), node: node, need: need})
	return slots + 1
}

// addBattery adds a battery that stands for weight alike.
func (b *barrier) addBattery(e *Battery, weight float64, at, node int) int {
	v, n := &b.v, b.slots
	for t := range n {
		for k, u := range [3]float64{e.ChargeKW * SlotHours, e.DischargeKW * SlotHours, e.CapacityKWh} {
			v.u[at+k*n+t] = max(u*weight, 1e-6)
			v.x[at+k*n+t] = v.u[at+k*n+t] / 2
		}
		v.c[at+n+t] = e.Wear
	}

	v.c[at+3*n-1] = -e.Terminal
	all := make([]float64, 5*n)
	cut := func() []float64 { s := all[:n:n]; all = all[n:]; return s }
	b.batteries = append(b.batteries, barrierBattery{
		at: at, node: node, in: e.EffCharge, out: 1 / e.EffDischarge, init: e.InitKWh * weight,
		nu: cut(), dnu: cut(), diag: cut(), off: cut(), gain: cut(),
	})

	return 3 * n
}

// startDuals sets a value of energy for every asset and multipliers that fit it exactly.
func (b *barrier) startDuals() {
	v, scale := &b.v, b.scale()
	fit := func(j int, reduced float64) {
		v.zl[j], v.zu[j] = max(reduced, 0)+scale, max(-reduced, 0)+scale
	}

	var sorted []float64
	for i := range b.evs {
		e := &b.evs[i]
		w := b.nodes[e.node].w[e.first : e.first+e.n]
		sorted = sorted[:0]

		for t := range w {
			sorted = append(sorted, w[t]+v.c[e.at+t])
		}
		slices.Sort(sorted)
		e.nu = sorted[e.n/2]
		for t := range w {
			fit(e.at+t, v.c[e.at+t]+w[t]-e.nu)
		}

		fit(e.at+e.n, v.c[e.at+e.n]-e.nu)
	}

	n := b.slots
	for i := range b.batteries {
		e := &b.batteries[i]
		w := b.nodes[e.node].w
		for t := range n {
			e.nu[t] = -v.c[e.at+3*n-1]
		}

		for t := range n {
			fit(e.at+t, w[t]-e.in*e.nu[t])
			fit(e.at+n+t, v.c[e.at+n+t]-w[t]+e.out*e.nu[t])
			fit(e.at+2*n+t, 0) // the value is the same in all slots, and the terminal one at the end
		}
	}
}
