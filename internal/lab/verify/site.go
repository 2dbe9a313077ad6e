package verify

import (
	"fmt"
	"math"
	"slices"

	"flexd/internal/engine/site"
)

// SiteChecker works out what no plan of a site comes below, from a proof of which it believes nothing.
//
// What ties slots together (stored energy, temperature, starts, counts, needs) is charged at the multipliers of the
// proof; then each slot is by itself, and the least that it can come to is found by going through all that its devices
// can do (siteSlot). The sum is a lower bound for any multipliers. All sums are rounded down (tally).
type SiteChecker struct {
	p       *site.Problem
	devices int // the meter, batteries, cars, tank and heat pump
	tank    int // their numbers, or -1
	heat    int

	least     []float64 // of each car by itself, kWh of shortfall
	leastPeak float64   // of all cars, kWh
	shortfall float64   // that plans are allowed
	peak      float64
	most      []float64     // that each car may be short
	classes   [][]siteClass // of each car of one power
	counts    []interval    // of the tank's slots on
	inside    []interval    // of the temperature
	slot      siteSlot      // scratch
}

// siteTolerance is the shortfall and peak energy in kWh beyond those of a plan that the plans it is compared with are
// allowed.
const siteTolerance = 1e-9

type interval struct{ low, high float64 }

// goalWeight is what a kWh of shortfall, one in peak time, and a penny count.
type goalWeight struct{ shortfall, peak, cost float64 }

var goalWeights = map[string]goalWeight{
	site.GoalShortfall: {shortfall: 1},
	site.GoalPeak:      {peak: 1},
	site.GoalCost:      {cost: 1},
}

// siteClass is a number of slots in which a car of one power takes the same energy.
type siteClass struct {
	energy float64
	peak   bool
	slots  int
	count  interval // of these, in which it is on
}

// What a device may do in a slot.
const (
	idles uint8 = 1 << iota
	draws
	gives
)

// SiteCase is a part of the plans of a site.
type SiteCase struct {
	modes   []uint8 // of each slot and device
	ruled   []bool  // of each slot: batteries give no more than the building uses
	counts  []interval
	classes [][]interval
	reserve []int // of each car, the slot from whose end on it has its reserve
}

// NewSiteChecker makes a checker of a site, for plans of no more shortfall and peak energy than given, in kWh.
func NewSiteChecker(p *site.Problem, shortfall, peak float64) *SiteChecker {
	c := &SiteChecker{p: p, devices: 1 + len(p.Batteries) + len(p.Cars), tank: -1, heat: -1}

	if p.Tank != nil {
		c.tank = c.devices
		c.devices++
		c.counts = tankCounts(p.Tank, p.Hours)
	}

	if p.Heat != nil {
		c.heat = c.devices
		c.devices++
		c.inside = temperatures(p.Heat, p.Hours)
	}

	c.allow(shortfall, peak)

	return c
}

// allow sets how much shortfall and peak energy plans may have, in kWh: no less than each car has by itself.
func (c *SiteChecker) allow(shortfall, peak float64) {
	cars := c.p.Cars
	sum := 0.0

	for k := range cars {
		c.least = append(c.least, leastShortfall(&cars[k]))
		sum += c.least[k]
	}

	c.shortfall = max(shortfall, sum) + siteTolerance
	for k := range cars {
		c.most = append(c.most, c.shortfall-(sum-c.least[k])+siteTolerance)
		c.leastPeak += leastPeak(&cars[k], c.most[k])
	}

	c.peak = max(peak, c.leastPeak) + siteTolerance

	for k := range cars {
		c.classes = append(c.classes, c.classesOf(&cars[k], c.most[k]))
	}
}

// Least is the shortfall and the peak energy in kWh that each car has by itself at least, summed.
func (c *SiteChecker) Least() (shortfall, peak float64) {
	for _, x := range c.least {
		shortfall += x
	}

	return shortfall, c.leastPeak
}

// All is the case of all plans.
func (c *SiteChecker) All() *SiteCase {
	n := c.p.Slots()
	all := &SiteCase{
		modes:   make([]uint8, n*c.devices),
		ruled:   make([]bool, n),
		counts:  slices.Clone(c.counts),
		classes: make([][]interval, len(c.p.Cars)),
		reserve: make([]int, len(c.p.Cars)),
	}

	for i := range all.modes {
		all.modes[i] = idles | draws | gives
	}

	for k := range c.p.Cars {
		all.reserve[k] = n
		for _, option := range c.classes[k] {
			all.classes[k] = append(all.classes[k], option.count)
		}
	}

	return all
}

// Half is one half of a case. The two halves of any branch hold all plans of the case between them.
func (c *SiteChecker) Half(parent *SiteCase, b *site.Branch, second bool) (*SiteCase, error) {
	car := b.Device - 1 - len(c.p.Batteries)
	slots, known := c.slotsOf(parent, b, car)

	if !known {
		return nil, fmt.Errorf(
			"device %d cannot be divided by %q",
			b.Device,
			b.Split,
		)
	}

	if b.Slot < 0 || b.Slot >= slots {
		return nil, fmt.Errorf(
			"a branch divides slot %d of device %d, which is none",
			b.Slot,
			b.Device,
		)
	}

	half := parent.copied()

	switch b.Split {
	case site.SplitClass:
		half.classes[car] = slices.Clone(parent.classes[car])
		half.classes[car][b.Slot].cut(b.Value, second)
	case site.SplitCount:
		half.counts[b.Slot].cut(b.Value, second)

	case site.SplitReserve:
		c.divideReserve(half, b, car, second)
	case site.SplitRule:
		c.divideRule(half, b, second)
	default:
		half.modes[b.Slot*c.devices+b.Device] &= modesOf(b.Split, second)
	}

	return half, nil
}

