package site

import "flexd/internal/engine/simplex"

// Proof shows that no plan of a site is better than the bound that a search has found. For
// each goal it has a tree. Every branch divides the plans into two parts, and at each leaf
// multipliers (Dual) bound the value of every plan of that part. Any multipliers prove some
// bound (weak duality), so that the proof can be checked without trusting the search.
type Proof struct {
	Trees []Tree `json:"trees"`
}

// Tree proves the bound of one goal: kWh of shortfall, kWh in peak time, or pence.
type Tree struct {
	Goal  string  `json:"goal"` // shortfall, peak or cost
	Bound float64 `json:"bound"`
	Root  *Branch `json:"root"`
}

// The goals of a tree.
const (
	GoalShortfall = "shortfall"
	GoalPeak      = "peak"
	GoalCost      = "cost"
)

// Branch is a part of the plans, and how it is divided. A leaf has no halves. Devices are
// numbered: the meter, then batteries, cars, tank and heat pump.
type Branch struct {
	Split  Split     `json:"split,omitzero"`
	Device int       `json:"device,omitzero"`
	Slot   int       `json:"slot,omitzero"`
	Value  int       `json:"value,omitzero"`
	Halves []*Branch `json:"halves,omitempty"`

	// for this branch, and for those below it that have none
	Dual *Dual `json:"dual,omitzero"`
	// shows that the part has no plan; it may be added to Dual in any multiple
	Ray *Dual `json:"-"`
}

// Split is how a branch divides its part. The comment of each names the first half, then the
// second.
type Split string

// The splits.
const (
	// the device draws nothing in the slot; it draws at least its least power
	SplitDraw Split = "draw"
	// the device gives nothing in the slot; it gives at least its least power
	SplitGive Split = "give"
	// the device draws nothing in the slot; it gives nothing in it
	SplitWay Split = "way"
	// no car charges in the slot; batteries give no more than the building uses in it
	SplitRule Split = "rule"
	// the car gives nothing up to the slot; it stores its reserve from the end of the slot
	// before on
	SplitReserve Split = "reserve"
	// the tank was on in at most Value slots by the end of the slot; in more
	SplitCount Split = "count"
	// the car is on in at most Value slots of the class with the number Slot; in more
	SplitClass Split = "class"
)

// Dual has multipliers of the rows that link slots. The sign is that of the right side less
// the left side. Each list has one element for each slot.
type Dual struct {
	Battery   [][]float64 `json:"battery,omitempty"`    // of stored energy
	Car       [][]float64 `json:"car,omitempty"`        // the same, of cars that discharge
	CarStart  [][]float64 `json:"car_start,omitempty"`  // of on less on before
	Class     [][]float64 `json:"class,omitempty"`      // of each car, by class, of slots on
	Need      []float64   `json:"need,omitempty"`       // of each car
	Tank      []float64   `json:"tank,omitempty"`       // of stored energy
	TankStart []float64   `json:"tank_start,omitempty"` // of on less on before
	TankCount []float64   `json:"tank_count,omitempty"` // of slots on so far
	Heat      []float64   `json:"heat,omitempty"`       // of the temperature
	HeatStart []float64   `json:"heat_start,omitempty"` // of on less on before
	Shortfall float64     `json:"shortfall,omitzero"`   // of all cars
	Peak      float64     `json:"peak,omitzero"`
}

// trace is what a search records of a node for the proof.
type trace struct {
	dual   *Dual
	ray    *Dual
	branch Branch // how it was divided
	halves [2]*node
}

// fixing is a column whose bounds were narrowed at the root, and the part that was excluded.
type fixing struct {
	column int
	low    float64 // the column is at most low, or is above it
	above  bool    // the excluded part is above low
}

// SolveProven plans a site as Solve does, and returns the proof of its bound. A site whose
// only device is a car is searched too.
func (s *Solver) SolveProven(p *Problem, to *Plan) (Result, Proof) {
	s.recording, s.proof = true, Proof{}
	defer func() { s.recording = false }()

	r := s.solve(p, to)

	return r, s.proof
}

