package site

import "math"

// cut is a row that all that can be done in one slot keeps: the sum of the entries is at least right.
type cut struct {
	columns []int
	values  []float64
	right   float64
	most    float64 // by which the sum can be above right
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

// tightenRoot solves the root, cuts off what no slot can do, and restarts with those cuts, until
// none is found or the work allowed is done.
func (m *model) tightenRoot(l limits, work int) {
	for range cutRounds {
		if m.lp.Solve(math.Inf(1), 4000) != 0 {
			return
		}

		m.keepTight()
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

// keepTight drops the cuts that the solution does not need.
func (m *model) keepTight() {
	tight := m.cuts[:0]

	for i, c := range m.cuts {
		if m.lp.Value(m.cutOver[i]) < 1e-7 {
			tight = append(tight, c)
		}
	}

	m.cuts = tight
}

// rebuild writes the model down with its cuts, and begins with the basis that was the last one.
func (m *model) rebuild(l limits) {
	pivots := m.lp.Pivots
	m.warm = m.lp.Basis(m.warm[:0], m.baseColumns)
	m.build(m.p, l, leastCost)
	m.lp.Pivots = pivots
}

// separate looks for cuts in each slot in which the last solution does what no slot can. It
// returns the work that is left.
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

// mixed reports whether the last solution does in a slot what only a mixture of modes can.
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

// both reports whether two columns are in use in the last solution.
func (m *model) both(a, b int) bool {
	if a < 0 || b < 0 {
		return false
	}

	return min(m.lp.Value(a), m.lp.Value(b)) > apart
}

// between reports whether a column is neither 0 nor as large as it can be, or must be.
func (m *model) between(j int, most float64) bool {
	x := m.lp.Value(j)

	return x > apart && x < most-apart
}

// partly reports whether a draw is neither off nor at its least.
func (m *model) partly(d draw) bool {
	if d.on >= 0 {
		return m.between(d.on, 1)
	}

	return d.more >= 0 && m.between(d.more, d.least)
}

// ruleBroken reports whether batteries serve a car in a slot of the last solution.
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

// cutOff adds the cut between the last solution and the slot's set, if the one is not in the
// convex hull of the other.
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
