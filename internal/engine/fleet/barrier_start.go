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
	sortPicks(p, tree, picks)
	b := &barrier{slots: p.Slots}
	b.v = newVariables(countVariables(p, picks))
	b.makeNodes(tree)
	b.makeMarket(p)

	at := 0
	for _, k := range picks {
		node := int(tree.nodeOf(p, k.asset))
		if int(k.asset) < len(p.EVs) {
			at += b.addEV(p, k, at, node)
		} else {
			at += b.addBattery(
				&p.Batteries[int(k.asset)-len(p.EVs)],
				k.weight,
				at,
				node,
			)
		}
	}

	b.chooseElimination()
	b.split()
	b.measure()
	b.startRows()
	b.setPrices()
	b.startDuals()

	return b
}

// sortPicks sorts cars before batteries, and either by their nodes.
func sortPicks(p *Problem, tree *tree, picks []pick) {
	slices.SortStableFunc(picks, func(a, b pick) int {
		firstIsCar, secondIsCar := int(a.asset) < len(p.EVs), int(b.asset) < len(p.EVs)
		if firstIsCar != secondIsCar {
			if firstIsCar {
				return -1
			}
			return 1
		}

		return cmp.Compare(tree.nodeOf(p, a.asset), tree.nodeOf(p, b.asset))
	})
}

// countVariables counts a variable for each slot of a car and its unserved need, and three
// for each slot of a battery.
func countVariables(p *Problem, picks []pick) int {
	var total int
	for _, k := range picks {
		if int(k.asset) < len(p.EVs) {
			e := &p.EVs[k.asset]
			total += int(e.Last-e.First) + 2
		} else {
			total += 3 * p.Slots
		}
	}

	return total
}

// makeNodes makes a node of each cap of the tree.
func (b *barrier) makeNodes(tree *tree) {
	n := b.slots
	b.nodes = make([]node, len(tree.parent))
	for i := range b.nodes {
		a := newArena(14, n)
		b.nodes[i] = node{
			parent:   int(tree.parent[i]),
			leaf:     !slices.Contains(tree.parent[i+1:], int32(i)),
			cap:      a.row(),
			slack:    a.row(),
			mu:       a.row(),
			dslack:   a.row(),
			dmu:      a.row(),
			load:     a.row(),
			w:        a.row(),
			dw:       a.row(),
			theta:    a.row(),
			root:     a.row(),
			rho:      a.row(),
			r:        a.row(),
			response: a.row(),
			work:     a.row(),
			m:        newMatrix(n),
		}

		for t, c := range tree.cap[i] { // a cap of zero has no inside
			b.nodes[i].cap[t] = max(c, 1e-6)
		}
	}
}

// chooseElimination has a group of few cars be solved car by car, and gives every other node the matrices that it is solved
// with slot by slot.
func (b *barrier) chooseElimination() {
	from := make([]int, len(b.nodes)+1) // of each node's cars, one behind the other
	for i := range b.evs {
		from[b.evs[i].node+1]++
	}
	for i := range b.nodes {
		from[i+1] += from[i]
	}

	batteries := make([]bool, len(b.nodes))
	for i := range b.batteries {
		batteries[b.batteries[i].node] = true
	}

	for i := range b.nodes {
		v := &b.nodes[i]
		cars := b.evs[from[i]:from[i+1]]
		if v.leaf && !batteries[i] && len(cars) <= b.slots {
			v.cars = newFewCars(cars, b.v.inv, b.slots)
			continue
		}

		v.inner = newMatrix(b.slots)
		v.raw = newMatrix(b.slots)
	}
}

// makeMarket takes over the price of energy, or the position.
func (b *barrier) makeMarket(p *Problem) {
	a := newArena(8, b.slots)
	b.market = market{
		price:  a.row(),
		up:     a.row(),
		down:   a.row(),
		dprice: a.row(),
		dup:    a.row(),
		ddown:  a.row(),
		theta:  a.row(),
		rho:    a.row(),
	}

	if p.Position == nil {
		copy(b.market.price, p.Price)
		return
	}

	b.market.traded = true
	b.market.kwh = p.Position.KWh
	b.market.buy = p.Position.Buy
	b.market.sell = p.Position.Sell
	copy(b.market.price, p.Position.Buy)
}

