package envelope

import "slices"

// curve is the sum of min(most, power * seconds) over cars, as a function of the seconds: it
// bends where a car is full.
type curve struct {
	bends []int64  // seconds from which on one more car is full, sorted
	full  []Joules // what the first k cars draw when they are full
	watts []int64  // the power of the others
}

// full is a car with the seconds after which it has drawn its fill.
type full struct {
	bend  int64
	most  Joules
	watts int64
}

// newCurve makes the curve of cars, whose order it changes. Bends at the same second are one.
func newCurve(cars []full) curve {
	slices.SortFunc(cars, func(a, b full) int { return int(a.bend - b.bend) })
	c := curve{full: []Joules{0}, watts: []int64{0}}
	for _, k := range cars {
		c.watts[0] += k.watts
	}

	for _, k := range cars {
		last := len(c.bends)
		if last == 0 || c.bends[last-1] != k.bend {
			c.bends = append(c.bends, k.bend)
			c.full = append(c.full, c.full[last])
			c.watts = append(c.watts, c.watts[last])
			last++
		}

		c.full[last] += k.most
		c.watts[last] -= k.watts
	}

	return c
}

// valueAt returns the curve's value after a number of seconds.
func (c *curve) valueAt(seconds int64) Joules {
	k, _ := slices.BinarySearch(c.bends, seconds+1)
	return c.full[k] + Joules(seconds*c.watts[k])
}

// Envelope is the most and the least that a fleet can draw.
type Envelope struct {
	slots    int
	hours    []group
	branches []*branch
}

// group is the cars of the same hours.
type group struct {
	seconds []int64 // by slot
	total   int64
	most    curve
	least   curve
	sum     Joules // of what the cars draw at least
}

// Envelope returns the envelope of the cars that were added.
func (f *Fleet) Envelope() *Envelope {
	e := &Envelope{
		slots: f.slots,
		hours: make([]group, len(f.hours)),
	}
	for _, b := range f.branches {
		e.branches = append(e.branches, b.copy())
	}

	f.curves(e.hours)

	return e
}

// curves works out the cars that no fuse limits, by their hours.
func (f *Fleet) curves(groups []group) {
	begins := make([]int, len(f.hours)+1)
	for h, n := range f.counts {
		begins[h+1] = begins[h] + n
	}

	most := make([]full, len(f.cars))
	least := make([]full, len(f.cars))
	next := slices.Clone(begins)

	for i := range f.cars {
		if f.shared[i] {
			continue
		}

		c := &f.cars[i]
		k := next[c.Hours]
		most[k] = c.filled(c.Most)
		least[k] = c.filled(c.Least)
		next[c.Hours]++
		groups[c.Hours].sum += c.Least
	}

	for h := range groups {
		g := &groups[h]
		g.seconds = f.hours[h]
		g.total = f.seconds(Hours(h), f.all())
		g.most = newCurve(most[begins[h]:begins[h+1]])
		g.least = newCurve(least[begins[h]:begins[h+1]])
	}
}

// filled returns the car with the first whole second at which it has drawn an energy.
func (c *Car) filled(e Joules) full {
	if c.Power == 0 {
		return full{}
	}

	w := int64(c.Power)

	return full{
		bend:  (int64(e) + w - 1) / w,
		most:  e,
		watts: w,
	}
}

// Most returns the most that the fleet can draw in a set of slots.
func (e *Envelope) Most(s Set) Joules {
	var sum Joules
	for i := range e.hours {
		g := &e.hours[i]
		sum += g.most.valueAt(g.secondsIn(s))
	}

	for _, b := range e.branches {
		sum += b.most(s)
	}

	return sum
}

// Least returns the least that the fleet must draw in a set of slots, if every car is to have
// what it needs.
func (e *Envelope) Least(s Set) Joules {
	var sum Joules
	for i := range e.hours {
		g := &e.hours[i]
		sum += g.sum - g.least.valueAt(g.total-g.secondsIn(s))
	}

	for _, b := range e.branches {
		sum += b.least(s)
	}

	return sum
}

// secondsIn returns the permitted seconds in a set of slots.
func (g *group) secondsIn(s Set) int64 {
	var seconds int64
	for t, n := range g.seconds {
		if s.Has(t) {
			seconds += n
		}
	}

	return seconds
}

// Bounds are the least and the most of a window of slots.
type Bounds struct {
	From, To int // slots; To is left out
	Least    Joules
	Most     Joules
}

// Windows returns the bounds of every window, by their first slot and then by their length.
func (e *Envelope) Windows() []Bounds {
	all := make([]Bounds, 0, e.slots*(e.slots+1)/2)
	for from := range e.slots {
		for to := from + 1; to <= e.slots; to++ {
			all = append(all, Bounds{From: from, To: to})
		}
	}

	for i := range e.hours {
		g := &e.hours[i]
		remaining := make([]int64, e.slots+1)
		for t, n := range g.seconds {
			remaining[t+1] = remaining[t] + n
		}

		for k := range all {
			b := &all[k]
			within := remaining[b.To] - remaining[b.From]
			b.Most += g.most.valueAt(within)
			b.Least += g.sum - g.least.valueAt(g.total-within)
		}
	}

	// From one window to the next, one slot longer, little has to be moved.
	for _, cars := range e.branches {
		for k := range all {
			b := &all[k]
			b.Most += cars.most(Window(b.From, b.To))
		}

		for k := range all {
			b := &all[k]
			b.Least += cars.least(Window(b.From, b.To))
		}
	}

	return all
}
