package plan

import (
	"cmp"
	"math"
	"slices"
)

const (
	// fleetWhole is how many cars are solved as one; a larger fleet is a crowd. A battery
	// counts as fleetHeavy cars. Around a position, where every slot is worth much the same
	// to everybody, a crowd comes out worse, and more are solved as one.
	fleetWhole       = 10_000
	fleetWholeTraded = 30_000
	fleetHeavy       = 6
	// fleetSampled is how many cars stand for a crowd when its prices are found, and how
	// many of it are planned anew together. At least fleetSampledNode are of each node.
	fleetSampled       = 1_500
	fleetSampledTraded = 6_000
	fleetSampledNode   = 60
	// fleetGoal is the gap, as a share of the turnover, at which a crowd is done, and
	// fleetBlocks how many blocks it may take to get there. From a gap of fleetFar the next
	// block is twice as large; the largest must close some of the gap, or there is no other.
	fleetGoal   = 1e-4
	fleetBlocks = 12
	fleetFar    = 1e-3
	fleetGain   = 0.95
)

// FleetAnswer is a plan for every asset of a fleet. No cap is exceeded.
type FleetAnswer struct {
	Cost     float64 // pence, as the problem counts it
	Bound    float64 // pence; no plan whatever costs less
	Turnover float64 // pence that change hands, without signs
	Unserved float64 // kWh of need that is not met
	Prices   FleetPrices

	EVs       FleetTakes
	Batteries [][]float64 // kWh drawn from the grid in every slot, negative when discharging
}

// FleetTakes is what every car takes.
type FleetTakes struct {
	at  []uint32
	kwh []float64
}

// Of returns the energies of car i in kWh, the first of them in its slot First.
func (k FleetTakes) Of(i int) []float64 { return k.kwh[k.at[i]:k.at[i+1]] }

// Fleet plans a coupled fleet for the least cost under its caps, with a proven bound. The
// same problem gives the same answer. It fails only on a problem that has a Fault; what
// cannot be met is left unserved at its price.
func Fleet(p *FleetProblem) (FleetAnswer, error) {
	if err := p.Fault(); err != nil {
		return FleetAnswer{}, err
	}
	s := &fleetSolve{p: p, tree: makeFleetTree(p), bound: math.Inf(-1), sampled: fleetSampled}
	s.pricer = makeFleetPricer(p, s.tree)
	whole := fleetWhole
	if p.Position != nil {
		whole, s.sampled = fleetWholeTraded, fleetSampledTraded
	}
	if len(p.EVs)+fleetHeavy*len(p.Batteries) <= whole {
		s.whole()
	} else {
		s.crowd()
	}
	return s.answer(), nil
}

// fleetSolve is one run of Fleet.
type fleetSolve struct {
	p      *FleetProblem
	tree   *fleetTree
	draft  *fleetDraft // the best so far
	pricer *fleetPricer

	sampled int
	bound   float64 // the best so far, and its prices
	market  []float64
	mu      [][]float64
}

// whole solves the fleet as one. Should that ever fail to end near its bound, the fleet is
// improved like a crowd.
func (s *fleetSolve) whole() {
	s.draft = makeFleetDraft(s.p, s.tree)
	all := make([]int32, len(s.p.EVs)+len(s.p.Batteries))
	for i := range all {
		all[i] = int32(i)
	}
	s.prove(s.draft.block(all).prices())
	if s.gap() > fleetFar {
		s.fill()
		s.improve()
	}
}

// crowd plans the fleet at prices that an earlier run or a sample gave, and improves that.
func (s *fleetSolve) crowd() {
	if !s.warm() || s.fill() > fleetFar {
		b := makeFleetBarrier(s.p, s.tree, s.sample())
		b.run(fleetExact)
		s.prove(b.prices())
		s.fill()
	}
	s.improve()
}

// improve plans anew those that came off worst, until the gap is proven small or nothing
// more is won.
func (s *fleetSolve) improve() {
	dice := FleetDice(1)
	for range fleetBlocks {
		gap := s.gap()
		if gap <= fleetGoal {
			return
		}
		s.pricer.set(s.market, s.mu)
		s.prove(s.draft.block(s.worst(&dice)).prices())
		if s.gap() > gap*fleetGain && s.sampled >= fleetWhole {
			return
		}
		if gap > fleetFar {
			s.sampled = min(2*s.sampled, fleetWhole)
		}
	}
}

// gap is how far the draft is above the bound, as a share of the turnover.
func (s *fleetSolve) gap() float64 {
	cost, turnover := s.draft.cost()
	return (cost - s.bound) / max(turnover, 1e-9)
}

// fill lets a crowd choose at the best prices, keeps its plan if it is the best so far,
// and returns the gap.
func (s *fleetSolve) fill() float64 {
	draft := makeFleetDraft(s.p, s.tree)
	draft.crowd(s.pricer, s.market, s.mu)
	if s.draft != nil {
		before, _ := s.draft.cost()
		if after, _ := draft.cost(); after >= before {
			return s.gap()
		}
	}
	s.draft = draft
	return s.gap()
}

