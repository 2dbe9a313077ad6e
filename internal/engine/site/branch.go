package site

import "math"

// Differences below these are rounding.
const (
	integerTolerance = 2e-8 // how far a binary may be from 0 or 1, or a value from the ends of its gap, relative to the gap
	energyTolerance  = 1e-7 // kWh
)

// change is one column's bounds in a node.
type change struct {
	column int
	lower  float64
	upper  float64
}

// branching divides a node into two halves, the more promising one first.
type branching struct {
	halves [2][]change
	score  float64
	column int // that is divided, or none
	topic  int // the index of the division in history, or none
	parts  [2]float64
}

// offer replaces the branching by a better one.
func (b *branching) offer(score float64, first, second []change) {
	if score > b.score {
		*b = branching{
			halves: [2][]change{first, second},
			score:  score,
			column: none,
			topic:  none,
		}
	}
}

// urgent is the score of a division that is made before any column is divided.
const ruleScore = 1e6

// violation finds a condition that the last solution breaks and that a linear programme cannot
// express, and how best to divide the node. The score is 0 if no condition is broken.
func (s *search) violation() branching {
	m := s.m
	var best branching

	for i := range m.rules {
		m.branchOnRule(&m.rules[i], &best)
	}

	for _, r := range m.reserves {
		m.branchOnReserve(r, &best)
	}

	if best.score > 0 {
		return best
	}

	for k := range m.cars {
		for _, j := range m.cars[k].classOn {
			low := math.Floor(m.lp.Value(j) + integerTolerance)
			s.between(j, low, low+1, &best)
		}
	}

	if best.score > 0 {
		return best
	}

	for _, j := range m.binaries {
		s.between(j, 0, 1, &best)
	}

	for _, j := range m.wholes {
		low := math.Floor(m.lp.Value(j) + integerTolerance)
		s.between(j, low, low+1, &best)
	}

	for _, g := range m.gaps {
		s.between(g.column, 0, g.least, &best)
	}

	return best
}

// between checks a column that must not lie between two values.
func (s *search) between(j int, low, high float64, best *branching) {
	m := s.m
	part := (m.lp.Value(j) - low) / (high - low)

	if part < integerTolerance || part > 1-integerTolerance {
		return
	}

	score := s.history.score(j, part)

	if score <= best.score {
		return
	}

	down, up := []change{{j, m.lower[j], low}}, []change{{j, high, m.upper[j]}}

	if part < 0.5 {
		*best = branching{
			[2][]change{down, up},
			score,
			j,
			j,
			[2]float64{part, part - 1},
		}

		return
	}

	*best = branching{
		[2][]change{up, down},
		score,
		j,
		j,
		[2]float64{part - 1, part},
	}
}

// root returns a column with its bounds at the root.
func (m *model) root(j int) change { return change{j, m.lower[j], m.upper[j]} }

// branchOnRule checks a slot in which batteries may discharge no more than the building uses.
// Either no car charges in it, or they observe that.
func (m *model) branchOnRule(r *rule, best *branching) {
	margin := m.lp.Value(r.margin)

	if margin > -energyTolerance {
		return
	}

	charge := 0.0
	var idle []change

	for _, k := range r.cars {
		d := m.cars[k].charge[r.slot]
		charge += m.value(d)

		for _, j := range []int{d.on, d.more} {
			if j >= 0 {
				idle = append(idle, change{j, 0, 0})
			}
		}
	}

	if charge < energyTolerance {
		return
	}

	nonNegative := []change{{r.margin, 0, m.root(r.margin).upper}}
	part := min(charge, -margin)

	if charge < -margin {
		best.offer(ruleScore+part, idle, nonNegative)

		return
	}

	best.offer(ruleScore+part, nonNegative, idle)
}

