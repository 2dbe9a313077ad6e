package fleet

import (
	"cmp"
	"math"
	"slices"

	"flexd/internal/engine/random"
)

const (
	// wholeMost is the most cars that are solved as one problem. A battery counts as
	// batteryWeight cars. With a position, where every slot has a similar value for everybody,
	// the method for large fleets is worse, so that more cars are solved as one.
	wholeMost       = 10_000
	wholeMostTraded = 30_000
	batteryWeight   = 6
	// sampleSize is the number of cars that represent a large fleet when its prices are
	// computed, and the number that is planned again together. Each node has at least
	// sampleSizeNode of them; with many nodes there are fewer, about sampleSizeNodes in total.
	sampleSize       = 1_500
	sampleSizeTraded = 6_000
	sampleSizeNode   = 60
	sampleSizeNodes  = 10_000
	// sampleGap is the gap, relative to the turnover, at which the barrier stops on a sample.
	// The sample itself is no more precise.
	sampleGap = 1e-5
	// goalGap is the gap, relative to the turnover, at which a large fleet is finished, and
	// goalGapNodes the same with more than manyNodes caps, where each block costs as much as
	// the whole sample. maxBlocks is the most blocks for that. Above a gap of farGap the next
	// block is twice as large. If the largest block does not reduce the gap, there is no
	// other.
	goalGap      = 1e-4
	goalGapNodes = 5e-4
	manyNodes    = sampleSizeNodes / sampleSizeNode
	maxBlocks    = 12
	farGap       = 1e-3
	minGain      = 0.95
)

// Plan is a plan for every asset of a fleet. No cap is exceeded.
type Plan struct {
	Cost     float64 // pence, as the problem counts it
	Bound    float64 // pence; no plan costs less
	Turnover float64 // sum of absolute payments in pence
	Unserved float64 // kWh of need that is not met
	Prices   Prices

	EVs Energies
	// kWh drawn from the grid in every slot, negative when discharging
	Batteries [][]float64
}

// Energies has the energies of every car.
type Energies struct {
	at  []uint32
	kwh []float64
}

// Cars returns the number of cars.
func (k Energies) Cars() int { return len(k.at) - 1 }

// Of returns the energies of car i in kWh, the first of them in its slot First.
func (k Energies) Of(i int) []float64 { return k.kwh[k.at[i]:k.at[i+1]] }

// Solve plans a coupled fleet for the least cost under its caps, with a proven bound. The same
// problem gives the same answer. It only fails for a problem that has a Fault. Need that
// cannot be met is left unserved at its price.
func Solve(p *Problem) (Plan, error) {
	if err := p.Fault(); err != nil {
		return Plan{}, err
	}
	s := &solver{
		p:       p,
		tree:    newTree(p),
		bound:   math.Inf(-1),
		sampled: sampleSize,
	}

	s.pricer = newPricer(p, s.tree)
	wholeLimit := wholeMost
	if p.Position != nil {
		wholeLimit, s.sampled = wholeMostTraded, sampleSizeTraded
	}

	if len(p.EVs)+batteryWeight*len(p.Batteries) <= wholeLimit {
		s.solveWhole()
	} else {
		s.solveLarge()
	}

	return s.answer(), nil
}

// solver is one run of Solve.
type solver struct {
	p      *Problem
	tree   *tree
	best   *draft // the best so far
	pricer *pricer

	sampled int
	bound   float64 // the best so far, and its prices
	market  []float64
	mu      [][]float64
}

// solveWhole solves the fleet as one problem. If the result is not near its bound, the fleet
// is improved like a large fleet.
func (s *solver) solveWhole() {
	s.best = newDraft(s.p, s.tree)
	all := make([]int32, len(s.p.EVs)+len(s.p.Batteries))
	for i := range all {
		all[i] = int32(i)
	}

	s.prove(s.best.block(all).prices())
	if s.gap() > farGap {
		s.fill()
		s.improve()
	}
}

// solveLarge plans the fleet at prices of an earlier run or a sample, and improves the plan.
func (s *solver) solveLarge() {
	if !s.warm() || s.fill() > farGap {
		b := newBarrier(s.p, s.tree, s.sample())
		b.run(sampleGap)
		s.prove(b.prices())
		s.fill()
	}

	s.improve()
}

// improve plans the assets with the worst results again, until the gap is proven small or does
// not decrease.
func (s *solver) improve() {
	source := random.Source(1)
	goal := goalGap
	if len(s.tree.parent) > manyNodes {
		goal = goalGapNodes
	}

	for range maxBlocks {
		gap := s.gap()
		if gap <= goal {
			return
		}

		s.pricer.set(s.market, s.mu)
		s.prove(s.best.block(s.worst(&source)).prices())
		if s.gap() > gap*minGain && s.sampled >= wholeMost {
			return
		}
		if gap > farGap {
			s.sampled = min(2*s.sampled, wholeMost)
		}
	}
}

// gap returns the distance of the draft from the bound, relative to the turnover.
func (s *solver) gap() float64 {
	cost, turnover := s.best.cost()
	return (cost - s.bound) / max(turnover, 1e-9)
}

