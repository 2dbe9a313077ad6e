package site

import "flexd/internal/engine/simplex"

// none is a column that a slot does not have.
const none = -1

// draw is the energy that a device takes in a slot: 0, or from least to most. Without a start
// cost it is the column more alone, and values between 0 and least are excluded by branching.
// With a start cost it is least x on + more.
type draw struct {
	on    int
	more  int
	least float64
	most  float64
}

// storage has the columns and rows of a car, or of a battery.
type storage struct {
	charge    []draw
	discharge []draw
	stored    []int // after each slot
	levels    []int // rows of what is stored
	starts    []int // rows that count starts
	classes   []int // rows that count the slots of each class
	classOn   []int // columns of these counts
	need      int   // row of a car's need
}

// model is a site as a linear programme, with the conditions that such a programme cannot
// express.
type model struct {
	p        *Problem
	lp       simplex.Solver
	crash    []int
	balance  []int // row of each slot
	imported []int
	exported []int

	batteries    []storage
	cars         []storage // stored is set only for cars that discharge
	countEntries []share   // of the car that is being added: the entry of each slot in a count; nil for none
	classRows    []int     // of the same car, the row of each count
	classOn      []int     // of the same car, the column of each count
	short        []int     // shortfall of each car
	peak         int       // slack of the row that limits peak energy
	shortSum     int       // slack of the row that limits the shortfalls
	tank         []int
	heat         []draw
	shared       [2]int    // rows of all shortfalls and of peak energy, or none
	counts       []int     // columns that count the tank's slots on
	water        chainRows // rows of the tank
	warmth       chainRows // rows of the heat pump

	// The conditions that a linear programme cannot express.
	binaries []int
	wholes   []int // counts, which are integers
	gaps     []gap
	pairs    []pair
	rules    []rule
	reserves []reserve
	constant float64   // of the cost
	pure     []float64 // costs of a goal other than leastCost, without the tie break

	lower, upper []float64 // bounds of all columns at the root

	cuts        []cut
	cutOver     []int // column of each cut's slack
	baseColumns int   // number of columns without these slacks
	warm        []int32
}

// chainRows has the rows of a device that link its slots: of stored energy, of starts, and of
// the number of slots on. A list is nil if the device has no such rows.
type chainRows struct{ levels, starts, counts []int }

// gap is a column that must not lie between 0 and least.
type gap struct {
	column int
	least  float64
}

// pair is two columns of which at least one must be 0.
type pair struct{ a, b int }

// rule is the rule of one slot that batteries do not discharge into cars: if a car charges,
// margin must not be below 0. margin is what the building uses less what batteries discharge.
type rule struct {
	slot   int
	margin int
	cars   []int
}

// reserve is a car that arrives with less energy than its reserve.
type reserve struct{ car int }

// row adds a row whose logical variable is in the first basis.
func (m *model) row(right float64) int {
	m.crash = append(m.crash, none)

	return m.lp.AddRow(right)
}

// slack adds the slack variable of a row, and puts it into the first basis.
func (m *model) slack(row int, lower, upper float64) int {
	j := m.lp.AddColumn(0, lower, upper)
	m.lp.AddEntry(j, row, 1)
	m.crash[row] = j

	return j
}

// limits are the values of the first two goals that the plan must reach: each car's own
// shortfall and the sum of peak energy if all cars can reach what they reach alone, otherwise
// the two sums.
type limits struct {
	shortfall []float64 // of each car; nil: free
	shortSum  float64
	peakSum   float64
	together  bool // the sums count, and not the values of single cars
}

// build builds the linear programme of a site.
func (m *model) build(p *Problem, l limits, g goal) {
	n := p.Slots()
	*m = model{
		p:     p,
		lp:    m.lp,
		crash: m.crash[:0],
		cuts:  m.cuts,
		warm:  m.warm,
	}

	m.lp.Reset()
	m.balance = make([]int, n)

	for t := range n {
		m.balance[t] = m.row(p.Load[t] - p.PV[t])
	}

	m.grid()

	for k := range p.Batteries {
		m.battery(&p.Batteries[k])
	}

	m.carsOf(l)

	if p.Tank != nil {
		m.addTank(p.Tank)
	}

	if p.Heat != nil {
		m.addHeat(p.Heat)
	}

	m.batteryRules()
	m.hulls()
	m.complete()

	if g != leastCost {
		m.setGoal(g)
	}

	for j := range m.lp.Columns() {
		m.lower = append(m.lower, m.lp.Lower(j))
		m.upper = append(m.upper, m.lp.Upper(j))
	}
}

