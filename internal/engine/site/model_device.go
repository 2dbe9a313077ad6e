package site

import "slices"

// carsOf adds the cars, their shortfalls and the limits on these.
func (m *model) carsOf(l limits) {
	p := m.p
	sum, peak := none, none

	if l.together {
		sum = m.row(l.shortSum)
	}

	if m.peaks() {
		peak = m.row(l.peakSum)
	}

	for k := range p.Cars {
		c := &p.Cars[k]
		most := c.Energy

		if c.V2G != nil {
			most = c.V2G.Target
		}

		least := 0.0

		if !l.together && l.shortfall != nil {
			least, most = l.shortfall[k], l.shortfall[k]
		}

		m.countEntries = nil
		m.classRows, m.classOn = nil, nil
		detailed := !l.together && l.shortfall != nil || c.V2G != nil
		if detailed && c.oneSpeed() {
			m.countCar(c)
		}

		m.car(k, c, sum, peak, least, most)
	}

	m.shared = [2]int{sum, peak}
	m.shortSum, m.peak = none, none

	if sum >= 0 {
		m.shortSum = m.slack(sum, 0, l.shortSum+1)
	}

	if peak >= 0 {
		m.peak = m.slack(peak, 0, l.peakSum+1)
	}
}

// peaks reports whether a car may take peak energy.
func (m *model) peaks() bool {
	for k := range m.p.Cars {
		if m.p.Cars[k].OffPeak != nil && m.p.Cars[k].PeakToo {
			return true
		}
	}

	return false
}

// car adds a car: its energy or what it stores, and its shortfall.
func (m *model) car(k int, c *Car, sum, peak int, least, most float64) {
	var starts *chain

	if c.StartCost > 0 {
		chain := m.newChain(c.StartCost, func(t int) bool {
			return c.most(t) > 0
		})
		starts = &chain
	}

	var s storage
	if starts != nil {
		s.starts = starts.rows
	}

	s.classes, s.classOn = m.classRows, m.classOn
	rows, target := m.carNeed(c, &s)
	s.levels, s.need = rows, target
	short := m.lp.AddColumn(0, least, most)
	m.lp.AddEntry(short, target, 1)

	if sum >= 0 {
		m.lp.AddEntry(short, sum, 1)
	}

	m.short = append(m.short, short)

	if c.V2G == nil {
		m.crash[target] = short
	}

	m.charging(c, &s, rows, target, peak, starts)

	if c.V2G != nil {
		m.discharging(k, c, &s, rows)
	}

	m.cars = append(m.cars, s)
}

// oneSpeed reports whether a car can charge with one power only.
func (c *Car) oneSpeed() bool { return c.Min >= c.Max }

// countCar adds, for a car that charges with one power only, the number of slots on in each
// class. The given shortfall decides which numbers are possible. The relaxation knows only the
// sum of the energy, and divides it in ways that no plan can have. For a car that discharges,
// any number is possible, but it must be whole.
func (m *model) countCar(c *Car) {
	off, peak := c.classes(false), c.classes(true)
	least, most := c.numbers(off, peak)
	if len(least) == 0 {
		return
	}

	m.countEntries = make([]share, len(m.balance))
	for i, class := range slices.Concat(off, peak) {
		row := m.row(0) // sum of on - count = 0
		count := m.lp.AddColumn(0, float64(least[i]), float64(most[i]))
		m.lp.AddEntry(count, row, -1)
		m.crash[row] = count
		m.wholes = append(m.wholes, count)
		m.classRows, m.classOn = append(m.classRows, row), append(m.classOn, count)

		for t := range m.countEntries {
			if c.most(t) == class.most && c.peak(t) == (i >= len(off)) {
				m.countEntries[t] = share{row, 1 / class.most}
			}
		}
	}
}

// carNeed adds the stored energy of a car that discharges, and the row of a car's need.
func (m *model) carNeed(c *Car, s *storage) ([]int, int) {
	if c.V2G == nil {
		return nil, m.row(c.Energy)
	}

	var rows []int
	rows, s.stored = m.carLevels(c)
	target := m.row(c.V2G.Target)
	m.slack(
		target,
		-c.V2G.Max-c.V2G.Target,
		0,
	) // stored at the end + short >= target

	m.lp.AddEntry(s.stored[len(s.stored)-1], target, 1)

	return rows, target
}

// charging adds what a car takes in each slot.
func (m *model) charging(
	c *Car,
	s *storage,
	rows []int,
	target, peak int,
	starts *chain,
) {
	s.charge = make([]draw, len(m.balance))

	for t := range m.balance {
		s.charge[t] = draw{none, none, 0, 0}
		most := c.most(t)

		if most <= 0 || !m.fuseCarries(c, t) {
			continue
		}

		to := []share{{target, 1}}

		if c.V2G != nil {
			to[0] = share{rows[t], -c.V2G.ChargeEff}
		}

		if peak >= 0 && c.peak(t) {
			to = append(to, share{peak, 1})
		}

		if m.countEntries != nil {
			to = append(to, m.countEntries[t])
		}

		s.charge[t] = m.newDraw(t, c.Min*c.Available[t], most, starts, to...)
	}
}