// add adds a tree. It replaces an earlier one of the same goal, whose search found no plan.
func (p *Proof) add(tree Tree) {
	for i := range p.Trees {
		if p.Trees[i].Goal == tree.Goal {
			p.Trees[i] = tree
			return
		}
	}

	p.Trees = append(p.Trees, tree)
}

// note records the multipliers of a node that was solved.
func (s *search) note(n *node, status simplex.Status) {
	if s.labels == nil {
		return
	}

	lp := &s.m.lp
	n.trace = &trace{}

	if status == simplex.Infeasible {
		n.trace.ray = s.m.dual(lp.Ray())
	}

	n.trace.dual = s.m.dual(lp.Multipliers(s.m.pure))
}

// fix records that a column's bounds were narrowed.
func (s *search) fix(j int, low float64, above bool) {
	if s.labels != nil {
		s.fixings = append(s.fixings, fixing{j, low, above})
	}
}

// tree returns the tree of a search that is done.
func (s *search) tree() Tree {
	goals := map[goal]string{
		leastCost:      GoalCost,
		leastShortfall: GoalShortfall,
		leastPeak:      GoalPeak,
	}

	root := s.branch(s.first)

	for i := len(s.fixings) - 1; i >= 0; i-- {
		f := s.fixings[i]
		b := s.labels[f.column].branch(f.low)
		b.Halves = []*Branch{root, {}}

		if !f.above {
			b.Halves[0], b.Halves[1] = b.Halves[1], b.Halves[0]
		}

		b.Dual = root.Dual
		root = &b
	}

	return Tree{Goal: goals[s.goal], Bound: s.bound, Root: root}
}

// branch returns a node and all below it.
func (s *search) branch(n *node) *Branch {
	if n.trace == nil {
		return &Branch{}
	}

	b := n.trace.branch
	b.Dual, b.Ray = n.trace.dual, n.trace.ray

	if n.trace.halves[0] != nil {
		for _, half := range n.trace.halves {
			b.Halves = append(b.Halves, s.branch(half))
		}
	}

	return &b
}

// recordDivision records how a node was divided.
func (s *search) recordDivision(n *node, cut *branching, first, second *node) {
	if s.labels == nil {
		return
	}

	a, b := cut.halves[0], cut.halves[1]
	x, y := a[len(a)-1], b[len(b)-1]
	lx, ly := s.labels[x.column], s.labels[y.column]
	bound := lx.branch(min(x.upper, y.upper))
	swapped := false

	switch {
	case cut.column >= 0:
		swapped = x.upper >= y.lower

	case lx.split == SplitRule || lx.split == SplitReserve:
		swapped, bound = true, lx.branch(0)
		bound.Slot = s.labelOf(b).slot

	case ly.split == SplitRule || ly.split == SplitReserve:
		bound = ly.branch(0)
		bound.Slot = s.labelOf(a).slot

	default:
		bound.Split = SplitWay
		swapped = lx.split == SplitGive
	}

	n.trace.branch = bound
	n.trace.halves = [2]*node{first, second}

	if swapped {
		n.trace.halves = [2]*node{second, first}
	}
}

// labelOf returns the label of the last slot that changes refer to.
func (s *search) labelOf(changes []change) label {
	last := s.labels[changes[0].column]
	for _, c := range changes {
		if l := s.labels[c.column]; l.slot > last.slot {
			last = l
		}
	}

	return last
}

// label says which quantity of the site a column is.
type label struct {
	split  Split
	device int
	slot   int
}

// branch returns the split of a column at a value.
func (l label) branch(low float64) Branch {
	b := Branch{Split: l.split, Device: l.device, Slot: l.slot}
	if l.split == SplitCount || l.split == SplitClass {
		b.Value = int(low)
	}

	return b
}

// labels has the label of each column.
type labels map[int]label

// add labels a column, if there is one.
func (list labels) add(j int, split Split, device, slot int) {
	if j >= 0 {
		list[j] = label{split, device, slot}
	}
}