// complete adds the cuts, and completes the programme.
func (m *model) complete() {
	m.baseColumns = m.lp.Columns()
	m.addCuts()
	m.lp.Start(m.crash)

	if len(m.warm) > 0 {
		m.lp.Restart(m.warm)
	}
}

// grid adds import, export and curtailment. Every row of the balance is import - export -
// curtailed - what devices take = load - roof.
func (m *model) grid() {
	p := m.p

	for t := range m.balance {
		into := m.lp.AddColumn(p.Import[t], 0, p.GridImport*p.Hours)
		m.lp.AddEntry(into, m.balance[t], 1)
		m.crash[m.balance[t]] = into

		out := m.lp.AddColumn(-p.Export[t], 0, p.GridExport*p.Hours)
		m.lp.AddEntry(out, m.balance[t], -1)
		m.imported, m.exported = append(m.imported, into), append(m.exported, out)

		if p.Curtailable && p.PV[t] > 0 {
			curtailed := m.lp.AddColumn(0, 0, p.PV[t])
			m.lp.AddEntry(curtailed, m.balance[t], -1)
		}

		m.pairs = append(m.pairs, pair{into, out})
	}
}

// levels adds the rows and columns of stored energy. retention is the share of the stored
// energy that is left after a slot. Each row is stored - retention x stored before - inflow =
// right.
func (m *model) levels(
	retention float64,
	right func(t int) float64,
	bounds func(t int) (lower, upper float64),
	terminal float64,
) (rows, stored []int) {
	n := len(m.balance)
	rows, stored = make([]int, n), make([]int, n)

	for t := range n {
		rows[t] = m.row(right(t))
	}

	for t := range n {
		lower, upper := bounds(t)
		cost := 0.0

		if t == n-1 {
			cost = -terminal
		}

		stored[t] = m.lp.AddColumn(cost, lower, upper)
		m.lp.AddEntry(stored[t], rows[t], 1)

		if t+1 < n {
			m.lp.AddEntry(stored[t], rows[t+1], -retention)
		}

		m.crash[rows[t]] = stored[t]
	}

	return rows, stored
}

func (m *model) battery(b *Battery) {
	n := len(m.balance)
	bounds := func(int) (float64, float64) { return b.Min, b.Max }
	rows, stored := m.levels(1, b.stores, bounds, b.Terminal)
	s := storage{
		charge:    make([]draw, n),
		discharge: make([]draw, n),
		stored:    stored,
		levels:    rows,
	}

	for t := range n {
		most := b.most(t, b.Charge, m.p.Hours)
		s.charge[t] = draw{
			none,
			m.flow(t, -1, 0, most, rows[t], -b.ChargeEff),
			0,
			most,
		}

		most = b.most(t, b.Discharge, m.p.Hours)
		s.discharge[t] = draw{
			none,
			m.flow(t, 1, b.Wear, most, rows[t], 1/b.Efficient),
			0,
			most,
		}

		m.pairs = append(m.pairs, pair{s.charge[t].more, s.discharge[t].more})
	}

	m.batteries = append(m.batteries, s)
}

// flow adds a column of the balance that also enters one other row.
func (m *model) flow(
	t int,
	sign, cost, most float64,
	row int,
	value float64,
) int {
	j := m.lp.AddColumn(cost, 0, most)
	m.lp.AddEntry(j, m.balance[t], sign)

	if row >= 0 {
		m.lp.AddEntry(j, row, value)
	}

	return j
}

// share is an entry of a device's draw: value for each kWh.
type share struct {
	row   int
	value float64
}

// chain has the rows that count the starts of one device.
type chain struct {
	rows  []int
	start float64
}

