package site

import "math"

// mode is one of the states of a device in a slot. Its energy lies between least and most,
// both at least 0, and goes to the site (gives) or comes from it.
type mode struct {
	least, most float64
	discharges  bool
	energy      int // coordinate of the energy above from, or none
	from        float64
	on          int  // coordinate that is 1 in this mode, or none
	ruled       bool // its energy counts in the rule that no battery discharges into a car
	charges     bool // a car charges, so that the rule applies
}

// slotSet is the set of all that a site can do in one slot: one mode for each device, and
// energies that balance. The coordinates of its points are columns of the programme.
type slotSet struct {
	columns []int
	scale   []float64
	devices [][]mode
	balance float64 // the energy given less the energy taken
	load    float64 // the load that batteries may serve while a car charges
	rule    bool

	choice       []int
	items        []slotItem
	combinations int // the number of combinations of modes, which counts as work
}

// slotItem is a part of the balance: an energy from least to most, with the cost of one kWh
// more.
type slotItem struct {
	device      int
	least, most float64
	slope       float64
	ruled       bool
}

// slotSetOf returns the set of what can be done in slot t.
func (m *model) slotSetOf(t int) *slotSet {
	p := m.p
	s := &slotSet{
		balance: p.Load[t] - p.PV[t],
		load:    p.Load[t],
		rule:    p.NoBatteryToCar,
	}

	m.addGridModes(s, t)

	for _, b := range m.batteries {
		discharge := modeOf(b.discharge[t], true)
		discharge.ruled = true
		s.add(modeOf(b.charge[t], false), discharge)
	}

	for _, c := range m.cars {
		m.addCarModes(s, &c, t)
	}

	m.addHeatModes(s, t)
	s.place(m)

	return s
}

// addGridModes adds import, export and curtailment.
func (m *model) addGridModes(s *slotSet, t int) {
	in, out := m.imported[t], m.exported[t]
	s.add(
		mode{
			most:       m.upper[in],
			discharges: true,
			energy:     in,
			on:         none,
		},
		mode{
			most:   m.upper[out],
			energy: out,
			on:     none,
		},
	)

	if m.p.Curtailable && m.p.PV[t] > 0 {
		s.add(mode{
			most:   m.p.PV[t],
			energy: none,
			on:     none,
		})
	}
}

// addHeatModes adds what tank and heat pump may do.
func (m *model) addHeatModes(s *slotSet, t int) {
	idle := mode{energy: none, on: none}

	if m.tank != nil {
		size := m.p.Tank.Element * m.p.Hours
		s.add(idle, mode{
			least:  size,
			most:   size,
			energy: none,
			on:     m.tank[t],
			ruled:  true,
		})
	}

	if m.heat == nil {
		return
	}

	heat := modeOf(m.heat[t], false)
	heat.ruled = true

	if heat.least > 0 || heat.on >= 0 {
		s.add(idle, heat)
	} else {
		s.add(heat)
	}
}

// addCarModes adds what a car may do: nothing, charge, or discharge.
func (m *model) addCarModes(s *slotSet, c *storage, t int) {
	var modes []mode

	if d := c.charge[t]; d.most > 0 {
		charge := modeOf(d, false)
		charge.charges = true
		modes = append(modes, charge)
	}

	if c.discharge != nil && c.discharge[t].most > 0 {
		modes = append(modes, modeOf(c.discharge[t], true))
	}

	if len(modes) == 0 {
		return
	}

	idle := mode{energy: none, on: none}

	if s.rule || modes[0].least > 0 || modes[0].on >= 0 {
		modes = append(modes, idle)
	} else if last := modes[len(modes)-1]; last.least > 0 {
		modes = append(modes, idle)
	}

	s.add(modes...)
}

// modeOf returns the mode in which a draw is used.
func modeOf(d draw, discharges bool) mode {
	x := mode{
		least:      d.least,
		most:       d.most,
		discharges: discharges,
		energy:     d.more,
		on:         d.on,
	}

	if d.on >= 0 {
		x.from = d.least
	}

	return x
}

