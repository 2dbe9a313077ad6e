package site

import (
	"container/heap"
	"math"

	"flexd/internal/engine/simplex"
)

// node is a part of the plans: its changes to the parent's bounds of columns, and a lower
// bound of its plans.
type node struct {
	parent  *node
	changes []change
	bound   float64
	number  int
	topic   int     // the index in history of what was divided, or none
	part    float64 // see history.learn
	trace   *trace  // if a proof is wanted
}

// nodeHeap is the heap of nodes to inspect, with the lowest bound first.
type nodeHeap []*node

func (o nodeHeap) Len() int { return len(o) }
func (o nodeHeap) Less(i, j int) bool {
	if o[i].bound != o[j].bound {
		return o[i].bound < o[j].bound
	}

	return o[i].number > o[j].number
}
func (o nodeHeap) Swap(i, j int) { o[i], o[j] = o[j], o[i] }

// Push adds a node at the end.
func (o *nodeHeap) Push(x any) { *o = append(*o, x.(*node)) }

// Pop removes the last node.
func (o *nodeHeap) Pop() any {
	old := *o
	last := old[len(old)-1]
	*o = old[:len(old)-1]

	return last
}

// goal is what a search minimises.
type goal int

const (
	leastCost goal = iota
	leastShortfall
	leastPeak
)

func (g goal) valueOf(s totals) float64 {
	switch g {
	case leastShortfall:
		return s.shortfall + tieBreak*s.cost
	case leastPeak:
		return s.peak + tieBreak*s.cost
	default:
		return s.cost
	}
}

// search is branch and bound over one model.
type search struct {
	m             *model
	goal          goal
	queue         nodeHeap
	changed       []int // columns whose bounds are not those of the root
	unusedList    []int
	visited       []int // of each column, the visit that last set its wanted bounds
	visit         int
	wanted        []change
	nodes         int
	limit         int // pivots allowed
	planlessLimit int // pivots allowed without a plan
	soft          int // pivots after which a gap of softGap is good enough

	plan    Plan // the best one
	trial   Plan
	net     []float64
	best    totals
	hasPlan bool
	fuse    float64 // the worth of one kW more of fuse for the best plan, before polish
	bound   float64 // proven, once the search is done
	root    float64 // bound of the root

	history history
	reduced []float64 // reduced costs at the root
	stopped bool      // the search ended at its limit

	labels  labels // of columns; nil if no proof is wanted
	fixings []fixing
	first   *node
}

// shortfallTolerance is how far a plan may miss a limit through rounding.
const shortfallTolerance = 9e-7

// slack returns how much the perturbation of the costs and rounding can add to a bound.
func (s *search) slack() float64 { return s.m.lp.Slack() }

// softGap is how much more than the bound a plan may cost once the search has done its share
// of work, as a fraction of the turnover.
const softGap = 8e-4

// close returns the distance between plan and bound at which a search ends.
func (s *search) close() float64 {
	if s.goal != leastCost {
		return 4e-6
	}

	if s.m.lp.Pivots > s.soft {
		return softGap * max(1, s.best.gross)
	}

	return 2e-7 * max(1, s.best.gross)
}

// cutoff returns the objective from which on a node cannot improve the best plan.
func (s *search) cutoff() float64 {
	if !s.hasPlan {
		return math.Inf(1)
	}

	return s.goal.valueOf(s.best) - s.close() + s.slack()/2 - s.m.constantOf(s.goal)
}

// run searches from the root until plan and bound meet, or the work is done.
func (s *search) run() {
	s.bound = math.Inf(1)
	s.history.reset(len(s.m.lower), len(s.m.pairs))
	s.visited, s.wanted = make([]int, len(s.m.lower)), make([]change, len(s.m.lower))

	current := &node{bound: math.Inf(-1), topic: none}
	s.first = current

	for current != nil {
		if s.workDone() {
			s.recordBound(current)
			s.polish()

			return
		}

		current = s.next(s.inspect(current))
	}

	if s.hasPlan {
		s.polish()
		s.bound = min(s.bound, s.goal.valueOf(s.best))
	}
}