// fuseCarries reports whether the main fuse can carry the least power of a car in a slot, if
// all other devices discharge as much as they can.
func (m *model) fuseCarries(c *Car, t int) bool {
	p := m.p
	relief := 0.0

	for k := range p.Batteries {
		b := &p.Batteries[k]
		relief += b.most(t, b.Discharge, p.Hours)
	}

	if p.NoBatteryToCar {
		relief = min(relief, p.Load[t])
	}

	for k := range p.Cars {
		if other := &p.Cars[k]; other != c && other.V2G != nil {
			relief += other.V2G.Discharge * other.Available[t]
		}
	}

	least := p.Load[t] - p.PV[t] + c.Min*c.Available[t] - relief

	return least <= p.GridImport*p.Hours+energyTolerance
}

// carLevels adds the stored energy of a car that discharges.
func (m *model) carLevels(c *Car) (rows, stored []int) {
	v := c.V2G
	right := func(t int) float64 {
		if t == 0 {
			return v.Arrival
		}

		return 0
	}

	bounds := func(int) (float64, float64) {
		return min(v.Arrival, v.Reserve), v.Max
	}

	return m.levels(1, right, bounds, 0)
}

// discharging adds what a car discharges in each slot, and the reserve below which it must
// not.
func (m *model) discharging(k int, c *Car, s *storage, rows []int) {
	v := c.V2G
	s.discharge = make([]draw, len(m.balance))

	for t := range m.balance {
		s.discharge[t] = draw{none, none, 0, 0}
		most := v.Discharge * c.Available[t]

		if most <= 0 {
			continue
		}

		least := v.MinDischarge * c.Available[t]
		j := m.flow(t, 1, v.Wear, most, rows[t], 1/v.Efficient)
		s.discharge[t] = draw{none, j, least, most}

		if least > 0 {
			m.gaps = append(m.gaps, gap{j, least})
		}

		in := s.charge[t]

		if in.on >= 0 {
			m.pairs = append(m.pairs, pair{in.on, j})
		} else if in.more >= 0 {
			m.pairs = append(m.pairs, pair{in.more, j})
		}
	}

	if v.Arrival < v.Reserve {
		m.reserves = append(m.reserves, reserve{k})
	}
}

// newChains adds the rows that count the starts of the tank or heat pump, if starts cost. It
// stores all rows of the device in to.
func (m *model) newChains(cost float64, levels []int, to *chainRows) *chain {
	to.levels = levels
	if cost <= 0 {
		return nil
	}

	chain := m.newChain(cost, func(int) bool { return true })
	to.starts = chain.rows

	return &chain
}

func (m *model) addTank(k *Tank) {
	retention := 1 - k.Loss
	right := func(t int) float64 {
		if t == 0 {
			return retention*k.Init - k.Draw[0]
		}

		return -k.Draw[t]
	}

	bounds := func(int) (float64, float64) { return k.Min, k.Max }

	rows, _ := m.levels(retention, right, bounds, k.Terminal)
	starts := m.newChains(k.StartCost, rows, &m.water)

	size := k.Element * m.p.Hours

	m.tank = make([]int, len(m.balance))

	for t := range m.balance {
		m.tank[t] = m.lp.AddColumn(0, 0, 1)
		m.lp.AddEntry(m.tank[t], m.balance[t], -size)
		m.lp.AddEntry(m.tank[t], rows[t], -size)

		if starts != nil {
			starts.enter(m, m.tank[t], t)
		}

		m.binaries = append(m.binaries, m.tank[t])
	}

	m.countTank(k)
}

// countTank adds, for each slot, the number of slots in which the element was on so far. The
// bounds of these numbers are rounded to integers, which makes the programme nearly integral:
// without losses its matrix is totally unimodular.
func (m *model) countTank(k *Tank) {
	least, most := k.counts(m.p.Hours)
	before := none

	for t, on := range m.tank {
		row := m.row(0) // count - count before - on = 0
		count := m.lp.AddColumn(0, float64(least[t]), float64(most[t]))
		m.lp.AddEntry(count, row, 1)
		m.lp.AddEntry(on, row, -1)

		if before >= 0 {
			m.lp.AddEntry(before, row, -1)
		}

		m.crash[row] = count
		m.wholes = append(m.wholes, count)
		m.counts = append(m.counts, count)
		m.water.counts = append(m.water.counts, row)
		before = count
	}
}