// fill lets a large fleet choose at the best prices, stores the plan if it is the best so far,
// and returns the gap.
func (s *solver) fill() float64 {
	draft := newDraft(s.p, s.tree)
	draft.fillAtPrices(s.pricer, s.market, s.mu)
	if s.best != nil {
		before, _ := s.best.cost()
		if after, _ := draft.cost(); after >= before {
			return s.gap()
		}
	}

	s.best = draft

	return s.gap()
}

// prove stores the prices if they give a better bound. If no other prices do, free caps give
// one.
func (s *solver) prove(market []float64, mu [][]float64) {
	if bound := s.pricer.bound(market, mu); bound > s.bound {
		s.bound = bound
		s.market = market
		s.mu = mu
	}

	if s.market == nil {
		market = slices.Clone(s.p.Price)
		if q := s.p.Position; q != nil {
			market = slices.Clone(q.Buy)
		}
		s.market, s.mu = market, grid(len(s.tree.parent), s.p.Slots)
		s.bound = s.pricer.bound(s.market, s.mu)
	}
}

// startCaps returns the prices of caps of an earlier run, by node.
func (s *solver) startCaps() [][]float64 {
	from := s.p.Start
	mu := grid(len(s.tree.parent), s.p.Slots)
	copy(mu[0], from.Cap[0])

	for g, v := range s.tree.node[:len(s.p.Groups)] {
		if v > 0 && len(from.Cap[g+1]) == s.p.Slots {
			for t, m := range from.Cap[g+1] {
				mu[v][t] = max(mu[v][t], m)
			}
		}
	}

	return mu
}

// warm starts from the prices of an earlier run and returns true, if there are any. Where a
// cap is binding, its price absorbs the change of the price of energy.
func (s *solver) warm() bool {
	from := s.p.Start
	if len(from.Market) != s.p.Slots || len(from.Cap) != len(s.p.Groups)+1 {
		return false
	}

	market, mu := slices.Clone(from.Market), s.startCaps()
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
			mu[v][t] = max(0, mu[v][t])
			if math.IsInf(s.tree.cap[v][t], 1) || math.IsNaN(mu[v][t]) {
				mu[v][t] = 0
			}
		}
	}

	s.prove(market, mu)

	return true
}

// sample picks assets that represent the fleet.
func (s *solver) sample() []pick {
	share := float64(s.sampled) / float64(len(s.p.EVs)+
		batteryWeight*len(s.p.Batteries))
	return s.sampleBatteries(s.sampleCars(nil, share), share)
}

// leastOfNode is the least number of a node's assets in a sample.
func (s *solver) leastOfNode() int {
	return min(sampleSizeNode, 1+sampleSizeNodes/len(s.tree.parent))
}

// sampleCars picks cars. The cars of a node are sorted by class, window and need and divided
// into runs. The car with the most usual need of a run represents it, with the energy of all.
func (s *solver) sampleCars(picks []pick, share float64) []pick {
	keys := make([]uint64, len(s.p.EVs))
	count := make([]int, len(s.tree.parent))
	for i := range s.p.EVs {
		e := &s.p.EVs[i]
		v := s.tree.node[e.Group]
		count[v]++
		need := min(
			31,
			2*e.EnergyKWh/max(e.MaxKW*SlotHours, 1e-3),
		) // in half slots

		keys[i] = uint64(v)<<49 | uint64(s.pricer.classOf[i]&63)<<43 |
			uint64(e.First/3)<<38 |
			uint64(e.Last/3)<<33 | uint64(need)<<28 | uint64(i)
	}

	slices.Sort(keys)
	for _, n := range count {
		list := keys[:n]
		keys = keys[n:]
		for parts := min(
			n,
			max(s.leastOfNode(), int(share*float64(n))),
		); parts > 0; parts-- {
			cut := (len(list) + parts - 1) / parts
			picks = append(picks, s.usual(list[:cut]))
			list = list[cut:]
		}
	}

	return picks
}

// sampleBatteries picks batteries, of each node evenly.
func (s *solver) sampleBatteries(picks []pick, share float64) []pick {
	batteries := make([][]int32, len(s.tree.parent))
	for i := range s.p.Batteries {
		v := s.tree.node[s.p.Batteries[i].Group]
		batteries[v] = append(batteries[v], int32(len(s.p.EVs)+i))
	}

	for _, list := range batteries {
		n := min(
			len(list),
			max((s.leastOfNode()+batteryWeight-1)/batteryWeight, int(share*float64(len(list)))),
		)

		for j := range n {
			picks = append(picks, pick{
				list[j*len(list)/n],
				float64(len(list)) / float64(n),
			})
		}
	}

	return picks
}

// usual picks the car of a run whose need is nearest to the mean.
func (s *solver) usual(run []uint64) pick {
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
		return pick{int32(best & (1<<28 - 1)), float64(len(run))}
	}

	return pick{int32(best & (1<<28 - 1)), sum / need(best)}
}