// draw labels the columns of a draw.
func (list labels) draw(d draw, device, slot int) {
	list.add(d.on, SplitDraw, device, slot)
	list.add(d.more, SplitDraw, device, slot)
}

// labels returns the labels of all columns that nodes change.
func (m *model) labels() labels {
	list := labels{}
	m.labelStores(list)

	devices := append(append([]storage(nil), m.batteries...), m.cars...)
	for t := range m.balance {
		list.add(m.imported[t], SplitDraw, 0, t)
		list.add(m.exported[t], SplitGive, 0, t)

		for k, d := range devices {
			list.draw(d.charge[t], 1+k, t)

			if d.discharge != nil {
				list.add(d.discharge[t].more, SplitGive, 1+k, t)
			}
		}
	}

	for _, r := range m.rules {
		list.add(r.margin, SplitRule, 0, r.slot)
	}

	next := 1 + len(devices)
	for t, j := range m.tank {
		list.add(j, SplitDraw, next, t)
		list.add(m.counts[t], SplitCount, next, t)
	}

	if m.tank != nil {
		next++
	}

	for t, d := range m.heat {
		list.draw(d, next, t)
	}

	return list
}

// labelStores labels what cars store, and in how many slots of each class they are on.
func (m *model) labelStores(list labels) {
	for k := range m.cars {
		for t, j := range m.cars[k].stored {
			list.add(j, SplitReserve, 1+len(m.batteries)+k, t)
		}

		for i, j := range m.cars[k].classOn {
			list.add(j, SplitClass, 1+len(m.batteries)+k, i)
		}
	}
}

// dual sorts the multipliers of the rows by what they are of.
func (m *model) dual(y []float64) *Dual {
	pick := func(rows []int) []float64 {
		if rows == nil {
			return nil
		}

		multipliers := make([]float64, len(rows))
		for i, row := range rows {
			if row >= 0 {
				multipliers[i] = y[row]
			}
		}

		return multipliers
	}

	d := &Dual{
		Tank:      pick(m.water.levels),
		TankStart: pick(m.water.starts),
		TankCount: pick(m.water.counts),
		Heat:      pick(m.warmth.levels),
		HeatStart: pick(m.warmth.starts),
	}

	for _, b := range m.batteries {
		d.Battery = append(d.Battery, pick(b.levels))
	}

	for _, c := range m.cars {
		d.Car = append(d.Car, pick(c.levels))
		d.CarStart = append(d.CarStart, pick(c.starts))
		d.Class = append(d.Class, pick(c.classes))
		d.Need = append(d.Need, y[c.need])
	}

	both := pick(m.shared[:])
	d.Shortfall, d.Peak = both[0], both[1]

	return d
}

// Plus returns the sum of these multipliers and a multiple of others.
func (d *Dual) Plus(ray *Dual, times float64) *Dual {
	rows := func(a, b []float64) []float64 {
		sum := make([]float64, len(a))
		for i := range a {
			sum[i] = a[i] + times*b[i]
		}

		return sum
	}

	lists := func(a, b [][]float64) [][]float64 {
		var sums [][]float64
		for k := range a {
			sums = append(sums, rows(a[k], b[k]))
		}

		return sums
	}

	return &Dual{
		Battery:   lists(d.Battery, ray.Battery),
		Car:       lists(d.Car, ray.Car),
		CarStart:  lists(d.CarStart, ray.CarStart),
		Class:     lists(d.Class, ray.Class),
		Need:      rows(d.Need, ray.Need),
		Tank:      rows(d.Tank, ray.Tank),
		TankStart: rows(d.TankStart, ray.TankStart),
		TankCount: rows(d.TankCount, ray.TankCount),
		Heat:      rows(d.Heat, ray.Heat),
		HeatStart: rows(d.HeatStart, ray.HeatStart),
		Shortfall: d.Shortfall + times*ray.Shortfall,
		Peak:      d.Peak + times*ray.Peak,
	}
}
