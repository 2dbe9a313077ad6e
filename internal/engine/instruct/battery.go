package instruct

import (
	"cmp"
	"slices"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/charge"
)

// BatteryWorth is what an instruction has a battery pay at most, in pence, for each kWh that it moves: a battery whose
// home it would cost more is not called. It is above every domestic price so far.
const BatteryWorth = 100.0

// BatteriesMax is how many batteries an instruction looks at, at most, those of sites that were called least often first.
const BatteriesMax = 500

// BatteryCall is what an instruction asks of a battery that is planned by modes. All lists have an element for each
// slot of the problem.
type BatteryCall struct {
	Problem battery.ModeProblem // of its plan in force, with what its site allows
	InForce []battery.Mode
	May     []battery.ModeSet // what it may be sent; what is in force is kept where nothing else may be
	Asked   []bool            // the slots of the instruction
	After   []bool            // slots that the window cuts, or after it: in them it does not move the other way, compared with its plan
	Up      bool              // it is to draw more; else less
}

// BatteryOffer is what a battery would do if it were called.
type BatteryOffer struct {
	Modes  []battery.Mode
	Stored []int // Wh after each slot
	Before []int // the same by the plan in force
	// pence: of energy, changes of mode and what is left at the end, less the same of the plan in force
	Cost float64
}

// Call works out what a battery would do: in the slots of the instruction as much as pays at BatteryWorth, and elsewhere what
// costs its home the least with that. In no slot of the instruction, cut by it or after it, it moves the other way than by
// the plan in force, unless nothing that it may be sent avoids that.
func (c *BatteryCall) Call(w *battery.Solver) BatteryOffer {
	p := c.Problem
	p.Allowed = c.allowedModes()
	p.Import, p.Export = c.Priced(p.Import), c.Priced(p.Export)

	f := BatteryOffer{Modes: make([]battery.Mode, len(c.InForce))}
	var with, without float64
	f.Before, without = modesCost(&c.Problem, c.InForce)

	p.Within = c.within(f.Before)
	w.SolveModes(&p, f.Modes)

	f.Stored, with = modesCost(&c.Problem, f.Modes)
	f.Cost = with - without

	return f
}

// Ease returns the indexes of called batteries that may bring less, the dearest first, without any target being missed by more
// than before. less is what each brings then, and is used only if it is cheaper; nil where it cannot bring less.
func Ease(
	target []charge.Joules,
	called []Candidate,
	less []*Candidate,
) []int {
	missing, _ := Missing(target, called)
	places := make([]int, 0, len(called))
	for i := range called {
		if less[i] != nil && less[i].Cost < called[i].Cost {
			places = append(places, i)
		}
	}

	slices.SortStableFunc(places, func(a, b int) int {
		return cmp.Compare(called[b].Cost, called[a].Cost)
	})

	var restored []int
	for _, i := range places {
		before := shortfall(missing)
		takeOff(missing, &called[i], 1)
		takeOff(missing, less[i], -1)
		if shortfall(missing) > before {
			takeOff(missing, less[i], 1)
			takeOff(missing, &called[i], -1)
			continue
		}
		restored = append(restored, i)
	}

	return restored
}

// Priced are prices with what is asked for in them: drawing costs more in slots that ask for less, and less in those
// that ask for more.
func (c *BatteryCall) Priced(prices []float64) []float64 {
	reward := BatteryWorth
	if c.Up {
		reward = -reward
	}

	out := slices.Clone(prices)
	for t := range out {
		if c.Asked[t] {
			out[t] += reward
		}
	}

	return out
}

// allowedModes are the modes that the battery may be sent: in the slots of the instruction those that bring something,
// or what is in force; after it those that do not take it back.
func (c *BatteryCall) allowedModes() []battery.ModeSet {
	var device battery.Device
	device.Load(&c.Problem)

	sets := make([]battery.ModeSet, len(c.InForce))
	for t, planned := range c.InForce {
		sets[t] = battery.Modes(planned)
		for m := range battery.ModeCount {
			change := device.Move(t, m) - device.Move(t, planned)
			if c.Up {
				change = -change
			}

			restricted := c.Asked[t] || c.After[t]
			if c.May[t].Has(m) && (change <= 0 || !restricted) {
				sets[t] |= battery.Modes(m)
			}
		}
	}

	return sets
}

// within is how far the stored energy may move in each slot: where the battery is not to move the other way, no further that
// way than by the plan in force, whose levels are given. A mode alone does not say that: a battery that the call has emptied charges for
// longer, and cannot give what it was to give.
func (c *BatteryCall) within(before []int) []battery.Bounds {
	bounds := make([]battery.Bounds, len(before))
	level := c.Problem.Init
	for t, next := range before {
		bounds[t] = battery.Unbounded
		planned := next - level
		level = next

		if !c.Asked[t] && !c.After[t] {
			continue
		}

		if c.Up {
			bounds[t].Least = planned
		} else {
			bounds[t].Most = planned
		}
	}

	return bounds
}

// modesCost takes a battery through modes: what is stored after each slot, and what all costs, with changes of mode and less
// what is left at the end.
func modesCost(
	p *battery.ModeProblem,
	modes []battery.Mode,
) ([]int, float64) {
	stored, each := p.Run(modes)
	sum, before := 0.0, p.Previous

	for t, cost := range each {
		sum += cost
		if modes[t] != before {
			sum += p.SwitchCost
		}
		before = modes[t]
	}

	if n := len(stored); n > 0 {
		sum -= p.Terminal * float64(stored[n-1]) / 1000
	}
	if before != battery.ModeSelfUse {
		sum += p.ReturnCost
	}

	return stored, sum
}
