package site

import "math"

// cut is a row that every possible plan of one slot keeps: the sum of the entries is at least
// right.
type cut struct {
	columns []int
	values  []float64
	right   float64
	most    float64 // the most by which the sum can exceed right
}

const (
	cutRounds = 12
	cutWork   = 10   // combinations of modes that may be tried, for each pivot allowed
	cutDepth  = 1e-6 // square of the distance to the slot's set from which a cut is worth a row
)

// addCuts adds the cuts as rows.
func (m *model) addCuts() {
	for _, c := range m.cuts {
		row := m.row(c.right)

		for i, j := range c.columns {
			m.lp.AddEntry(j, row, c.values[i])
		}

		slack := m.lp.AddColumn(0, 0, c.most)
		m.lp.AddEntry(slack, row, -1)
		m.crash[row] = slack
		m.cutOver = append(m.cutOver, slack)
	}
}

// tightenRoot solves the root, cuts off solutions that are impossible in a slot, and restarts
// with those cuts. It ends when no cut is found or the allowed work is done.
func (m *model) tightenRoot(l limits, work int) {
	for range cutRounds {
		if m.lp.Solve(math.Inf(1), 4000) != 0 {
			return
		}

		m.dropSlackCuts()
		before := len(m.cuts)
		work = m.separate(work)

		if len(m.cuts) == before {
			return
		}

		m.rebuild(l)

		if work <= 0 {
			return
		}
	}
}

// dropSlackCuts drops the cuts that the solution does not need.
func (m *model) dropSlackCuts() {
	tight := m.cuts[:0]

	for i, c := range m.cuts {
		if m.lp.Value(m.cutOver[i]) < 1e-7 {
			tight = append(tight, c)
		}
	}

	m.cuts = tight
}

// rebuild builds the model again with its cuts. It starts from the last basis.
func (m *model) rebuild(l limits) {
	pivots := m.lp.Pivots
	m.warm = m.lp.Basis(m.warm[:0], m.baseColumns)
	m.build(m.p, l, leastCost)
	m.lp.Pivots = pivots
}

// separate looks for cuts in each slot in which the last solution is impossible. It returns
// the work that is left.
func (m *model) separate(work int) int {
	for t := range m.balance {
		if work <= 0 {
			break
		}

		if !m.mixed(t) {
			continue
		}

		set := m.slotSetOf(t)
		m.cutOff(set)
		work -= set.combinations
	}

	return work
}

// mixed reports whether the last solution mixes modes of a device in a slot.
func (m *model) mixed(t int) bool {
	found := m.both(m.imported[t], m.exported[t])

	if m.tank != nil {
		found = found || m.between(m.tank[t], 1)
	}

	if m.heat != nil {
		found = found || m.partly(m.heat[t])
	}

	for _, b := range m.batteries {
		found = found || m.both(b.charge[t].more, b.discharge[t].more)
	}

	for _, c := range m.cars {
		found = found || m.partly(c.charge[t])

		if c.discharge != nil {
			found = found || m.partly(c.discharge[t])
			found = found || m.both(c.charge[t].more, c.discharge[t].more)
		}
	}

	return found || m.ruleBroken(t)
}

// both reports whether two columns are above 0 in the last solution.
func (m *model) both(a, b int) bool {
	if a < 0 || b < 0 {
		return false
	}

	return min(m.lp.Value(a), m.lp.Value(b)) > energyTolerance
}

// between reports whether a column lies strictly between 0 and most.
func (m *model) between(j int, most float64) bool {
	x := m.lp.Value(j)

	return x > energyTolerance && x < most-energyTolerance
}

// partly reports whether a draw lies strictly between 0 and its least.
func (m *model) partly(d draw) bool {
	if d.on >= 0 {
		return m.between(d.on, 1)
	}

	return d.more >= 0 && m.between(d.more, d.least)
}

// ruleBroken reports whether batteries discharge into a car in a slot of the last solution.
func (m *model) ruleBroken(t int) bool {
	for i := range m.rules {
		if m.rules[i].slot == t {
			var b branching
			m.branchOnRule(&m.rules[i], &b)

			return b.score > 0
		}
	}

	return false
}

// cutOff adds the cut between the last solution and the slot's set, if the solution is not in
// the set's convex hull.
func (m *model) cutOff(set *slotSet) {
	k := len(set.columns)
	n := nearest{
		set:    set,
		from:   make([]float64, k),
		at:     make([]float64, k),
		oracle: make([]float64, k),
		found:  make([]float64, k),
	}

	for i, j := range set.columns {
		n.from[i] = m.lp.Value(j)
	}

	low := n.search()

	if math.IsInf(low, 1) || low < cutDepth {
		return
	}

	c := cut{columns: set.columns}
	size := 0.0

	for _, x := range n.oracle {
		size = max(size, math.Abs(x))
	}

	// The cut is scaled so that its greatest entry is 1, and loosened by the rounding error.
	c.right = (low + dot(n.oracle, n.from)) / size
	most := 0.0

	for i, x := range n.oracle {
		c.values = append(c.values, x/size)
		most += max(0, x/size*m.upper[set.columns[i]])
	}

	const rounding = 1e-9
	c.right -= rounding
	c.most = max(0, most-c.right)
	m.cuts = append(m.cuts, c)
}