func (s *slotSet) add(modes ...mode) { s.devices = append(s.devices, modes) }

// place numbers the coordinates.
func (s *slotSet) place(m *model) {
	at := func(column int) int {
		if column < 0 {
			return none
		}

		s.columns = append(s.columns, column)
		s.scale = append(s.scale, max(m.upper[column], energyTolerance))

		return len(s.columns) - 1
	}

	for _, modes := range s.devices {
		for i := range modes {
			modes[i].energy, modes[i].on = at(modes[i].energy), at(modes[i].on)
		}
	}

	s.choice = make([]int, len(s.devices))
}

// least finds the point at which a linear function is least, and its value.
func (s *slotSet) least(weight, point []float64) float64 {
	best := math.Inf(1)
	clear(s.choice)

	for {
		s.combinations++
		if v := s.fill(weight); v < best {
			best = v
			s.point(point)
		}

		if !s.advance() {
			return best
		}
	}
}

// advance selects the next combination of modes.
func (s *slotSet) advance() bool {
	for d, modes := range s.devices {
		s.choice[d]++
		if s.choice[d] < len(modes) {
			return true
		}

		s.choice[d] = 0
	}

	return false
}

// fill finds the energies of the chosen modes that balance at the least weight. Each item is
// filled from its least value up, the cheapest first. The rule bounds the sum of some items,
// which does not change that order.
func (s *slotSet) fill(weight []float64) float64 {
	value, charges := s.listModes(weight)
	missing, headroom := s.balance, math.Inf(1)

	if s.rule && charges {
		headroom = s.load
	}

	for _, x := range s.items {
		missing -= x.least

		if x.ruled {
			headroom -= x.least
		}
	}

	if missing < -energyTolerance/100 || headroom < -energyTolerance/100 {
		return math.Inf(1)
	}

	for i := range s.items {
		x := &s.items[i]
		more := max(0, min(x.most-x.least, missing))

		if x.ruled {
			more = max(0, min(more, headroom))
			headroom -= more
		}

		x.most = x.least + more
		missing -= more
		value += more * x.slope
	}

	if missing > energyTolerance/100 {
		return math.Inf(1)
	}

	return value
}

// listModes lists the chosen modes, sorted by the weight of one kWh more in the balance. It
// returns their weight at their least values, and whether a car charges.
func (s *slotSet) listModes(weight []float64) (value float64, charges bool) {
	s.items = s.items[:0]

	for d, modes := range s.devices {
		x := &modes[s.choice[d]]
		charges = charges || x.charges
		item := slotItem{
			device: d,
			least:  x.least,
			most:   x.most,
			ruled:  x.ruled,
		}

		slope := 0.0

		if x.energy >= 0 {
			slope = weight[x.energy]
		}

		if x.on >= 0 {
			value += weight[x.on]
		}

		item.slope = slope
		value += slope * (x.least - x.from)

		if !x.discharges {
			item.least, item.most = -x.most, -x.least
			item.slope = -slope
			value += slope * (x.most - x.least)
		}

		s.insert(item)
	}

	return value, charges
}

// insert adds an item in sorted order.
func (s *slotSet) insert(x slotItem) {
	s.items = append(s.items, x)

	for i := len(s.items) - 1; i > 0 && s.items[i-1].slope > x.slope; i-- {
		s.items[i], s.items[i-1] = s.items[i-1], x
	}
}

// point returns the coordinates of what fill found.
func (s *slotSet) point(to []float64) {
	clear(to)

	for _, item := range s.items {
		x := &s.devices[item.device][s.choice[item.device]]
		e := math.Abs(item.most) // the value that fill gave it

		if x.energy >= 0 {
			to[x.energy] = e - x.from
		}

		if x.on >= 0 {
			to[x.on] = 1
		}
	}
}