// startEV gives a car's variables the values that the search starts at: each slot the same share
// of its headroom, and what is then missing of the need to the last variable.
func (b *barrier) startEV(at, rest int, need, headroom float64) {
	v := &b.v
	v.x[rest] = need
	share := min(0.5, 0.9*need/headroom)

	for j := at; j < rest; j++ {
		v.x[j] = share * v.u[j]
		v.x[rest] -= v.x[j]
	}
}

// addEV adds a car that stands for weight alike and returns how many variables it has.
func (b *barrier) addEV(p *Problem, k pick, at, node int) int {
	e := &p.EVs[k.asset]
	v, slots := &b.v, int(e.Last-e.First)+1
	need, headroom := max(e.EnergyKWh*k.weight, 1e-6), 0.0

	for i := range slots {
		t := int(e.First) + i
		v.u[at+i] = max(e.most(t)*k.weight, 1e-7)
		v.c[at+i] = e.adder(t) + tieBreak*hash(int(k.asset), t)
		headroom += v.u[at+i]
	}

	rest := at + slots
	v.u[rest] = 2*need + 1
	v.c[rest] = p.Unserved
	b.startEV(at, rest, need, headroom)

	b.evs = append(b.evs, barrierEV{
		at:    at,
		n:     slots,
		first: int(e.First),
		node:  node,
		need:  need,
	})

	return slots + 1
}

// addBattery adds a battery that stands for weight alike.
func (b *barrier) addBattery(e *Battery, weight float64, at, node int) int {
	v, n := &b.v, b.slots
	for t := range n {
		for k, u := range [3]float64{
			e.ChargeKW * SlotHours,
			e.DischargeKW * SlotHours,
			e.CapacityKWh,
		} {
			v.u[at+k*n+t] = max(u*weight, 1e-6)
			v.x[at+k*n+t] = v.u[at+k*n+t] / 2
		}

		v.c[at+n+t] = e.Wear
	}

	v.c[at+3*n-1] = -e.Terminal
	a := newArena(5, n)
	b.batteries = append(b.batteries, barrierBattery{
		at:   at,
		node: node,
		in:   e.EffCharge,
		out:  1 / e.EffDischarge,
		init: e.InitKWh * weight,
		nu:   a.row(),
		dnu:  a.row(),
		diag: a.row(),
		off:  a.row(),
		gain: a.row(),
	})

	return 3 * n
}

// startDuals sets a value of energy for every asset and multipliers that fit it exactly.
func (b *barrier) startDuals() {
	scale := b.scale()
	var costs []float64
	for i := range b.evs {
		e := &b.evs[i]
		w := b.nodes[e.node].w[e.first : e.first+e.n]
		costs = e.startDuals(&b.v, w, scale, costs)
	}

	for i := range b.batteries {
		e := &b.batteries[i]
		e.startDuals(&b.v, b.nodes[e.node].w, scale)
	}
}

// fit sets the multipliers of variable j so that their difference is its reduced cost.
func (v *variables) fit(j int, reduced, scale float64) {
	v.zl[j] = max(reduced, 0) + scale
	v.zu[j] = max(-reduced, 0) + scale
}

// startDuals values a car's energy at the median of its costs at the prices w. It returns
// the memory that it sorted them in.
func (e *barrierEV) startDuals(
	v *variables,
	w []float64,
	scale float64,
	costs []float64,
) []float64 {
	costs = costs[:0]
	for t := range w {
		costs = append(costs, w[t]+v.c[e.at+t])
	}

	slices.Sort(costs)
	e.nu = costs[e.n/2]

	for t := range w {
		v.fit(e.at+t, v.c[e.at+t]+w[t]-e.nu, scale)
	}
	v.fit(e.at+e.n, v.c[e.at+e.n]-e.nu, scale)

	return costs
}

// startDuals values a battery's energy in all slots at what it is worth at the end.
func (e *barrierBattery) startDuals(v *variables, w []float64, scale float64) {
	n := len(w)
	for t := range n {
		e.nu[t] = -v.c[e.at+3*n-1]
	}

	for t := range n {
		v.fit(e.at+t, w[t]-e.in*e.nu[t], scale)
		v.fit(e.at+n+t, v.c[e.at+n+t]-w[t]+e.out*e.nu[t], scale)
		// the value is the same in all slots, and the terminal one at the end
		v.fit(e.at+2*n+t, 0, scale)
	}
}
