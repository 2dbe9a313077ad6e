package site

// Result has the totals of a plan, and its bound.
type Result struct {
	// pence; no plan of the same shortfall and peak energy costs less than Bound
	Cost            float64
	Bound           float64
	Gross           float64 // the sum of the absolute items of the cost
	Shortfall, Peak float64 // kWh
	Limits          []Limit // which needs are not met, and why
	FuseValue       float64 // the worth of one kW more of main fuse, in pence
	FuseEnergy      float64 // the same, in kWh of shortfall
	Met             bool    // every need is met
	Optimal         bool    // plan and bound meet
	None            bool    // no plan was found: the returned plan does nothing, and its cost and bound have no meaning
	Nodes           int
	Pivots          int
}

// Solver plans sites. It reuses its memory. Its zero value is ready.
type Solver struct {
	model  model
	slopes slopes
	Limit  int // pivots that a plan may take, 0 for DefaultLimit

	recording bool // the proof is wanted
	proof     Proof
}

// DefaultLimit bounds the work of one plan, in pivots of the simplex method.
const DefaultLimit = 19_000

// mostWork bounds the number of rows times the pivots, because the time of a pivot grows with
// the rows.
const mostWork = 9_200_000

// When a plan within softGap of its bound is good enough: after this share of the limit, or of
// rows times pivots, and at least so many pivots.
const (
	softShare  = 10
	softWork   = 800_000
	softPivots = 1000
)

// softAfter is the number of pivots after which a plan may be good enough.
func softAfter(limit, rows int) int {
	return max(softPivots, min(limit/softShare, softWork/rows))
}

// Solve plans a site.
func (s *Solver) Solve(p *Problem, to *Plan) Result {
	if r, ok := s.slopeCar(p, to); ok {
		return r
	}

	return s.solve(p, to)
}

// solve searches for the plan of a site.
func (s *Solver) solve(p *Problem, to *Plan) Result {
	limit := s.Limit

	if limit == 0 {
		limit = DefaultLimit
	}

	l := limits{}

	for k := range p.Cars {
		best := p.Cars[k].leastReach()
		l.shortfall = append(l.shortfall, best.shortfall)
		l.peakSum += best.peak
	}

	found, energy, pivots := s.best(p, l, limit)

	*to = found.plan
	r := found.result()
	r.Limits = p.limits(to)
	r.FuseEnergy, r.Pivots = energy, pivots

	return r
}

// best searches for the best plan. It also returns what one kW more of fuse is worth, in kWh
// of shortfall, and the pivots.
func (s *Solver) best(p *Problem, l limits, limit int) (*search, float64, int) {
	// No car can do better than it does alone. If there is a plan in which each does as well,
	// the first two goals are reached.
	found := s.search(p, l, leastCost, limit, nil)
	pivots := s.model.lp.Pivots
	if found.hasPlan {
		return found, 0, pivots
	}

	// The search found no plan: start again from a simple one, if that reaches the first two
	// goals.
	seed := p.seed()
	if seed.reaches(&l) {
		found = s.search(p, l, leastCost, limit, seed)
		return found, 0, pivots + s.model.lp.Pivots
	}

	// The cars compete for the fuse: search for the first two goals, and then for the least
	// cost.
	first, last := s.firstGoals(p, &l, limit, seed)
	found = s.search(p, l, leastCost, limit, last)

	return found, first.fuse, pivots + s.model.lp.Pivots
}

// result returns the totals of a search's best plan. If there is none, None is set, and Met
// and Optimal are not.
func (s *search) result() Result {
	r := resultOf(s.best, s.bound)
	r.Met, r.Optimal = r.Met && s.hasPlan, r.Optimal && s.hasPlan
	r.None = !s.hasPlan
	r.FuseValue = s.fuse
	r.Nodes = s.nodes

	return r
}

// resultOf returns the totals of a plan whose cost has a lower bound.
func resultOf(figures totals, bound float64) Result {
	return Result{
		Cost:      figures.cost,
		Bound:     min(bound, figures.cost),
		Gross:     figures.gross,
		Shortfall: figures.shortfall,
		Peak:      figures.peak,
		Met:       figures.shortfall < 10*on,
		Optimal:   figures.cost-bound <= 1e-6*max(1, figures.gross),
	}
}

