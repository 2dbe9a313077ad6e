package fleet

import (
	"math"
)

// Prices coordinate a fleet. Any prices prove a bound.
type Prices struct {
	// p/kWh of energy in every slot; with a position, between its selling and buying price
	Market []float64
	// p/kWh of headroom under the fleet's cap, then under every group's
	Cap [][]float64
}

// pricer computes the load of the whole fleet at prices, and a bound.
type pricer struct {
	p       *Problem
	tree    *tree
	classes []class
	classOf []uint32 // class of a car
	curves  []curve
	w       [][]float64 // price at a node
	load    [][]float64 // of a node's own assets
	shards  [2]pricerShard

	// of setFor: the number of calls, when each class was sorted, and the classes to sort
	sorted   int
	sortedAt []int
	due      []uint32
}

type pricerShard struct {
	load [][MaxSlots]float64 // of a class
	// of a node: its batteries, and its cars without a class
	rest [][]float64
	cost float64 // of those, and of what is unserved
	cell cell
	y    []float64
	own  curve // of a car without a class
}

func newPricer(p *Problem, tree *tree) *pricer {
	f := &pricer{p: p, tree: tree}
	f.classes, f.classOf = classesOf(p, tree)
	f.curves = make([]curve, len(f.classes))
	f.sortedAt = make([]int, len(f.classes))
	f.w, f.load = grid(len(tree.parent), p.Slots), grid(len(tree.parent), p.Slots)

	for k := range f.shards {
		s := &f.shards[k]
		s.load = make([][MaxSlots]float64, len(f.classes))
		s.rest = grid(len(tree.parent), p.Slots)
		s.y = make([]float64, p.Slots)
	}

	return f
}

func grid(rows, cols int) [][]float64 {
	all, grid := make([]float64, rows*cols), make([][]float64, rows)
	for i := range grid {
		grid[i] = all[i*cols : (i+1)*cols : (i+1)*cols]
	}

	return grid
}

// set adds the prices up from the fleet down to the nodes and sorts every class's curve.
// mu holds a row for each node of the tree.
func (f *pricer) set(market []float64, mu [][]float64) {
	f.addUp(market, mu)
	for c := range f.classes {
		f.sortCurve(uint32(c))
	}
}

// setFor is set, but it only sorts the curves of some cars. It is for few cars in many nodes.
func (f *pricer) setFor(cars []int32, market []float64, mu [][]float64) {
	f.addUp(market, mu)
	f.sorted++
	f.due = f.due[:0]

	for _, i := range cars {
		if c := f.classOf[i]; c != noClass && f.sortedAt[c] != f.sorted {
			f.sortedAt[c] = f.sorted
			f.due = append(f.due, c)
		}
	}

	inParallel(func(k int) {
		from, to := half(len(f.due), k)
		for _, c := range f.due[from:to] {
			f.sortCurve(c)
		}
	})
}

func (f *pricer) sortCurve(c uint32) {
	f.curves[c].sort(&f.classes[c], f.w[f.classes[c].node], f.p.Unserved)
}

// addUp adds the prices up from the fleet down to the nodes.
func (f *pricer) addUp(market []float64, mu [][]float64) {
	for v, parent := range f.tree.parent {
		from := market
		if parent >= 0 {
			from = f.w[parent]
		}

		for t, p := range from {
			f.w[v][t] = p + mu[v][t]
		}
	}
}

// bound sets the prices and returns a proven lower bound on the cost of the fleet: the least
// total payment of all assets at these prices, minus the value of the caps and of the
// position. It is valid by weak duality. In every feasible plan, each asset pays at least its
// part. A cap's price times the load is at most that price times the cap. A price between the
// selling and the buying price never overstates the cost of a deviation.
func (f *pricer) bound(market []float64, mu [][]float64) float64 {
	f.set(market, mu)
	inParallel(f.answer)
	sum, size := 0.0, 0.0 // of the terms, and of what they are without signs
	count := func(term float64) {
		sum += term
		size += math.Abs(term)
	}

	count(f.shards[0].cost)
	count(f.shards[1].cost)
	f.sumClasses(count)

	for v := range f.load {
		for t := range f.load[v] {
			f.load[v][t] += f.shards[0].rest[v][t] + f.shards[1].rest[v][t]
			if c := f.tree.cap[v][t]; !math.IsInf(c, 1) {
				count(-mu[v][t] * c)
			}
		}
	}

	if q := f.p.Position; q != nil {
		for t, p := range market {
			count(-p * q.KWh[t])
		}
	}

	return sum - rounding*size
}

// sumClasses adds up the energy of each class's cars, by node, and adds its cost.
func (f *pricer) sumClasses(count func(term float64)) {
	for v := range f.load {
		clear(f.load[v])
	}

	for c := range f.classes {
		node := f.classes[c].node
		for t := range f.p.Slots {
			l := f.shards[0].load[c][t] + f.shards[1].load[c][t]
			f.load[node][t] += l
			count(l * f.curves[c].price[t])
		}
	}
}

// rounding is more than the relative error of the sums.
const rounding = 1e-11

// curve returns the car's curve at the prices that were set last: that of its class, or own,
// sorted for it.
func (f *pricer) curve(i int, own *curve) *curve {
	if c := f.classOf[i]; c != noClass {
		return &f.curves[c]
	}
	e := &f.p.EVs[i]
	own.sort(
		&class{adder: e.PeakAdder, peak: e.Peak},
		f.w[f.tree.node[e.Group]],
		f.p.Unserved,
	)

	return own
}

// answer plans one shard's assets at the prices.
func (f *pricer) answer(k int) {
	s := &f.shards[k]
	clear(s.load)
	for v := range s.rest {
		clear(s.rest[v])
	}

	s.cost = 0
	from, to := half(len(f.p.EVs), k)
	for i := from; i < to; i++ {
		e := &f.p.EVs[i]
		curve := f.curve(i, &s.own)
		choice := curve.choose(e)
		s.cost += choice.short * f.p.Unserved
		if c := f.classOf[i]; c != noClass {
			choice.add(e, &s.load[c])
			continue
		}

		var load [MaxSlots]float64
		choice.add(e, &load)
		for t, r := 0, s.rest[f.tree.node[e.Group]]; t < len(r); t++ {
			r[t] += load[t]
			s.cost += load[t] * curve.price[t]
		}
	}

	f.answerBatteries(s, k)
}

// answerBatteries plans half k of the batteries at the prices.
func (f *pricer) answerBatteries(s *pricerShard, k int) {
	from, to := half(len(f.p.Batteries), k)
	for i := from; i < to; i++ {
		b := &f.p.Batteries[i]
		v := f.tree.node[b.Group]
		s.cost += s.cell.plan(b, f.w[v], s.y)
		for t, y := range s.y {
			s.rest[v][t] += b.net(y)
		}
	}
}
