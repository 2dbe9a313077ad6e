package site

import "math"

// on is the energy above which a device counts as on.
const on = 1e-6

// totals has the sums of a plan.
type totals struct {
	shortfall float64
	peak      float64
	cost      float64
	gross     float64
	// the most by which a limit is missed, in kWh or K
	worst float64
}

// add counts an item of cost.
func (s *totals) add(cost float64) {
	s.cost += cost
	s.gross += math.Abs(cost)
}

// miss records by how much a limit is missed.
func (s *totals) miss(by float64) { s.worst = max(s.worst, by) }

// evaluate computes the totals of a plan, and by how much it misses a limit. net is working
// memory for the slots.
func (p *Problem) evaluate(a *Plan, net []float64) totals {
	var s totals

	for t := range net {
		net[t] = p.Load[t] - p.PV[t]
	}

	for k := range p.Batteries {
		p.Batteries[k].evaluate(&s, a.Battery[k], net)
	}

	for k := range p.Cars {
		p.Cars[k].evaluate(&s, a.Car[k], net)
	}

	if p.Tank != nil {
		p.Tank.evaluate(&s, a.Tank, p.Hours, net)
	}

	if p.Heat != nil {
		p.Heat.evaluate(&s, a.Heat, p.Hours, net)
	}

	p.evaluateRule(&s, a)

	for t := range net {
		p.evaluateGrid(&s, t, net[t])
	}

	return s
}

func (b *Battery) evaluate(s *totals, x, net []float64) {
	stored := b.Init

	for t, q := range x {
		net[t] += q
		stored += b.moved(t)
		if b.ordered(t) {
			s.miss(max(q, -q))
		}

		if q > 0 {
			stored += q * b.ChargeEff
		} else {
			stored += q / b.Efficient
			s.add(-b.Wear * q)
		}

		s.miss(max(b.Min-stored, stored-b.Max))
	}

	s.cost -= b.Terminal * stored
}

func (c *Car) evaluate(s *totals, x, net []float64) {
	wasOn := false
	sum := 0.0

	for t, q := range x {
		net[t] += q

		charges := q > on

		if charges && !wasOn {
			s.add(c.StartCost)
		}

		wasOn = charges
		sum += max(q, 0)

		if charges && c.peak(t) {
			s.peak += q
		}

		s.miss(q - c.most(t))

		if charges {
			s.miss(c.Min*c.Available[t] - q)
		}
	}

	if c.V2G != nil {
		c.evaluateV2G(s, x)

		return
	}

	s.miss(sum - c.Energy)
	s.shortfall += max(0, c.Energy-sum)
}

func (c *Car) evaluateV2G(s *totals, x []float64) {
	v := c.V2G
	stored := v.Arrival

	for t, q := range x {
		if q > 0 {
			stored += q * v.ChargeEff
		} else {
			stored += q / v.Efficient
			s.add(-v.Wear * q)
		}

		s.miss(stored - v.Max)

		if q < -on {
			s.miss(-q - v.Discharge*c.Available[t])
			s.miss(v.MinDischarge*c.Available[t] + q)
			s.miss(v.Reserve - stored)
		}
	}

	s.shortfall += max(0, v.Target-stored)
}

func (k *Tank) evaluate(s *totals, x []bool, hours float64, net []float64) {
	stored, wasOn := k.Init, false

	for t, on := range x {
		stored = stored*(1-k.Loss) - k.Draw[t]

		if on {
			stored += k.Element * hours
			net[t] += k.Element * hours

			if !wasOn {
				s.add(k.StartCost)
			}
		}

		wasOn = on
		s.miss(max(k.Min-stored, stored-k.Max))
	}

	s.cost -= k.Terminal * stored
}

// next returns the temperature after a slot in which the pump takes q kWh.
func (k *Heat) next(t int, hours, temperature, q float64) float64 {
	flow := k.COP[t]*q/hours - (temperature-k.Outdoor[t])/k.Resistance + k.Gain[t]

	return temperature + hours/k.Capacity*flow
}

func (k *Heat) evaluate(s *totals, x []float64, hours float64, net []float64) {
	temperature, wasOn := k.Init, false

	for t, q := range x {
		net[t] += q

		runs := q > on

		if runs && !wasOn {
			s.add(k.StartCost)
		}

		wasOn = runs
		s.miss(max(-q, q-k.Max*hours))

		if runs {
			s.miss(k.Min*hours - q)
		}

		temperature = k.next(t, hours, temperature, q)
		outside := max(0, k.Low[t]-temperature) + max(0, temperature-k.High[t])
		s.add(k.Penalty * hours * outside)
	}

	s.cost -= k.Terminal * (temperature - k.Reference)
}

// evaluateRule checks that no battery discharges into a car.
func (p *Problem) evaluateRule(s *totals, a *Plan) {
	if !p.NoBatteryToCar {
		return
	}

	for t := range p.Load {
		charges := false

		for k := range p.Cars {
			charges = charges || a.Car[k][t] > on
		}

		if !charges {
			continue
		}

		out := -p.serves(a, t)

		for k := range p.Batteries {
			out += max(0, -a.Battery[k][t])
		}

		s.miss(out)
	}
}

// serves returns what the building itself uses in a slot.
func (p *Problem) serves(a *Plan, t int) float64 {
	use := p.Load[t]

	if p.Tank != nil && a.Tank[t] {
		use += p.Tank.Element * p.Hours
	}

	if p.Heat != nil {
		use += a.Heat[t]
	}

	return use
}

// evaluateGrid adds the cost of a slot's net energy, with the cheapest curtailment.
func (p *Problem) evaluateGrid(s *totals, t int, net float64) {
	most := net

	if p.Curtailable {
		most += p.PV[t]
	}

	fuse, limit := p.GridImport*p.Hours, p.GridExport*p.Hours
	s.miss(max(net-fuse, -limit-most))

	least := max(net, -limit)
	most = max(least, min(most, fuse))
	cost := min(p.price(t, least), p.price(t, most))

	if least < 0 && most > 0 {
		cost = min(cost, 0)
	}

	s.add(cost)
}

// price returns the cost of an energy through the meter.
func (p *Problem) price(t int, grid float64) float64 {
	if grid > 0 {
		return grid * p.Import[t]
	}

	return grid * p.Export[t]
}
