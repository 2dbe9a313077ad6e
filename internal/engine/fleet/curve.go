package fleet

import (
	"math"
	"math/bits"
	"slices"

	"flexd/internal/engine/bitselect"
)

// class is a set of cars with one price curve: one node of the tree, one adder, and the same
// peak slots as far as they are known. Slots outside a car's window do not matter, so one
// class serves cars with different windows.
type class struct {
	node  int32
	adder float64
	peak  uint64
	flat  uint64
}

const (
	// classesPerKey is the most classes of one node and adder, and maxClasses the most in all.
	// A car that fits none of them has its own order, which is sorted whenever it is needed.
	classesPerKey = 32
	maxClasses    = 8192
	noClass       = math.MaxUint32
)

// classKey has the properties that all cars of a class share.
type classKey struct {
	node  int32
	adder float64
}

// class returns the class that a car may be in, and its slots with and without the adder. A
// car that never pays an adder can be in a class with any other such car.
func (e *EV) class(tree *tree) (k classKey, peak, flat uint64) {
	window := uint64(2<<e.Last-1) &^ (1<<e.First - 1)
	peak = e.Peak & window
	k = classKey{tree.node[e.Group], e.PeakAdder}
	if peak == 0 || e.PeakAdder == 0 {
		k.adder, peak = 0, 0
	}

	return k, peak, window &^ peak
}

// classesOf assigns the cars to classes and returns the class of each.
func classesOf(p *Problem, tree *tree) ([]class, []uint32) {
	like := map[classKey][]uint32{}
	classOf := make([]uint32, len(p.EVs))

	var classes []class
	for i := range p.EVs {
		k, peak, flat := p.EVs[i].class(tree)
		list := like[k]
		at := slices.IndexFunc(list, func(c uint32) bool {
			return k.adder == 0 ||
				classes[c].flat&peak == 0 && classes[c].peak&flat == 0
		})

		if at < 0 &&
			(len(list) >= classesPerKey || len(classes) >= maxClasses) {
			classOf[i] = noClass
			continue
		}

		if at < 0 {
			at = len(list)
			list = append(list, uint32(len(classes)))
			like[k] = list
			classes = append(classes, class{node: k.node, adder: k.adder})
		}

		classOf[i] = list[at]
		c := &classes[classOf[i]]
		c.peak |= peak
		c.flat |= flat
	}

	return classes, classOf
}

// curve has the slots of a class in the order of their prices. A slot that is not cheaper than
// leaving the need unserved has no rank.
type curve struct {
	price  [MaxSlots]float64
	slot   [MaxSlots]uint8      // in the order of price, all of them
	slots  int                  // how many; 0 until it is sorted first
	rank   [MaxSlots]uint8      // of a slot; 255 for none
	before [MaxSlots + 1]uint64 // ranks of the slots before the i-th
	first  [MaxSlots + 1]uint64 // slots of the first r ranks
}

// sort sets the curve to the prices w of the class's node and its own adder. It uses insertion
// into the previous order, since few prices move far between two rounds.
func (c *curve) sort(class *class, w []float64, unserved float64) {
	if c.slots != len(w) {
		c.slots = len(w)
		for t := range w {
			c.slot[t] = uint8(t)
		}
	}

	for t, p := range w {
		if class.peak>>t&1 == 1 {
			p += class.adder
		}
		c.price[t] = p
	}

	order := c.slot[:len(w)]
	for i := 1; i < len(order); i++ {
		t, j := order[i], i
		for p := c.price[t]; j > 0; j-- {
			if o := order[j-1]; c.price[o] < p || c.price[o] == p && o < t {
				break
			}
			order[j] = order[j-1]
		}

		order[j] = t
	}

	for r, t := range order {
		c.rank[t] = uint8(r)
		if c.price[t] >= unserved {
			c.rank[t] = 255
		}
		c.first[r+1] = c.first[r] | 1<<t
	}

	for t := range w {
		c.before[t+1] = c.before[t]
		if r := c.rank[t]; r != 255 {
			c.before[t+1] |= 1 << r
		}
	}
}

// choice is a car's best answer to a curve: full power in all slots, except for cut kWh less
// in the slot at.
type choice struct {
	slots uint64
	at    uint8
	cut   float64
	short float64 // kWh unserved
}

// choose returns the car's choice on the curve: its cheapest slots until the need is met. The
// first slot in time may be partial.
func (c *curve) choose(e *EV) choice {
	open := c.before[e.Last+1] &^ c.before[e.First]
	u := e.MaxKW * SlotHours
	if open == 0 || u == 0 || e.EnergyKWh == 0 {
		return choice{short: e.EnergyKWh}
	}

	miss := u * (1 - e.FirstFraction)
	sums := bitselect.Sums(open)
	total := uint32(sums >> 56)
	n := total
	if need := e.EnergyKWh / u; need < float64(total) {
		n = uint32(need)
		if float64(n) < need || n == 0 {
			n++
		}
	}

	r := bitselect.Nth(open, sums, n)
	energy := float64(n) * u
	first := uint32(c.rank[e.First])
	if first <= r {
		energy -= miss
	}

	if energy < e.EnergyKWh && n < total {
		r = uint32(bits.TrailingZeros64(open &^ (2<<r - 1)))
		energy += u
		if first == r {
			energy -= miss
		}
	}

	var k choice
	k.slots = c.first[r+1] & (2<<e.Last - 1) &^ (1<<e.First - 1)
	if remaining := energy - e.EnergyKWh; remaining > 0 {
		k.cut, k.at = remaining, c.slot[r]
	} else {
		k.short = -remaining
	}

	return k
}

// add adds the choice's energy to load.
func (k *choice) add(e *EV, load *[MaxSlots]float64) {
	u := e.MaxKW * SlotHours
	for s := k.slots; s != 0; s &= s - 1 {
		load[bits.TrailingZeros64(s)&63] += u
	}

	if k.slots>>e.First&1 == 1 {
		load[e.First&63] -= u * (1 - e.FirstFraction)
	}
	load[k.at&63] -= k.cut
}
