package plan

import "math"

// FleetPrices are the prices that coordinate a fleet. Any such prices prove a bound.
type FleetPrices struct {
	Market []float64   // p/kWh of energy in every slot; with a position, between its selling and buying price
	Cap    [][]float64 // p/kWh of room under the fleet's cap, then under every group's
}

// fleetPricer answers prices with the load of the whole fleet and a bound.
type fleetPricer struct {
	p       *FleetProblem
	tree    *fleetTree
	classes []fleetClass
	of      []uint32 // class of a car
	curves  []fleetCurve
	w       [][]float64 // price at a node
	load    [][]float64 // of a node's own assets
	shards  [2]fleetPricerShard
}

type fleetPricerShard struct {
	load    [][FleetSlots]float64 // of a class
	battery [][]float64           // of a node
	cost    float64               // of batteries, and of what is unserved
	cell    fleetCell
	y       []float64
}

func makeFleetPricer(p *FleetProblem, tree *fleetTree) *fleetPricer {
	f := &fleetPricer{p: p, tree: tree}
	f.classes, f.of = fleetClasses(p, tree)
	f.curves = make([]fleetCurve, len(f.classes))
	f.w, f.load = fleetGrid(len(tree.parent), p.Slots), fleetGrid(len(tree.parent), p.Slots)
	for k := range f.shards {
		s := &f.shards[k]
		s.load = make([][FleetSlots]float64, len(f.classes))
		s.battery = fleetGrid(len(tree.parent), p.Slots)
		s.y = make([]float64, p.Slots)
	}
	return f
}

func fleetGrid(rows, cols int) [][]float64 {
	all, grid := make([]float64, rows*cols), make([][]float64, rows)
	for i := range grid {
		grid[i] = all[i*cols : (i+1)*cols : (i+1)*cols]
	}
	return grid
}

// set adds the prices up from the fleet down to the nodes and sorts every class's curve.
// mu holds a row for each node of the tree.
func (f *fleetPricer) set(market []float64, mu [][]float64) {
	for v, parent := range f.tree.parent {
		from := market
		if parent >= 0 {
			from = f.w[parent]
		}
		for t, p := range from {
			f.w[v][t] = p + mu[v][t]
		}
	}
	for c := range f.classes {
		f.curves[c].sort(&f.classes[c], f.w[f.classes[c].node], f.p.Unserved)
	}
}

// bound sets the prices and returns a proven lower bound on the cost of the fleet: the
// sum of what every asset would pay at least at these prices, less the value of the caps
// and of the position. Weak duality: for every feasible plan, each asset pays at least its
// part, a cap's price times its load is at most that times the cap, and a price between
// selling and buying never overstates what a deviation costs.
func (f *fleetPricer) bound(market []float64, mu [][]float64) float64 {
	f.set(market, mu)
	fleetBoth(f.answer)
	sum := f.shards[0].cost + f.shards[1].cost
	for v := range f.load {
		clear(f.load[v])
	}
	for c := range f.classes {
		node := f.classes[c].node
		for t := range f.p.Slots {
			l := f.shards[0].load[c][t] + f.shards[1].load[c][t]
			f.load[node][t] += l
			sum += l * f.curves[c].price[t]
		}
	}
	for v := range f.load {
		for t := range f.load[v] {
			f.load[v][t] += f.shards[0].battery[v][t] + f.shards[1].battery[v][t]
			if c := f.tree.cap[v][t]; !math.IsInf(c, 1) {
				sum -= mu[v][t] * c
			}
		}
	}
	if q := f.p.Position; q != nil {
		for t, p := range market {
			sum -= p * q.KWh[t]
		}
	}
	return sum
}

// answer plans one shard's assets at the prices.
func (f *fleetPricer) answer(k int) {
	s := &f.shards[k]
	clear(s.load)
	s.cost = 0
	from, to := fleetHalf(len(f.p.EVs), k)
	for i := from; i < to; i++ {
		e := &f.p.EVs[i]
		c := f.of[i]
		choice := f.curves[c].choose(e)
		choice.add(e, &s.load[c])
		s.cost += choice.short * f.p.Unserved
	}
	for v := range s.battery {
		clear(s.battery[v])
	}
	from, to = fleetHalf(len(f.p.Batteries), k)
	for i := from; i < to; i++ {
		b := &f.p.Batteries[i]
		v := f.tree.node[b.Group]
		s.cost += s.cell.plan(b, f.w[v], s.y)
		for t, y := range s.y {
			s.battery[v][t] += b.net(y)
		}
	}
}