// branchOnReserve finds the first discharge of a car while it is below its reserve. Either the
// car does not discharge up to that slot, or it stores its reserve from the slot before on.
func (m *model) branchOnReserve(r reserve, best *branching) {
	v := m.p.Cars[r.car].V2G
	s := &m.cars[r.car]
	before := v.Arrival

	for t, d := range s.discharge {
		stored := m.lp.Value(s.stored[t])
		low := min(before, stored) < v.Reserve-energyTolerance
		before = stored

		if d.more < 0 || m.lp.Value(d.more) < energyTolerance || !low {
			continue
		}

		var idle, withReserve []change

		for i := range t + 1 {
			if j := s.discharge[i].more; j >= 0 {
				idle = append(idle, change{j, 0, 0})
			}
		}

		for i := max(0, t-1); i < len(s.stored); i++ {
			withReserve = append(withReserve, change{s.stored[i], v.Reserve, v.Max})
		}

		best.offer(2*ruleScore, idle, withReserve)

		return
	}
}

// oppositeBranching finds two columns of which at most one may be used.
func (s *search) oppositeBranching() branching {
	m := s.m
	var best branching

	for i, p := range m.pairs {
		a, b := m.lp.Value(p.a), m.lp.Value(p.b)

		if min(a, b) < energyTolerance/10 {
			continue
		}

		topic := len(m.lower) + i
		x, y := a/max(m.upper[p.a], energyTolerance), b/max(m.upper[p.b], energyTolerance)
		score := s.history.pair(topic, x, y)
		first, second := []change{{p.a, 0, 0}}, []change{{p.b, 0, 0}}

		if score <= best.score {
			continue
		}

		if a < b {
			best.offer(score, first, second)
			best.parts = [2]float64{x, -y}
		} else {
			best.offer(score, second, first)
			best.parts = [2]float64{-y, x}
		}

		best.topic = topic
	}

	return best
}

// extract reads the plan from the last solution. If a device charges and discharges in one
// slot, only the net change of stored energy counts.
func (m *model) extract(to *Plan) {
	for k := range m.batteries {
		b := &m.p.Batteries[k]

		for t := range m.balance {
			to.Battery[k][t] = netEnergy(
				m.value(m.batteries[k].charge[t]),
				m.value(m.batteries[k].discharge[t]),
				b.ChargeEff,
				b.Efficient,
			)
		}
	}

	for k := range m.cars {
		for t := range m.balance {
			q := roundToZero(m.roundedEnergy(m.cars[k].charge[t]))

			if v := m.p.Cars[k].V2G; v != nil {
				q = netEnergy(
					q,
					roundToZero(m.value(m.cars[k].discharge[t])),
					v.ChargeEff,
					v.Efficient,
				)
			}

			to.Car[k][t] = q
		}
	}

	for t := range m.tank {
		to.Tank[t] = m.lp.Value(m.tank[t]) > 0.5
	}

	for t := range m.heat {
		to.Heat[t] = roundToZero(m.roundedEnergy(m.heat[t]))
	}
}

// roundedEnergy returns the value of a draw with its binary rounded to 0 or 1.
func (m *model) roundedEnergy(d draw) float64 {
	sum := 0.0

	if d.on >= 0 {
		sum += d.least * math.Round(m.lp.Value(d.on))
	}

	if d.more >= 0 {
		sum += m.lp.Value(d.more)
	}

	return sum
}

// roundToZero returns an energy; one that differs from 0 only by rounding is 0.
func roundToZero(q float64) float64 {
	if math.Abs(q) < energyTolerance {
		return 0
	}

	return q
}

// netEnergy returns the energy for the same change of stored energy if the device only charges
// or only discharges.
func netEnergy(charge, discharge, chargeEff, eff float64) float64 {
	if charge <= 0 {
		return -max(0, discharge)
	}

	if discharge <= 0 {
		return charge
	}

	stored := charge*chargeEff - discharge/eff

	if stored > 0 {
		return stored / chargeEff
	}

	return stored * eff
}
