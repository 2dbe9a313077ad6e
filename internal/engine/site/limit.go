package site

// Reason is what keeps a car from its need.
type Reason string

// The reasons.
const (
	// it is not there long enough for its power
	Window Reason = "window"
	// it may charge in off-peak time alone
	OffPeakOnly Reason = "off_peak"
	// what is missing is less than its least power gives
	MinimumPower Reason = "minimum_power"
	Capacity     Reason = "capacity" // it cannot store what is wanted
	Fuse         Reason = "fuse"     // the main fuse, with what else draws
)

// Limit is what falls short of one car's need and why. Of a need that falls short for two
// reasons there are two.
type Limit struct {
	Car       int
	Reason    Reason
	Shortfall float64 // kWh
}

// limits lists what falls short in a plan.
func (p *Problem) limits(a *Plan) []Limit {
	var found []Limit
	for k := range p.Cars {
		c := &p.Cars[k]
		short := c.short(a.Car[k])

		if short < 10*on {
			continue
		}

		own := min(short, c.leastReach().shortfall)

		if own >= 10*on {
			found = append(found, Limit{k, c.reason(), own})
		}

		if short-own >= 10*on {
			found = append(found, Limit{k, Fuse, short - own})
		}
	}

	return found
}

// short is what a car's plan leaves of its need.
func (c *Car) short(x []float64) float64 {
	var s totals
	c.evaluate(&s, x, make([]float64, len(x)))

	return s.shortfall
}

// reason is why a car by itself falls short.
func (c *Car) reason() Reason {
	allowed, window := 0.0, 0.0

	for t, hours := range c.Available {
		allowed += c.most(t)
		window += c.Max * hours
	}

	switch {
	case c.V2G != nil && c.V2G.Target > c.V2G.Max:
		return Capacity
	case c.V2G != nil || c.Energy > window+on:
		return Window
	case c.Energy > allowed+on:
		return OffPeakOnly
	default:
		return MinimumPower
	}
}

// fuseValue is what one kW more of main fuse is worth by the duals of the last solution: in
// pence, or in kWh of shortfall when that is the goal.
func (m *model) fuseValue() float64 {
	value := 0.0

	for _, j := range m.imported {
		at := m.lp.Value(j) >= m.p.GridImport*m.p.Hours-apart

		if d := m.lp.Reduced(j); at && d < -10*apart {
			value -= d * m.p.Hours
		}
	}

	return value
}