// slotsOf is how many slots, or classes of them, a branch may divide, and whether its device can be divided so.
func (c *SiteChecker) slotsOf(parent *SiteCase, b *site.Branch, car int) (int, bool) {
	n := c.p.Slots()
	isCar := car >= 0 && car < len(c.p.Cars)

	switch b.Split {
	case site.SplitClass:
		if !isCar {
			return 0, false
		}

		return len(parent.classes[car]), true

	case site.SplitCount:
		return n, c.tank >= 0 && b.Device == c.tank
	case site.SplitReserve:
		return n, isCar && c.p.Cars[car].V2G != nil
	case site.SplitRule:
		return n, c.p.NoBatteryToCar
	case site.SplitDraw, site.SplitGive, site.SplitWay:
		return n, b.Device >= 0 && b.Device < c.devices
	}

	return 0, false
}

// copied is a copy to be divided.
func (original *SiteCase) copied() *SiteCase {
	return &SiteCase{
		modes:   slices.Clone(original.modes),
		ruled:   slices.Clone(original.ruled),
		counts:  slices.Clone(original.counts),
		classes: slices.Clone(original.classes),
		reserve: slices.Clone(original.reserve),
	}
}

// cut leaves the part of an interval of integers up to a value, or above it.
func (i *interval) cut(value int, above bool) {
	if above {
		i.low = max(i.low, float64(value+1))
	} else {
		i.high = min(i.high, float64(value))
	}
}

// modesOf are the modes in one half of a split.
func modesOf(split site.Split, second bool) uint8 {
	switch {
	case split == site.SplitDraw && second:
		return draws
	case split == site.SplitGive && second:
		return gives
	case split == site.SplitGive || split == site.SplitWay && second:
		return idles | draws
	default:
		return idles | gives
	}
}

// divideReserve divides by the first discharge of a car: if there is one up to the slot, the car has its reserve at its
// end, so at the end of the slot before, and always after it.
func (c *SiteChecker) divideReserve(half *SiteCase, b *site.Branch, car int, second bool) {
	if second {
		half.reserve[car] = min(half.reserve[car], max(0, b.Slot-1))
		return
	}

	for t := range b.Slot + 1 {
		half.modes[t*c.devices+b.Device] &= idles | draws
	}
}

// divideRule divides by whether a car charges in the slot.
func (c *SiteChecker) divideRule(half *SiteCase, b *site.Branch, second bool) {
	if second {
		half.ruled[b.Slot] = true
		return
	}

	for k := range c.p.Cars {
		half.modes[b.Slot*c.devices+1+len(c.p.Batteries)+k] &= idles | gives
	}
}

// Tree is the bound that a tree proves for its goal.
func (c *SiteChecker) Tree(tree *site.Tree) (float64, error) {
	if _, found := goalWeights[tree.Goal]; !found || tree.Root == nil {
		return 0, fmt.Errorf("%q is no goal, or its tree has no root", tree.Goal)
	}

	return c.branch(tree.Goal, tree.Root, c.All(), nil)
}

// branch is the bound that a branch proves for a case.
func (c *SiteChecker) branch(goal string, b *site.Branch, parent *SiteCase, dual *site.Dual) (float64, error) {
	if b.Dual != nil {
		dual = b.Dual
	}

	if len(b.Halves) == 0 {
		return c.Bound(goal, parent, dual)
	}

	if len(b.Halves) != 2 || b.Halves[0] == nil || b.Halves[1] == nil {
		return 0, fmt.Errorf("a branch has %d halves", len(b.Halves))
	}

	bound := math.Inf(1)
	for i, below := range b.Halves {
		half, err := c.Half(parent, b, i == 1)
		if err != nil {
			return 0, err
		}

		proven, err := c.branch(goal, below, half, dual)
		if err != nil {
			return 0, err
		}

		bound = min(bound, proven)
	}

	return bound, nil
}

// SiteFigures are what no plan of a site comes below: kWh of shortfall; kWh in peak time, of plans of a given
// shortfall; pence, of plans of a given shortfall and peak energy.
type SiteFigures struct{ Shortfall, Peak, Cost float64 }

// SiteProof holds the bounds of a plan that check.Site has passed against their proof. It returns what is proven.
func SiteProof(p *site.Problem, r site.Result, proof *site.Proof) (SiteFigures, error) {
	c := NewSiteChecker(p, r.Shortfall, r.Peak)
	figures := SiteFigures{Cost: math.Inf(-1)}
	figures.Shortfall, figures.Peak = c.Least()

	if proof == nil {
		return figures, fmt.Errorf("there is no certificate")
	}

	for i := range proof.Trees {
		tree := &proof.Trees[i]
		bound, err := c.Tree(tree)
		if err != nil {
			return figures, err
		}

		if !(tree.Bound <= bound) {
			return figures, fmt.Errorf(
				"the tree proves a %s of %v, it says %v",
				tree.Goal,
				bound,
				tree.Bound,
			)
		}

		switch tree.Goal {
		case site.GoalShortfall:
			figures.Shortfall = max(figures.Shortfall, tree.Bound)
		case site.GoalPeak:
			figures.Peak = max(figures.Peak, tree.Bound)
		default:
			figures.Cost = max(figures.Cost, tree.Bound)
		}
	}

	if !(r.Bound <= figures.Cost) {
		return figures, fmt.Errorf(
			"the certificate proves a bound of %v p, the plan says %v",
			figures.Cost,
			r.Bound,
		)
	}

	return figures, nil
}
