package tank

import "math"

// Slot is a time in which the element is on or off.
type Slot struct {
	Heat   int     // Wh that the element gives if it is on throughout
	Draw   int     // Wh that leave the tank as hot water and as loss
	Price  float64 // of a kWh, in pence
	Closed bool    // the element must be off
	Hold   float64 // pence that being on counts in it besides
	Spare  int     // Wh above 0 below which the level falls short at its end, for more than is expected

	// pence that so many Wh of heat count besides their price; nil for none
	Extra func(heat float64) float64
}

// Problem is one tank.
type Problem struct {
	Top   int // Wh at the top of the comfort band, whose bottom is 0
	Floor int // Wh, below 0, at which all of its water is cold
	Init  int // Wh at first
	Slots []Slot
	Start float64 // pence that switching on costs
	Hold  float64 // pence for each slot in which the element is on, hot tank or not
	On    bool    // the element is on before the first slot
	Worth float64 // pence of a kWh that is left at the end
}

// Plan is what the element does, and what that comes to.
type Plan struct {
	On    []bool
	Level []int // Wh at the end of each slot
	Heat  []int // Wh that the element gives in each
	Short int   // Wh below 0, or what is spare, at the ends of all slots, and not drawn, added up
	Cost  float64
}

// Lowest is the lowest level at the end of a slot, and which slot that is. Without slots it is none.
func (p *Plan) Lowest() (level, slot int) {
	slot = -1
	for i, l := range p.Level {
		if slot < 0 || l < level {
			level, slot = l, i
		}
	}

	return level, slot
}

// state is one that can be reached at the end of a slot, with the best way there.
type state struct {
	level int
	heat  int // in the slot
	on    bool
	from  int // the state before, by its place
	short int
	cost  float64
}

// Solve returns the best plan.
func Solve(p *Problem) Plan {
	states := make([][]state, len(p.Slots)+1)
	first := state{level: min(max(p.Init, p.Floor), p.Top), on: p.On}
	states[0] = []state{first}

	for t := range p.Slots {
		var on []state
		off := p.allAfter(t, states[t], false)
		if !p.Slots[t].Closed {
			on = p.allAfter(t, states[t], true)
		}

		states[t+1] = bestOfEach(off, on)
	}

	last := states[len(p.Slots)]
	end := 0
	for i := range last {
		last[i].cost -= p.Worth * float64(last[i].level) / 1000
		if isBetter(&last[i], &last[end]) {
			end = i
		}
	}

	return trace(states, end)
}

// Run follows a plan that is given, with its shortfall and cost. An element in a closed slot is off.
func Run(p *Problem, on []bool) Plan {
	s := state{level: min(max(p.Init, p.Floor), p.Top), on: p.On}
	plan := Plan{}
	for t := range p.Slots {
		s = p.after(t, s, 0, on[t] && !p.Slots[t].Closed)
		plan.On = append(plan.On, s.on)
		plan.Level = append(plan.Level, s.level)
		plan.Heat = append(plan.Heat, s.heat)
	}

	plan.Short = s.short
	plan.Cost = s.cost - p.Worth*float64(s.level)/1000

	return plan
}

// after is the state that follows on another one.
func (p *Problem) after(
	t int,
	s state,
	from int,
	on bool,
) state {
	slot := &p.Slots[t]
	level := s.level - slot.Draw
	s.heat = 0
	if on {
		s.heat = min(slot.Heat, max(0, p.Top-level))
		level += s.heat
		s.cost += slot.Price * float64(s.heat) / 1000
	}
	if slot.Extra != nil {
		s.cost += slot.Extra(float64(s.heat))
	}

	if on {
		s.cost += p.Hold + slot.Hold
	}
	if on && !s.on {
		s.cost += p.Start
	}

	if level < p.Floor {
		s.short += p.Floor - level
		level = p.Floor
	}

	s.short += max(0, slot.Spare-level)
	s.level, s.on = level, on
	s.from = from

	return s
}

// allAfter are the states that follow on others. They are in the order of their levels, as those are: a fuller tank stays as
// full as the other at least, whatever is done with both.
func (p *Problem) allAfter(t int, before []state, on bool) []state {
	next := make([]state, len(before))
	for i, s := range before {
		next[i] = p.after(t, s, i, on)
	}

	return next
}

// bestOfEach merges the states in which the element is off and those in which it is on, each in the order of their levels, and
// leaves the best of all that are alike.
func bestOfEach(off, on []state) []state {
	best := make([]state, 0, len(off)+len(on))
	for len(off) > 0 || len(on) > 0 {
		least := &off
		if len(off) == 0 || len(on) > 0 && on[0].level < off[0].level {
			least = &on
		}

		s := (*least)[0]
		*least = (*least)[1:]
		n := len(best)
		alike := n > 0 && best[n-1].level == s.level && best[n-1].on == s.on
		if !alike {
			best = append(best, s)
		} else if isBetter(&s, &best[n-1]) {
			best[n-1] = s
		}
	}

	return best
}

// isBetter reports whether a state is worth more than another one.
func isBetter(a, b *state) bool {
	if a.short != b.short {
		return a.short < b.short
	}
	return a.cost < b.cost-1e-9
}

// trace reads the plan that leads to one of the last states.
func trace(states [][]state, end int) Plan {
	n := len(states) - 1
	last := &states[n][end]
	plan := Plan{
		On:    make([]bool, n),
		Level: make([]int, n),
		Heat:  make([]int, n),
		Short: last.short,
		Cost:  last.cost,
	}

	for t := n; t > 0; t-- {
		s := &states[t][end]
		plan.On[t-1], plan.Level[t-1] = s.on, s.level
		plan.Heat[t-1] = s.heat
		end = s.from
	}

	return plan
}

// HeatOf is the heat in Wh that some litres of water take for some kelvins.
func HeatOf(litres, kelvins float64) int {
	const perLitre = 1.163 // Wh per kelvin
	return int(math.Round(perLitre * litres * kelvins))
}