// addHeat adds the heat pump. The temperature is the column of the level, which lies within
// the comfort band, less the column for what is below the band, plus the column for what is
// above it.
func (m *model) addHeat(k *Heat) {
	p := m.p
	n := len(m.balance)
	step := p.Hours / k.Capacity
	retention := 1 - step/k.Resistance
	right := func(t int) float64 {
		gain := k.gain(t, step)

		if t == 0 {
			gain += retention * k.Init
		}

		return gain
	}

	bounds := func(t int) (float64, float64) {
		return k.Low[t], max(k.Low[t], k.High[t])
	}

	m.constant += k.Terminal * k.Reference

	rows, _ := m.levels(retention, right, bounds, k.Terminal)
	m.discomfort(k, rows, retention)
	starts := m.newChains(k.StartCost, rows, &m.warmth)

	m.heat = make([]draw, n)

	for t := range n {
		heats := step * k.COP[t] / p.Hours
		m.heat[t] = m.newDraw(
			t,
			k.Min*p.Hours,
			k.Max*p.Hours,
			starts,
			share{rows[t], -heats},
		)
	}
}

// batteryRules adds the rule that no battery discharges into a car, in slots where one could.
// The rows are discharge - tank - heat pump + margin = load, and margin >= -spare (1 - charge
// / most).
func (m *model) batteryRules() {
	if !m.p.NoBatteryToCar {
		return
	}

	power := 0.0

	for _, b := range m.p.Batteries {
		power += b.Discharge * m.p.Hours
	}

	for t := range m.balance {
		r := rule{slot: t}
		spare := power - m.p.Load[t]

		for k := range m.cars {
			d := m.cars[k].charge[t]

			if d.most > 0 && (d.on >= 0 || d.more >= 0) {
				r.cars = append(r.cars, k)
			}
		}

		if spare > 0 && len(r.cars) > 0 {
			m.addRule(r, spare)
		}
	}
}

// gain returns what a slot adds to the temperature, apart from the heat pump and the
// temperature before.
func (k *Heat) gain(t int, step float64) float64 {
	return step * (k.Outdoor[t]/k.Resistance + k.Gain[t])
}

// discomfort adds columns for how far the temperature lies below and above the comfort band.
func (m *model) discomfort(k *Heat, rows []int, retention float64) {
	const widest = 200 // kelvin outside the band that a building can come to

	for t, row := range rows {
		last := 0.0

		if t == len(rows)-1 {
			last = k.Terminal
		}

		for _, sign := range [2]float64{-1, 1} {
			outside := m.lp.AddColumn(k.Penalty*m.p.Hours-sign*last, 0, widest)
			m.lp.AddEntry(outside, row, sign)

			if t+1 < len(rows) {
				m.lp.AddEntry(outside, rows[t+1], -sign*retention)
			}
		}
	}
}

// addRule adds the rows of the rule for one slot.
func (m *model) addRule(r rule, spare float64) {
	t := r.slot
	row := m.row(m.p.Load[t])
	r.margin = m.slack(row, -spare, m.p.Load[t]+spare+m.building())

	for _, b := range m.batteries {
		m.lp.AddEntry(b.discharge[t].more, row, 1)
	}

	if m.tank != nil {
		m.lp.AddEntry(m.tank[t], row, -m.p.Tank.Element*m.p.Hours)
	}

	if m.heat != nil {
		m.enterDraw(m.heat[t], row, -1)
	}

	m.surplus(&r, spare)
	m.tighten(&r, spare)
	m.rules = append(m.rules, r)
}

// surplus adds a row that always holds: what batteries discharge beyond the building's use is
// exported or charged into a battery, whether a car charges or not. The row is export + charge
// + margin >= 0.
func (m *model) surplus(r *rule, spare float64) {
	row := m.row(0)
	most := m.p.GridExport*m.p.Hours + m.p.Load[r.slot] + spare + m.building()
	m.lp.AddEntry(m.exported[r.slot], row, 1)
	m.lp.AddEntry(r.margin, row, 1)

	for _, b := range m.batteries {
		m.lp.AddEntry(b.charge[r.slot].more, row, 1)
		most += b.charge[r.slot].most
	}

	excess := m.lp.AddColumn(0, 0, most)
	m.lp.AddEntry(excess, row, -1)
	m.crash[row] = excess
}

// tighten adds the convex hull of a slot's rule and each car's charging.
func (m *model) tighten(r *rule, spare float64) {
	for _, k := range r.cars {
		d := m.cars[k].charge[r.slot]
		tight := m.row(-spare) // margin - spare charge / most - slack = -spare
		m.slack(tight, -3*spare-m.p.Load[r.slot]-m.building(), 0)
		m.lp.AddEntry(r.margin, tight, 1)

		if d.on >= 0 {
			m.lp.AddEntry(d.on, tight, -spare)
		} else {
			m.lp.AddEntry(d.more, tight, -spare/d.most)
		}
	}
}

// building returns the most that tank and heat pump take in a slot.
func (m *model) building() float64 {
	most := 0.0

	if m.p.Tank != nil {
		most += m.p.Tank.Element * m.p.Hours
	}

	if m.p.Heat != nil {
		most += m.p.Heat.Max * m.p.Hours
	}

	return most
}

// enterDraw adds the entries of a draw to one more row: value for each kWh.
func (m *model) enterDraw(d draw, row int, value float64) {
	if d.on >= 0 {
		m.lp.AddEntry(d.on, row, value*d.least)
	}

	if d.more >= 0 {
		m.lp.AddEntry(d.more, row, value)
	}
}