// newChain adds the rows on - on before - start + slack = 0.
func (m *model) newChain(start float64, slots func(t int) bool) chain {
	c := chain{make([]int, len(m.balance)), start}

	for t := range c.rows {
		c.rows[t] = none

		if slots(t) {
			c.rows[t] = m.row(0)
		}
	}

	for _, row := range c.rows {
		if row >= 0 {
			m.slack(row, 0, 2)
			begins := m.lp.AddColumn(start, 0, 1)
			m.lp.AddEntry(begins, row, -1)
		}
	}

	return c
}

// enter adds the entries of the column on to the rows that count starts.
func (c *chain) enter(m *model, on, t int) {
	m.lp.AddEntry(on, c.rows[t], 1)

	if t+1 < len(c.rows) && c.rows[t+1] >= 0 {
		m.lp.AddEntry(on, c.rows[t+1], -1)
	}
}

// newDraw adds the energy that a device takes in a slot: 0, or from least to most.
func (m *model) newDraw(
	t int,
	least, most float64,
	starts *chain,
	shares ...share,
) draw {
	d := draw{none, none, least, most}
	enter := func(column int, size float64) {
		m.lp.AddEntry(column, m.balance[t], -size)

		for _, s := range shares {
			m.lp.AddEntry(column, s.row, s.value*size)
		}
	}

	if starts == nil {
		d.more = m.lp.AddColumn(0, 0, most)
		enter(d.more, 1)

		if least > 0 {
			m.gaps = append(m.gaps, gap{d.more, least})
		}

		return d
	}

	m.startDraw(t, &d, starts, enter)

	return d
}

// startDraw adds the columns of a draw whose starts cost. A device without a least power must
// take a little in every slot in which it stays on. If it could take nothing there, it would
// count as off, and the next slot as another start.
func (m *model) startDraw(
	t int,
	d *draw,
	starts *chain,
	enter func(column int, size float64),
) {
	if d.least <= 0 {
		d.least = min(2*on, d.most)
	}

	// more - (most - least) on + slack = 0
	link := none

	if d.most > d.least {
		link = m.row(0)
		m.slack(link, 0, d.most-d.least)
		d.more = m.lp.AddColumn(0, 0, d.most-d.least)
		m.lp.AddEntry(d.more, link, 1)
		enter(d.more, 1)
	}

	d.on = m.lp.AddColumn(0, 0, 1)
	starts.enter(m, d.on, t)

	if d.least > 0 {
		enter(d.on, d.least)
	}

	if link >= 0 {
		m.lp.AddEntry(d.on, link, d.least-d.most)
	}

	m.binaries = append(m.binaries, d.on)
}

// value returns a draw's energy in the last solution.
func (m *model) value(d draw) float64 {
	sum := 0.0

	if d.on >= 0 {
		sum += d.least * m.lp.Value(d.on)
	}

	if d.more >= 0 {
		sum += m.lp.Value(d.more)
	}

	return sum
}

// tieBreak is the weight of the cost if shortfall or peak energy is the goal. Without it the
// relaxation would move energy to no purpose. It is so small that a kWh is worth more than any
// price, and that the energy given up to save a device's start is below what counts as a
// shortfall.
const tieBreak = 1e-6

// setGoal replaces the costs by those of another goal.
func (m *model) setGoal(g goal) {
	m.pure = make([]float64, m.lp.Columns())
	cost := make([]float64, m.lp.Columns())

	for k, short := range m.short {
		if g == leastShortfall {
			m.pure[short]++
			continue
		}

		for t, d := range m.cars[k].charge {
			if m.p.Cars[k].peak(t) {
				d.addCost(m.pure, 1)
			}
		}
	}

	for j := range cost {
		cost[j] = m.pure[j] + tieBreak*m.lp.Cost(j)
	}

	m.lp.SetCosts(cost, 1e-2)
}

// addCost adds a cost for each kWh of a draw.
func (d *draw) addCost(cost []float64, value float64) {
	if d.on >= 0 {
		cost[d.on] += value * d.least
	}

	if d.more >= 0 {
		cost[d.more] += value
	}
}

// constantOf returns the part of a goal that is not in the objective of the programme.
func (m *model) constantOf(g goal) float64 {
	if g == leastCost {
		return m.constant
	}

	return tieBreak * m.constant
}