// prove keeps the prices if they give a better bound. Caps that cost nothing give one if
// nothing else does.
func (s *fleetSolve) prove(market []float64, mu [][]float64) {
	if bound := s.pricer.bound(market, mu); bound > s.bound {
		s.bound, s.market, s.mu = bound, market, mu
	}
	if s.market == nil {
		market = slices.Clone(s.p.Price)
		if q := s.p.Position; q != nil {
			market = slices.Clone(q.Buy)
		}
		s.market, s.mu = market, fleetGrid(len(s.tree.parent), s.p.Slots)
		s.bound = s.pricer.bound(s.market, s.mu)
	}
}

// warm starts from the prices of an earlier run, if there are any, and reports that. Where
// a cap bound, its price takes up what the price of energy has moved by.
func (s *fleetSolve) warm() bool {
	from := s.p.Start
	if len(from.Market) != s.p.Slots || len(from.Cap) != len(s.p.Groups)+1 {
		return false
	}
	market, mu := slices.Clone(from.Market), fleetGrid(len(s.tree.parent), s.p.Slots)
	copy(mu[0], from.Cap[0])
	for g, v := range s.tree.node[:len(s.p.Groups)] {
		if v > 0 && len(from.Cap[g+1]) == s.p.Slots {
			for t, m := range from.Cap[g+1] {
				mu[v][t] = max(mu[v][t], m)
			}
		}
	}
	for t := range market {
		if q := s.p.Position; q != nil {
			market[t] = max(q.Sell[t], min(q.Buy[t], market[t]))
		} else {
			if mu[0][t] > 0 {
				mu[0][t] -= s.p.Price[t] - market[t]
			}
			market[t] = s.p.Price[t]
		}
		for v := range mu {
			if mu[v][t] = max(0, mu[v][t]); math.IsInf(s.tree.cap[v][t], 1) || math.IsNaN(mu[v][t]) {
				mu[v][t] = 0
			}
		}
	}
	s.prove(market, mu)
	return true
}

// sample picks assets that stand for the fleet. The cars of a node are sorted by class,
// window and need and cut into runs; of each run the car with the most usual need stands
// for all, with their energy.
func (s *fleetSolve) sample() (picks []fleetPick) {
	keys := make([]uint64, len(s.p.EVs))
	count := make([]int, len(s.tree.parent))
	for i := range s.p.EVs {
		e := &s.p.EVs[i]
		v := s.tree.node[e.Group]
		count[v]++
		need := min(31, 2*e.EnergyKWh/max(e.MaxKW*fleetHours, 1e-3)) // in half slots
		keys[i] = uint64(v)<<49 | uint64(s.pricer.of[i]&63)<<43 | uint64(e.First/3)<<38 |
			uint64(e.Last/3)<<33 | uint64(need)<<28 | uint64(i)
	}
	slices.Sort(keys)
	share := float64(s.sampled) / float64(len(s.p.EVs)+fleetHeavy*len(s.p.Batteries))
	for _, n := range count {
		list := keys[:n]
		keys = keys[n:]
		for parts := min(n, max(fleetSampledNode, int(share*float64(n)))); parts > 0; parts-- {
			cut := (len(list) + parts - 1) / parts
			picks = append(picks, s.usual(list[:cut]))
			list = list[cut:]
		}
	}
	batteries := make([][]int32, len(s.tree.parent))
	for i := range s.p.Batteries {
		v := s.tree.node[s.p.Batteries[i].Group]
		batteries[v] = append(batteries[v], int32(len(s.p.EVs)+i))
	}
	for _, list := range batteries {
		n := min(len(list), max(fleetSampledNode/fleetHeavy, int(share*float64(len(list)))))
		for j := range n {
			picks = append(picks, fleetPick{list[j*len(list)/n], float64(len(list)) / float64(n)})
		}
	}
	return picks
}

// usual picks the car of a run whose need is nearest to the mean.
func (s *fleetSolve) usual(run []uint64) fleetPick {
	need := func(k uint64) float64 { return s.p.EVs[k&(1<<28-1)].EnergyKWh }
	sum := 0.0
	for _, k := range run {
		sum += need(k)
	}
	mean := sum / float64(len(run))
	best := run[0]
	for _, k := range run {
		if math.Abs(need(k)-mean) < math.Abs(need(best)-mean) {
			best = k
		}
	}
	if need(best) <= 0 {
		return fleetPick{int32(best & (1<<28 - 1)), float64(len(run))}
	}
	return fleetPick{int32(best & (1<<28 - 1)), sum / need(best)}
}