// firstGoals finds the least shortfall and then the least peak energy of all cars together. It
// returns the search for the first, and the last search, whose plan has both.
func (s *Solver) firstGoals(
	p *Problem,
	l *limits,
	limit int,
	seed *search,
) (short, last *search) {
	const rounding = 1e-7
	all := 0.0

	for k := range p.Cars {
		all += p.Cars[k].need()
	}

	*l = limits{
		together: true,
		shortSum: all,
		peakSum:  all,
	}

	short = s.search(p, *l, leastShortfall, limit/2, seed)
	last = short
	l.shortSum = short.best.shortfall + rounding

	if s.model.peaks() {
		last = s.search(p, *l, leastPeak, limit/4, last)
		l.peakSum = last.best.peak + rounding
	}

	return short, last
}

// seed returns a search that has the simple plan; nil if there is no such plan.
func (p *Problem) seed() *search {
	s := &search{net: make([]float64, p.Slots())}
	s.best, s.hasPlan = p.simplePlan(&s.plan, s.net)
	if !s.hasPlan {
		return nil
	}

	return s
}

// reaches reports whether a search has a plan in which all cars together have no more
// shortfall and no more peak energy than the sum of what each reaches alone.
func (s *search) reaches(l *limits) bool {
	if s == nil {
		return false
	}

	least := 0.0
	for _, w := range l.shortfall {
		least += w
	}

	return s.best.shortfall <= least+1e-7 && s.best.peak <= l.peakSum+1e-7
}

// need returns the greatest possible shortfall of a car.
func (c *Car) need() float64 {
	if c.V2G != nil {
		return c.V2G.Target
	}

	return c.Energy
}

// search minimises one goal. If a search is given, it starts with the plan of that one.
func (s *Solver) search(
	p *Problem,
	l limits,
	g goal,
	limit int,
	before *search,
) *search {
	s.model.cuts, s.model.warm = nil, nil
	s.model.build(p, l, g)

	if g == leastCost {
		s.model.tightenRoot(l, cutWork*limit)
	}

	rows := s.model.lp.Rows()
	limit = min(limit, max(4000, mostWork/rows))
	found := &search{
		m:     &s.model,
		goal:  g,
		limit: limit,
		soft:  softAfter(limit, rows),
		net:   make([]float64, p.Slots()),
	}

	found.plan, found.trial = p.newPlan(), p.newPlan()

	// If each car's own limits decide the shortfall, a few dives show whether there is a plan.
	found.planlessLimit = max(1500, limit/12)

	if l.together {
		found.planlessLimit = 3 * limit
	}

	if before != nil && before.hasPlan {
		found.plan, found.best = before.plan, before.best
		found.hasPlan = true
	} else if g == leastShortfall {
		found.useIdlePlan()
	}

	if s.recording {
		found.labels = s.model.labels()
	}

	found.run()

	if s.recording {
		s.proof.add(found.tree())
	}

	return found
}

// useIdlePlan uses the plan in which nothing is done, if it is valid.
func (s *search) useIdlePlan() {
	total := s.m.p.evaluate(&s.trial, s.net)

	if total.worst <= shortfallTolerance {
		s.best, s.hasPlan = total, true
		s.plan, s.trial = s.trial, s.plan
	}
}

// reset empties a plan. It reuses the plan's memory if that has this site's size.
func (p *Problem) reset(a *Plan) {
	n := p.Slots()

	if len(a.Battery) > 0 || len(a.Car) != 1 || len(a.Car[0]) != n {
		*a = p.newPlan()
	}

	a.Tank, a.Heat = nil, nil
}

// newPlan returns a plan in which nothing is done.
func (p *Problem) newPlan() Plan {
	n := p.Slots()
	var a Plan

	for range p.Batteries {
		a.Battery = append(a.Battery, make([]float64, n))
	}

	for range p.Cars {
		a.Car = append(a.Car, make([]float64, n))
	}

	if p.Tank != nil {
		a.Tank = make([]bool, n)
	}

	if p.Heat != nil {
		a.Heat = make([]float64, n)
	}

	return a
}
