package site

import (
	"cmp"
	"slices"
)

// simplePlan makes a plan without a search. Batteries and heat pump do nothing, the tank is on
// as late as possible, and each car takes what it can reach alone, in its cheapest slots that
// the fuse allows. It returns false if that is not a valid plan.
func (p *Problem) simplePlan(to *Plan, net []float64) (totals, bool) {
	*to = p.newPlan()
	for t := range net {
		net[t] = p.Load[t] - p.PV[t]
	}

	if p.Tank != nil && !p.Tank.heatLate(to.Tank, p.Hours, p.GridImport*p.Hours, net) {
		return totals{}, false
	}

	for k := range p.Cars {
		p.Cars[k].takeBest(p, to.Car[k], net)
	}

	total := p.evaluate(to, net)

	return total, total.worst <= shortfallTolerance
}

// levels is a range of stored energy.
type levels struct{ low, high float64 }

// heatLate turns the element on only in slots without which the tank could not stay within its
// bounds. It returns false if no such schedule exists. It adds what the element draws to net,
// which must not exceed the fuse.
func (k *Tank) heatLate(on []bool, hours, fuse float64, net []float64) bool {
	n := len(on)
	reachable := make([][]levels, n+1)
	reachable[n] = []levels{{k.Min, k.Max}}
	energy := k.Element * hours

	// Backwards: from which levels can the tank stay within its bounds until the end?
	for t := n - 1; t >= 0; t-- {
		reachable[t] = k.levelsBefore(reachable[t+1], t, 0, nil)
		if net[t]+energy <= fuse {
			reachable[t] = k.levelsBefore(reachable[t+1], t, energy, reachable[t])
		}
	}

	// Forwards: heat only where the tank would otherwise leave these levels.
	stored := k.Init
	for t := range on {
		stored = stored*(1-k.Loss) - k.Draw[t]
		if within(reachable[t+1], stored) {
			continue
		}

		stored += energy
		on[t] = true
		net[t] += energy

		if !within(reachable[t+1], stored) || net[t] > fuse+shortfallTolerance {
			return false
		}
	}

	return true
}

// levelsBefore adds to with the ranges from which a given energy in a slot leads into one of
// the next ranges. The result is sorted and has no overlaps.
func (k *Tank) levelsBefore(
	next []levels,
	t int,
	energy float64,
	with []levels,
) []levels {
	all := slices.Clone(with)
	for _, l := range next {
		from := levels{
			(l.low + k.Draw[t] - energy) / (1 - k.Loss),
			(l.high + k.Draw[t] - energy) / (1 - k.Loss),
		}

		from.low, from.high = max(from.low, k.Min), min(from.high, k.Max)
		if from.low <= from.high {
			all = append(all, from)
		}
	}

	slices.SortFunc(all, func(a, b levels) int { return cmp.Compare(a.low, b.low) })

	var merged []levels
	for _, l := range all {
		if n := len(merged); n > 0 && l.low <= merged[n-1].high {
			merged[n-1].high = max(merged[n-1].high, l.high)
		} else {
			merged = append(merged, l)
		}
	}

	return merged
}

// within reports whether a level lies in one of the ranges.
func within(spans []levels, stored float64) bool {
	return slices.ContainsFunc(spans, func(l levels) bool {
		return stored >= l.low && stored <= l.high
	})
}

// choice is a number of slots of each class, with the energy that they can take off-peak and
// in peak time.
type choice struct {
	slots     []int
	off, peak span
}

// choicesMost is the most choices of a car's slots that are listed.
const choicesMost = 1 << 18

// tooMany reports whether there are more choices of slots than are listed. Their number is the
// product over all classes. With a tariff whose ranges begin and end at odd minutes, nearly
// each half-hour is a class of its own.
func tooMany(off, peak []class) bool {
	count := 1
	for _, c := range slices.Concat(off, peak) {
		count *= c.slots + 1
		if count > choicesMost {
			return true
		}
	}

	return false
}

// choices returns all numbers of slots of the classes, those of peak time last.
func choices(off, peak []class) []choice {
	all := []choice{{}}
	for i, c := range slices.Concat(off, peak) {
		var next []choice
		for _, before := range all {
			for n := range c.slots + 1 {
				next = append(next, before.addClass(n, c, i >= len(off)))
			}
		}

		all = next
	}

	return all
}

// addClass returns the choice with n slots of one more class.
func (c choice) addClass(n int, added class, peak bool) choice {
	c.slots = append(slices.Clone(c.slots), n)
	s := &c.off
	if peak {
		s = &c.peak
	}

	s.least += float64(n) * added.least
	s.most += float64(n) * added.most

	return c
}

// takeBest plans a car for what it can reach alone, as far as the fuse allows. A car that may
// discharge takes all it can until its target. A car with too many choices of slots takes
// nothing.
func (c *Car) takeBest(p *Problem, x, net []float64) {
	if c.V2G != nil {
		c.chargeToTarget(p, x, net)

		return
	}

	off, peak := c.classes(false), c.classes(true)
	if tooMany(off, peak) {
		return
	}

	best, found := c.best(choices(off, peak))

	rest := c.Energy - best.shortfall
	for i, class := range slices.Concat(off, peak) {
		if i < len(found.slots) {
			rest -= c.start(p, x, net, class, i >= len(off), found.slots[i])
		}
	}

	for _, inPeak := range []bool{false, true} {
		for t := range x {
			if x[t] > 0 && c.peak(t) == inPeak {
				more := max(0, min(rest, c.most(t)-x[t], p.GridImport*p.Hours-net[t]))
				x[t] += more
				net[t] += more
				rest -= more
			}
		}
	}
}