// worst returns a block to plan anew: the assets that pay most above their best at the
// present prices, and as many others by lot, whose freedom is needed.
func (s *fleetSolve) worst(dice *FleetDice) []int32 {
	list := s.draft.regrets(s.pricer, s.sampled/2)
	weight := func(a int32) int {
		if int(a) >= len(s.p.EVs) {
			return fleetHeavy
		}
		return 1
	}
	var picks []int32
	taken := make(map[int32]bool, s.sampled)
	left := min(s.sampled, len(s.p.EVs)+fleetHeavy*len(s.p.Batteries))
	add := func(a int32) {
		if !taken[a] {
			taken[a] = true
			picks = append(picks, a)
			left -= weight(a)
		}
	}
	for _, a := range list {
		if left <= s.sampled/2 {
			break
		}
		add(a)
	}
	for n := len(s.p.EVs) + len(s.p.Batteries); left > 0; {
		add(int32(dice.Below(n)))
	}
	return picks
}

// answer makes the answer up from the draft.
func (s *fleetSolve) answer() FleetAnswer {
	d := s.draft
	a := FleetAnswer{EVs: FleetTakes{d.at, d.x}, Batteries: d.net}
	a.Cost, a.Turnover = d.cost()
	a.Bound = s.bound
	for i := range s.p.EVs {
		left := s.p.EVs[i].EnergyKWh
		for _, x := range a.EVs.Of(i) {
			left -= x
		}
		a.Unserved += max(0, left)
	}
	a.Prices = FleetPrices{Market: s.market, Cap: fleetGrid(len(s.p.Groups)+1, s.p.Slots)}
	copy(a.Prices.Cap[0], s.mu[0])
	for g, v := range s.tree.node[:len(s.p.Groups)] {
		if v > 0 && (g == 0 || s.p.Groups[g].Parent == 0 || v != s.tree.node[s.p.Groups[g].Parent-1]) {
			copy(a.Prices.Cap[g+1], s.mu[v])
		}
	}
	return a
}

// prices returns the barrier's prices.
func (b *fleetBarrier) prices() (market []float64, mu [][]float64) {
	mu = make([][]float64, len(b.nodes))
	for i := range b.nodes {
		mu[i] = b.nodes[i].mu
	}
	return b.market.price, mu
}

// fleetRegret is how much more than at best an asset pays at the pricer's prices.
type fleetRegret struct {
	asset  int32
	regret float64
}

// fleetWorst keeps the largest regrets, most of them twice as many as it is asked for.
type fleetWorst struct {
	most  int
	floor float64 // no regret up to this is among the largest
	list  []fleetRegret
}

func (w *fleetWorst) add(asset int, regret float64) {
	if regret > w.floor {
		if w.list = append(w.list, fleetRegret{int32(asset), regret}); len(w.list) >= 2*w.most {
			w.cut()
			w.floor = w.list[w.most-1].regret
		}
	}
}

// cut sorts the regrets, the largest first, and keeps the most.
func (w *fleetWorst) cut() {
	slices.SortFunc(w.list, func(a, b fleetRegret) int {
		return cmp.Or(-cmp.Compare(a.regret, b.regret), cmp.Compare(a.asset, b.asset))
	})
	w.list = w.list[:min(w.most, len(w.list))]
}

// regrets returns the assets that pay most above their best at the prices that were set
// last, the worst first.
func (d *fleetDraft) regrets(f *fleetPricer, most int) []int32 {
	var worst [2]fleetWorst
	fleetBoth(func(k int) {
		w := &worst[k]
		w.most, w.floor = most, 1e-6
		from, to := fleetHalf(len(d.p.EVs), k)
		for i := from; i < to; i++ {
			w.add(i, d.carRegret(i, f.curve(i, &f.shards[k].own)))
		}
		from, to = fleetHalf(len(d.p.Batteries), k)
		for i := from; i < to; i++ {
			b := &d.p.Batteries[i]
			prices := f.w[d.tree.node[b.Group]]
			sum := d.batteryCost(i) - f.shards[k].cell.plan(b, prices, f.shards[k].y)
			for t, q := range d.net[i] {
				sum += q * prices[t]
			}
			w.add(len(d.p.EVs)+i, sum)
		}
	})
	all := fleetWorst{most: most, list: append(worst[0].list, worst[1].list...)}
	all.cut()
	assets := make([]int32, len(all.list))
	for i, r := range all.list {
		assets[i] = r.asset
	}
	return assets
}

func (d *fleetDraft) carRegret(i int, curve *fleetCurve) float64 {
	e := &d.p.EVs[i]
	k := curve.choose(e)
	var load [FleetSlots]float64
	k.add(e, &load)
	sum, left := 0.0, e.EnergyKWh-k.short
	for t, x := range d.x[d.at[i]:d.at[i+1]] {
		s := int(e.First) + t
		sum += (x - load[s]) * curve.price[s]
		left -= x
	}
	return sum + left*d.p.Unserved
}