// worst returns a block to plan again: the assets with the largest regret at the present
// prices, and as many random others, whose freedom is needed.
func (s *solver) worst(source *random.Source) []int32 {
	list := s.best.regrets(s.pricer, s.sampled/2)
	weight := func(a int32) int {
		if int(a) >= len(s.p.EVs) {
			return batteryWeight
		}
		return 1
	}

	var picks []int32
	isChosen := make(map[int32]bool, s.sampled)
	remaining := min(s.sampled, len(s.p.EVs)+batteryWeight*len(s.p.Batteries))
	add := func(a int32) {
		if !isChosen[a] {
			isChosen[a] = true
			picks = append(picks, a)
			remaining -= weight(a)
		}
	}

	for _, a := range list {
		if remaining <= s.sampled/2 {
			break
		}
		add(a)
	}

	for n := len(s.p.EVs) + len(s.p.Batteries); remaining > 0; {
		add(int32(source.Below(n)))
	}

	return picks
}

// answer builds the answer from the draft.
func (s *solver) answer() Plan {
	d := s.best
	a := Plan{EVs: Energies{d.at, d.x}, Batteries: d.net}
	a.Cost, a.Turnover = d.cost()
	a.Bound = s.bound

	for i := range s.p.EVs {
		remaining := s.p.EVs[i].EnergyKWh
		for _, x := range a.EVs.Of(i) {
			remaining -= x
		}
		a.Unserved += max(0, remaining)
	}

	a.Prices = Prices{
		Market: s.market,
		Cap:    grid(len(s.p.Groups)+1, s.p.Slots),
	}

	copy(a.Prices.Cap[0], s.mu[0])
	for g, v := range s.tree.node[:len(s.p.Groups)] {
		if v > 0 && !s.sharesNode(g) {
			copy(a.Prices.Cap[g+1], s.mu[v])
		}
	}

	return a
}

// sharesNode reports whether a group has no cap of its own that could bind, so that it uses
// the node of the group around it.
func (s *solver) sharesNode(g int) bool {
	parent := s.p.Groups[g].Parent
	return g > 0 && parent > 0 && s.tree.node[g] == s.tree.node[parent-1]
}

// prices returns the barrier's prices.
func (b *barrier) prices() ([]float64, [][]float64) {
	mu := make([][]float64, len(b.nodes))
	for i := range b.nodes {
		mu[i] = b.nodes[i].mu
	}

	return b.market.price, mu
}

// regret is the cost of an asset above its least cost at the pricer's prices.
type regret struct {
	asset  int32
	regret float64
}

// worstList collects the largest regrets, usually up to twice as many as requested.
type worstList struct {
	most  int
	floor float64 // no regret up to this is among the largest
	list  []regret
}

func (w *worstList) add(asset int, excess float64) {
	if excess > w.floor {
		w.list = append(w.list, regret{int32(asset), excess})
		if len(w.list) >= 2*w.most {
			w.cut()
			w.floor = w.list[w.most-1].regret
		}
	}
}

// cut sorts the regrets, the largest first, and keeps the most.
func (w *worstList) cut() {
	slices.SortFunc(w.list, func(a, b regret) int {
		return cmp.Or(
			-cmp.Compare(a.regret, b.regret),
			cmp.Compare(a.asset, b.asset),
		)
	})

	w.list = w.list[:min(w.most, len(w.list))]
}

// batteryRegret returns the cost of a battery above its least cost at the prices that were set
// last.
func (d *draft) batteryRegret(i int, f *pricer, with *pricerShard) float64 {
	b := &d.p.Batteries[i]
	prices := f.w[d.tree.node[b.Group]]
	sum := d.batteryCost(i) - with.cell.plan(b, prices, with.y)
	for t, q := range d.net[i] {
		sum += q * prices[t]
	}

	return sum
}

// regrets returns the assets with the largest regret at the prices that were set last, the
// worst first.
func (d *draft) regrets(f *pricer, most int) []int32 {
	var worst [2]worstList
	inParallel(func(k int) {
		w := &worst[k]
		w.most, w.floor = most, 1e-6
		from, to := half(len(d.p.EVs), k)

		for i := from; i < to; i++ {
			w.add(i, d.carRegret(i, f.curve(i, &f.shards[k].own)))
		}
		from, to = half(len(d.p.Batteries), k)

		for i := from; i < to; i++ {
			w.add(len(d.p.EVs)+i, d.batteryRegret(i, f, &f.shards[k]))
		}
	})

	all := worstList{
		most: most,
		list: append(worst[0].list, worst[1].list...),
	}

	all.cut()
	assets := make([]int32, len(all.list))

	for i, r := range all.list {
		assets[i] = r.asset
	}

	return assets
}

func (d *draft) carRegret(i int, curve *curve) float64 {
	e := &d.p.EVs[i]
	k := curve.choose(e)
	var load [MaxSlots]float64
	k.add(e, &load)
	sum, remaining := 0.0, e.EnergyKWh-k.short

	for t, x := range d.x[d.at[i]:d.at[i+1]] {
		s := int(e.First) + t
		sum += (x - load[s]) * curve.price[s]
		remaining -= x
	}

	return sum + remaining*d.p.Unserved
}