// workDone reports whether the allowed work is done. Nodes count as well as pivots, because a
// node needs no pivot if its parent's solution is valid for it too. The root is always
// inspected, even if its cuts have used all of the work: without it there is no bound.
func (s *search) workDone() bool {
	if s.nodes == 0 {
		return false
	}

	if s.nodes > s.limit {
		return true
	}

	if s.hasPlan {
		return s.m.lp.Pivots > s.limit
	}

	return s.m.lp.Pivots > s.planlessLimit
}

// recordBound records the lowest bound of the nodes that are left.
func (s *search) recordBound(current *node) {
	s.stopped = true
	s.bound = min(s.bound, current.bound)

	for _, n := range s.queue {
		s.bound = min(s.bound, n.bound)
	}

	if s.hasPlan {
		s.bound = min(s.bound, s.goal.valueOf(s.best))
	}
}

// next returns the node to inspect: the given one, or the most promising one of the queue.
func (s *search) next(child *node) *node {
	if child != nil {
		return child
	}

	for len(s.queue) > 0 {
		n := heap.Pop(&s.queue).(*node)

		if !s.hasPlan || n.bound < s.goal.valueOf(s.best)-s.close() {
			return n
		}

		s.bound = min(s.bound, n.bound)
		s.queue = s.queue[:0]
	}

	return nil
}

// inspect solves one node. It returns the more promising half, or nil if the node needs no
// further division.
func (s *search) inspect(n *node) *node {
	status := s.solve(n)

	if status == simplex.Infeasible {
		return nil
	}

	if status == simplex.Cutoff {
		// The cutoff was half the slack higher than this, and the perturbation may have added
		// all of the slack.
		s.bound = min(s.bound, s.goal.valueOf(s.best)-s.close()-s.slack()/2)

		return nil
	}

	n.bound = max(n.bound, s.objective()-s.slack())

	// The node was not solved completely: only its bound counts.
	if status == simplex.Exhausted {
		s.bound = min(s.bound, n.bound)

		return nil
	}

	if s.nodes == 1 {
		s.setRootBound(n.bound)
	}

	// Divide where the solution breaks a condition. If it breaks none, it is a plan.
	cut := s.violation()

	if cut.score == 0 {
		cut = s.leaf(n)
	}

	if cut.score == 0 {
		s.bound = min(s.bound, n.bound)

		return nil
	}

	return s.split(n, cut)
}

// solve solves the programme of a node, and records by how much its division has raised the
// bound.
func (s *search) solve(n *node) simplex.Status {
	s.nodes++
	if !s.enterNode(n) {
		return simplex.Infeasible
	}

	status := s.m.lp.Solve(s.cutoff(), max(2000, s.limit-s.m.lp.Pivots))
	s.note(n, status)

	if n.topic >= 0 && status != simplex.Infeasible {
		s.history.learn(n.topic, n.part, s.objective()-n.bound)
	}

	return status
}

// objective returns the goal's value in the last solution of the programme.
func (s *search) objective() float64 {
	return s.m.lp.Objective() + s.m.constantOf(s.goal)
}

// leaf uses the solution of a node as a plan. If netting made the plan cost more than the
// node's bound, the node is divided at a slot where it was netted.
func (s *search) leaf(n *node) branching {
	cost, ok := s.offer()

	if ok && cost <= n.bound+s.close()/2+s.slack() {
		return branching{}
	}

	return s.oppositeBranching()
}

