package instruct

import (
	"cmp"
	"slices"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/charge"
)

// BatteryWorth is the most that an instruction may cost a battery's home, in pence for each
// kWh moved. A battery that would cost more is not called. It is above every domestic price so
// far.
const BatteryWorth = 100.0

// BatteriesMax is the most batteries that are considered for an instruction; those of sites
// that were called least often come first.
const BatteriesMax = 500

// BatteryCall is what an instruction asks of a battery that is planned by modes. Every list
// has one element for each slot of the problem.
type BatteryCall struct {
	Problem battery.ModeProblem // the problem of its plan in force, with the modes that its site allows
	InForce []battery.Mode
	May     []battery.ModeSet // the modes that it may be sent; if there are none, the mode in force stays
	Asked   []bool            // the slots of the instruction
	After   []bool            // the slots that the window cuts, and those after it; in them the battery must not move the other way, compared with its plan
	Up      bool              // it is to draw more; otherwise less
}

// BatteryOffer is what a battery would do if it were called.
type BatteryOffer struct {
	Modes  []battery.Mode
	Stored []int // Wh after each slot
	Before []int // the same by the plan in force
	// pence, for energy and changes of mode, less the worth of what is left at the end;
	// compared with the plan in force
	Cost float64
}

// Call plans what a battery would do if it were called. In the slots of the instruction it
// moves as much as pays at BatteryWorth, and elsewhere it does what then costs its home the
// least. In the slots of the instruction, in those that the window cuts and after it, the
// battery does not move the other way than by the plan in force, unless the modes that it may
// be sent leave no choice.
func (c *BatteryCall) Call(w *battery.Solver) BatteryOffer {
	p := c.Problem
	p.Allowed = c.allowedModes()
	p.Import, p.Export = c.Priced(p.Import), c.Priced(p.Export)

	f := BatteryOffer{Modes: make([]battery.Mode, len(c.InForce))}
	var with, without float64
	f.Before, without = modesCost(&c.Problem, c.InForce)

	// Plan the slots again with the reward of the instruction in the prices.
	p.Within = c.within(f.Before)
	w.SolveModes(&p, f.Modes)

	f.Stored, with = modesCost(&c.Problem, f.Modes)
	f.Cost = with - without

	return f
}

// Ease returns the indexes of called batteries that may bring less without any target being
// missed by more than before, the most expensive first. less is what each would bring then. It
// is used only if it costs less, and is nil if the battery cannot bring less.
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

	var eased []int
	for _, i := range places {
		before := shortfall(missing)
		subtractChange(missing, &called[i], 1)
		subtractChange(missing, less[i], -1)
		if shortfall(missing) > before {
			subtractChange(missing, less[i], 1)
			subtractChange(missing, &called[i], -1)
			continue
		}
		eased = append(eased, i)
	}

	return eased
}

// Priced returns prices that include the instruction. Drawing costs more in slots that ask for
// less, and less in slots that ask for more.
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

// allowedModes returns the modes that the battery may be sent. In the slots of the instruction
// these are the ones that help, and the one in force. In the slots after it, these are the
// ones that do not reverse the change.
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

// within returns how far the stored energy may move in each slot. If the battery must not move
// the other way, it may move no further that way than by the plan in force, whose levels are
// given. The allowed modes alone do not ensure that: a battery that the call has emptied would
// charge for longer in the same mode.
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

// modesCost runs a battery through modes. It returns the energy stored after each slot, and
// the total cost, with changes of mode and less the worth of what is left at the end.
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
