package heat

import "math"

// Grid is the step of the grid in degrees.
const Grid = 0.02

// Building is what is known of a house and its heat pump.
type Building struct {
	Loss     float64 // W per kelvin
	Capacity float64 // Wh per kelvin
	Gain     float64 // W that people and the sun give
	Power    float64 // W of electricity that the heat pump takes at most
}

// Choice is what a heat pump may be asked to do in a slot.
type Choice struct {
	Off    bool    // it gives nothing; Target means nothing
	Lock   bool    // Off, for Problem.Locks slots in a row at most
	Target float64 // it heats up to this many degrees
	Hold   float64 // pence that the choice itself counts
}

// Slot is a time in which one choice holds.
type Slot struct {
	Hours   float64
	Outdoor float64 // degrees
	COP     float64 // heat for electricity
	Price   float64 // of a kWh, in pence
	Low     float64 // the comfort band at the slot's end
	High    float64
	Spare   float64  // degrees above Low below which it falls short, for what the model misses
	Stop    float64  // the same where nothing is heated, if that is more: the air cools sooner than the building
	Choices []Choice // one at least; of several that are alike the first is taken

	// pence that so many Wh of electricity count besides their price; nil for none
	Extra func(energy float64) float64
}

// Problem is one house.
type Problem struct {
	Building
	Slots  []Slot
	Init   float64 // degrees at first
	Runs   bool    // the heat pump runs before the first slot
	Locked int     // slots of a lock before the first slot
	Locks  int     // slots in a row that it may be locked; 0 for any number
	Start  float64 // pence that a start costs
	Worth  float64 // pence of a kWh of electricity whose heat is left at the end
}

// Plan is what the heat pump is asked to do, and what that comes to.
type Plan struct {
	Choice []int     // of each slot's choices
	Temp   []float64 // at the end of each slot
	Energy []float64 // Wh of electricity in each
	Short  int
	Cost   float64
}

// Lowest is how much the plan lacks most of the band's bottom at the end of a slot, and in which; none is slot -1.
func (p *Plan) Lowest(slots []Slot) (float64, int) {
	var slot int
	slot = -1

	var lack float64
	for t := range slots {
		if l := slots[t].Low - p.Temp[t]; l > lack+Grid/2 {
			lack, slot = l, t
		}
	}

	return lack, slot
}

// cellOf is the place of a temperature on the grid.
func cellOf(temp float64) int { return int(math.Round(temp / Grid)) }

// move is what a choice comes to in a slot from one temperature on.
type move struct {
	cell   int
	energy float64 // Wh
	short  int
	cost   float64 // without a start
}

// course is how a house goes through a slot.
type course struct {
	retained float64 // the part that stays of a difference to the balance
	idle     float64 // degrees that the balance adds
	perWh    float64 // degrees that a Wh of electricity adds
	most     float64 // Wh of electricity
	price    float64 // pence of a Wh
	low      int
	stop     int // low, where nothing is heated
	high     int
	extra    func(energy float64) float64 // of its slot
}

// courseOf works out a slot.
func (p *Problem) courseOf(slot *Slot) course {
	retained := math.Exp(-p.Loss * slot.Hours / p.Capacity)

	return course{
		retained: retained,
		idle:     (1 - retained) * (slot.Outdoor + p.Gain/p.Loss),
		perWh:    (1 - retained) / p.Loss * slot.COP / slot.Hours,
		most:     p.Power * slot.Hours,
		price:    slot.Price / 1000,
		low:      cellOf(slot.Low + slot.Spare),
		stop:     cellOf(slot.Low + max(slot.Spare, slot.Stop)),
		high:     cellOf(slot.High),
		extra:    slot.Extra,
	}
}

// move works out a choice.
func (s *course) move(cell int, c *Choice) move {
	temp := s.retained*float64(cell)*Grid + s.idle
	energy := 0.0

	if !c.Off && c.Target > temp {
		energy = min(s.most, (c.Target-temp)/s.perWh)
		temp += energy * s.perWh
	}

	m := move{cell: cellOf(temp), energy: energy}
	m.cost = s.price*energy + c.Hold
	if s.extra != nil {
		m.cost += s.extra(energy)
	}
	m.short = max(0, s.stop-m.cell)

	if energy > 0 {
		m.short = max(0, s.low-m.cell) + max(0, m.cell-s.high)
	}

	return m
}

// The modes before a slot: what a choice costs and whether it may be made depends on them.
const (
	modeRuns = 0
	modeIdle = 1 // and modeIdle+n after n slots of a lock
)

// modes is how many there are.
func (p *Problem) modes() int { return modeIdle + 1 + p.Locks }

// after is the mode that follows, and false where the choice may not be made.
func (p *Problem) after(
	mode int,
	c *Choice,
	m *move,
) (int, bool) {
	locked := max(0, mode-modeIdle)

	if c.Lock && p.Locks > 0 && locked >= p.Locks {
		return 0, false
	}

	if c.Lock && p.Locks > 0 {
		return modeIdle + locked + 1, true
	}

	if m.energy > 0 {
		return modeRuns, true
	}

	return modeIdle, true
}

// first is the mode before the first slot.
func (p *Problem) first() int {
	if p.Runs {
		return modeRuns
	}

	return modeIdle + min(p.Locked, p.Locks)
}