// best returns the best that a car can reach alone by some choices, and one of the choices
// that reach it.
func (c *Car) best(all []choice) (reach, choice) {
	best, found := reach{shortfall: c.Energy}, choice{}
	for _, n := range all {
		if candidate, ok := c.reachBy(n); ok && candidate.isBetter(best) {
			best, found = candidate, n
		}
	}

	return best, found
}

// reachBy returns the best that a car can reach by a choice. It returns false if the choice
// takes more than the car needs.
func (c *Car) reachBy(n choice) (reach, bool) {
	most := min(c.Energy, n.off.most+n.peak.most)
	candidate := reach{max(0, c.Energy-most), max(n.peak.least, most-n.off.most)}

	return candidate, n.off.least+n.peak.least <= c.Energy+1e-9
}

// numbers returns the least and the greatest number of slots in each class in which a car with
// one power can be on, if it reaches the best that it can alone. For a car that may discharge,
// any number is possible. It returns nil if there are too many choices.
func (c *Car) numbers(off, peak []class) (least, most []int) {
	if c.V2G != nil {
		for _, kind := range off {
			most = append(most, kind.slots)
		}

		return make([]int, len(most)), most
	}

	if tooMany(off, peak) {
		return nil, nil
	}

	all := choices(off, peak)
	best, _ := c.best(all)

	for _, n := range all {
		candidate, ok := c.reachBy(n)
		if !ok || best.isBetter(candidate) {
			continue
		}

		if least == nil {
			least, most = slices.Clone(n.slots), slices.Clone(n.slots)
		}

		for i, slots := range n.slots {
			least[i], most[i] = min(least[i], slots), max(most[i], slots)
		}
	}

	return least, most
}

// start plans the car's least energy in the cheapest slots of a class, up to count of them. It
// returns the energy.
func (c *Car) start(
	p *Problem,
	x, net []float64,
	kind class,
	peak bool,
	count int,
) float64 {
	var slots []int
	for t := range x {
		belongs := c.most(t) == kind.most && c.peak(t) == peak
		if belongs && net[t]+max(kind.least, on) <= p.GridImport*p.Hours {
			slots = append(slots, t)
		}
	}

	slices.SortStableFunc(slots, func(a, b int) int { return cmp.Compare(p.Import[a], p.Import[b]) })
	sum := 0.0

	for _, t := range slots[:min(count, len(slots))] {
		x[t] = max(kind.least, 2*on)
		net[t] += x[t]
		sum += x[t]
	}

	return sum
}

// chargeToTarget charges a car that may discharge from the first slot on until it has its
// target. If its least power gives more than is missing, it takes that if it can store it.
func (c *Car) chargeToTarget(p *Problem, x, net []float64) {
	v := c.V2G
	missing := v.Target - v.Arrival

	for t := range x {
		least := max(c.Min*c.Available[t], 2*on)
		spare := (missing + v.Max - v.Target) / v.ChargeEff
		energy := min(
			c.most(t),
			p.GridImport*p.Hours-net[t],
			max(least, missing/v.ChargeEff),
			spare,
		)

		if missing <= on || energy < least {
			continue
		}

		x[t] = energy
		net[t] += energy
		missing -= energy * v.ChargeEff
	}

	if missing > on {
		c.dischargeFirst(p, x, net, missing)
	}
}

// dischargeFirst plans a car whose last missing energy is less than it takes at its least
// power. The car first discharges in one slot, so that it can take its least in a later one
// and ends at the target. Of all pairs of slots in which it is idle, the cheapest is used.
func (c *Car) dischargeFirst(p *Problem, x, net []float64, missing float64) {
	dischargeSlot, chargeSlot := none, none
	cheapest := 0.0

	for a := range x {
		for b := a + 1; b < len(x); b++ {
			energy, ok := c.exchangeEnergy(p, x, net, missing, a, b)
			price := p.Import[b]*c.Min*c.Available[b] - p.Export[a]*energy

			if ok && (dischargeSlot < 0 || price < cheapest) {
				dischargeSlot, chargeSlot = a, b
				cheapest = price
			}
		}
	}

	if dischargeSlot < 0 {
		return
	}

	x[dischargeSlot], _ = c.exchangeEnergy(p, x, net, missing, dischargeSlot, chargeSlot)
	x[dischargeSlot] = -x[dischargeSlot]
	x[chargeSlot] = c.Min * c.Available[chargeSlot]
	net[dischargeSlot] += x[dischargeSlot]
	net[chargeSlot] += x[chargeSlot]
}

// exchangeEnergy returns what a car discharges in slot a if it takes its least in slot b and
// then stores exactly what was missing. It returns false if that breaks a limit.
func (c *Car) exchangeEnergy(
	p *Problem,
	x, net []float64,
	missing float64,
	a, b int,
) (float64, bool) {
	v := c.V2G
	least := c.Min * c.Available[b]
	discharged := (least*v.ChargeEff - missing) * v.Efficient
	idle := x[a] == 0 && x[b] == 0 && c.most(b) > 0

	if !idle || discharged < v.MinDischarge*c.Available[a] || discharged > v.Discharge*c.Available[a] {
		return 0, false
	}

	stored := v.Arrival
	for t := range a {
		stored += x[t] * v.ChargeEff
	}

	grid := net[b]+least <= p.GridImport*p.Hours && net[a]-discharged >= -p.GridExport*p.Hours

	return discharged, grid && stored-discharged/v.Efficient >= v.Reserve
}