// offer reads the last solution as a plan, and stores it if it is the best one.
func (s *search) offer() (float64, bool) {
	s.m.extract(&s.trial)

	total := s.m.p.evaluate(&s.trial, s.net)

	if total.worst > shortfallTolerance {
		return 0, false
	}

	value := s.goal.valueOf(total)

	if !s.hasPlan || value < s.goal.valueOf(s.best) {
		s.hasPlan = true
		s.best = total
		s.fuse = s.m.fuseValue()
		s.plan, s.trial = s.trial, s.plan
		s.tighten()
	}

	return value, true
}

// split divides a node. One half is queued, the other is returned.
func (s *search) split(n *node, cut branching) *node {
	first := &node{
		parent:  n,
		changes: cut.halves[0],
		bound:   n.bound,
		number:  2 * s.nodes,
		topic:   cut.topic,
		part:    cut.parts[0],
	}

	second := &node{
		parent:  n,
		changes: cut.halves[1],
		bound:   n.bound,
		number:  2*s.nodes + 1,
		topic:   cut.topic,
		part:    cut.parts[1],
	}

	s.recordDivision(n, &cut, first, second)
	heap.Push(&s.queue, second)

	return first
}

// setRootBound records the bound and the reduced costs of the root.
func (s *search) setRootBound(bound float64) {
	s.root = bound
	s.reduced = make([]float64, len(s.m.lower))

	for j := range s.reduced {
		s.reduced[j] = s.m.lp.Reduced(j)
	}
}

// tighten narrows the bounds of columns: by the reduced costs of the root, the excluded values
// would cost more than the best plan.
func (s *search) tighten() {
	spare := s.goal.valueOf(s.best) - s.root

	if s.reduced == nil || spare < 0 {
		return
	}

	m := s.m

	for _, j := range m.binaries {
		s.narrow(j, spare)
	}

	for _, j := range m.wholes {
		s.narrow(j, spare)
	}

	for _, g := range m.gaps {
		d := s.reduced[g.column]

		if d > 0 && m.lower[g.column] == 0 && d*g.least > spare {
			m.upper[g.column] = 0
			s.fix(g.column, 0, true)
			s.m.lp.SetBounds(g.column, 0, 0)
		}
	}
}

// narrow narrows the bounds of one integer column.
func (s *search) narrow(j int, spare float64) {
	m := s.m

	steps := math.Floor(spare/math.Abs(s.reduced[j]) + 1e-6)

	if s.reduced[j] == 0 || steps >= m.upper[j]-m.lower[j] {
		return
	}

	if s.reduced[j] > 0 {
		m.upper[j] = m.lower[j] + steps
		s.fix(j, m.upper[j], true)
	} else {
		m.lower[j] = m.upper[j] - steps
		s.fix(j, m.lower[j]-1, false)
	}

	s.changed = append(s.changed, j) // so that enter sets its new bounds
}

// enterNode sets the bounds of a node. It returns false if a column has no value left: the node
// would otherwise be divided without end.
func (s *search) enterNode(n *node) bool {
	const rounding = 1e-9
	s.visit++
	before := s.changed
	s.changed = s.unusedList[:0]

	for at := n; at != nil; at = at.parent {
		for _, c := range at.changes {
			s.restrict(c)
		}
	}

	for _, j := range before {
		if s.visited[j] != s.visit {
			s.m.lp.SetBounds(j, s.m.lower[j], s.m.upper[j])
		}
	}

	s.unusedList = before
	empty := false

	for _, j := range s.changed {
		c := s.wanted[j]
		empty = empty || c.lower > c.upper+rounding
		s.m.lp.SetBounds(j, c.lower, max(c.lower, c.upper))
	}

	return !empty
}

// restrict adds a change to the bounds of the node that is entered.
func (s *search) restrict(c change) {
	j := c.column

	if s.visited[j] != s.visit {
		s.visited[j] = s.visit
		s.wanted[j] = s.m.root(j)
		s.changed = append(s.changed, j)
	}

	w := &s.wanted[j]
	w.lower, w.upper = max(w.lower, c.lower), min(w.upper, c.upper)
}