// value is what the rest of a plan comes to.
type value struct {
	short int
	cost  float64
}

func (v value) isBetter(w value) bool {
	if v.short != w.short {
		return v.short < w.short
	}

	return v.cost < w.cost-1e-9
}

// layer holds the best way on from each temperature and mode before a slot.
type layer struct {
	from   int // the lowest cell
	cells  int
	values []value
	picks  []int8
}

// Solve returns the best plan.
func Solve(p *Problem) Plan {
	layers := p.reach()
	last := &layers[len(p.Slots)]

	for i := range last.cells {
		for mode := range p.modes() {
			last.values[i*p.modes()+mode].cost = -p.endValue(last.from + i)
		}
	}

	for t := len(p.Slots) - 1; t >= 0; t-- {
		course := p.courseOf(&p.Slots[t])

		for i := range layers[t].cells {
			p.decide(&p.Slots[t], &course, i, &layers[t], &layers[t+1])
		}
	}

	return p.trace(layers)
}

// endValue is what the heat is worth that is left at the end.
func (p *Problem) endValue(cell int) float64 {
	if len(p.Slots) == 0 {
		return 0
	}

	slot := &p.Slots[len(p.Slots)-1]
	above := float64(cell)*Grid - slot.Low

	return p.Worth * above * p.Capacity / slot.COP / 1000
}

// reach makes the layers, of the temperatures between the coldest and the warmest that can be reached.
func (p *Problem) reach() []layer {
	layers := make([]layer, len(p.Slots)+1)
	low, high := cellOf(p.Init), cellOf(p.Init)
	layers[0] = p.layerOf(low, high)

	for t := range p.Slots {
		slot := &p.Slots[t]
		course := p.courseOf(slot)
		coldest, warmest := math.MaxInt, math.MinInt

		for i := range slot.Choices {
			coldest = min(coldest, course.move(low, &slot.Choices[i]).cell)
			warmest = max(warmest, course.move(high, &slot.Choices[i]).cell)
		}

		low, high = coldest, warmest
		layers[t+1] = p.layerOf(low, high)
	}

	return layers
}

func (p *Problem) layerOf(low, high int) layer {
	n := high - low + 1

	return layer{
		from:   low,
		cells:  n,
		values: make([]value, n*p.modes()),
		picks:  make([]int8, n*p.modes()),
	}
}

// decide finds the best choice from one temperature on, in each mode.
func (p *Problem) decide(
	slot *Slot,
	goes *course,
	i int,
	now, next *layer,
) {
	modes := p.modes()
	row := i * modes

	for mode := range modes {
		now.picks[row+mode] = -1
	}

	for c := range slot.Choices {
		choice := &slot.Choices[c]
		m := goes.move(now.from+i, choice)

		for mode := range modes {
			to, ok := p.after(mode, choice, &m)

			if !ok {
				continue
			}

			v := next.values[(m.cell-next.from)*modes+to]
			v.short += m.short
			v.cost += m.cost + p.startOf(mode, &m)

			if now.picks[row+mode] < 0 || v.isBetter(now.values[row+mode]) {
				now.values[row+mode], now.picks[row+mode] = v, int8(c)
			}
		}
	}

	p.unlock(row, now)
}

// unlock has a mode in which no choice may be made go on with the first one: a slot may have nothing but a lock.
func (p *Problem) unlock(row int, now *layer) {
	for mode := range p.modes() {
		if now.picks[row+mode] < 0 {
			before := row + mode - 1
			now.picks[row+mode], now.values[row+mode] = 0, now.values[before]
		}
	}
}

// startOf is what a move costs that has the heat pump start.
func (p *Problem) startOf(mode int, m *move) float64 {
	if m.energy > 0 && mode != modeRuns {
		return p.Start
	}

	return 0
}

// trace reads the best plan.
func (p *Problem) trace(layers []layer) Plan {
	picks := make([]int, len(p.Slots))
	cell, mode := cellOf(p.Init), p.first()

	for t := range p.Slots {
		l := &layers[t]
		picks[t] = int(l.picks[(cell-l.from)*p.modes()+mode])
		choice := &p.Slots[t].Choices[picks[t]]

		course := p.courseOf(&p.Slots[t])
		m := course.move(cell, choice)
		next, ok := p.after(mode, choice, &m)

		if ok {
			mode = next
		}

		cell = m.cell
	}

	return Run(p, picks)
}

// Run follows choices that are given, with their shortfall and cost. It does not look at how long a lock is.
func Run(p *Problem, choices []int) Plan {
	plan := Plan{Choice: choices}
	cell, mode := cellOf(p.Init), p.first()

	for t, c := range choices {
		choice := &p.Slots[t].Choices[c]
		course := p.courseOf(&p.Slots[t])
		m := course.move(cell, choice)
		plan.Short += m.short
		plan.Cost += m.cost + p.startOf(mode, &m)
		plan.Temp = append(plan.Temp, float64(m.cell)*Grid)
		plan.Energy = append(plan.Energy, m.energy)

		cell, mode = m.cell, modeIdle

		if m.energy > 0 {
			mode = modeRuns
		}
	}

	plan.Cost -= p.endValue(cell)

	return plan
}
