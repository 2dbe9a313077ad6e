package site

// Reason is why a car's need is not met.
type Reason string

// The reasons.
const (
	// the car is not present for long enough at its power
	Window Reason = "window"
	// the car may charge in off-peak time only
	OffPeakOnly Reason = "off_peak"
	// the missing energy is less than the car draws at its least power
	MinimumPower Reason = "minimum_power"
	Capacity     Reason = "capacity" // the car cannot store what is needed
	Fuse         Reason = "fuse"     // the main fuse, together with the other loads
)

// Limit is how much of one car's need is not met, and why. If there are two reasons, there are
// two Limits.
type Limit struct {
	Car       int
	Reason    Reason
	Shortfall float64 // kWh
}

// limits lists the needs that a plan does not meet.
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

// short returns how much of its need a car's plan does not meet.
func (c *Car) short(x []float64) float64 {
	var s totals
	c.evaluate(&s, x, make([]float64, len(x)))

	return s.shortfall
}

// reason returns why a car's need would not be met even without the other devices.
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

// fuseValue returns what one kW more of main fuse is worth, by the duals of the last solution:
// in pence, or in kWh of shortfall if that is the goal.
func (m *model) fuseValue() float64 {
	value := 0.0

	for _, j := range m.imported {
		at := m.lp.Value(j) >= m.p.GridImport*m.p.Hours-energyTolerance

		if d := m.lp.Reduced(j); at && d < -10*energyTolerance {
			value -= d * m.p.Hours
		}
	}

	return value
}
