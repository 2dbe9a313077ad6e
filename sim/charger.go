package sim

import (
	"sync"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ocpp"
)

// Charger is a simulated charger with at most one car. It keeps the last profile that it
// was given and follows it on its own clock, whether or not flexd is still there.
type Charger struct {
	ExternalID string
	Power      flex.Watts
	Outage     flex.Span // in which it gives nothing, whatever it was sent
	// the most that it takes from its car; 0 for one that only charges and refuses limits below zero
	Discharge flex.Watts
	// its meter shows half-hours in which nothing flowed, too
	ShowsIdle bool

	mu sync.Mutex
	// the last rules from its start on; those before it until then
	profiles []ocpp.Profile
	received int
	car      *Car
	at       time.Time // up to here the meter has run
	meter    []Metered // half-hours not yet reported
	register float64   // Wh drawn in all
}

// Car is a simulated car. It takes what the charger offers until it is full.
type Car struct {
	Name string
	Rate flex.Watts // what its own charger can take
	Room float64    // Wh that still fit
	Got  float64    // Wh drawn since it was plugged in
	Gave float64    // Wh given back since then
	// of what it drew, in millionths of a pound at market prices
	Cost float64

	Late time.Duration // from when it is offered power to when it draws
	// Wh of room: with less than that it draws less and less, down to a tenth
	Taper    float64
	OnePhase flex.Span // in which it draws a third

	// since when it has been offered power; zero while it is not
	offered time.Time
}

// power is what the car would draw at the instant.
func (c *Car) power(at time.Time) flex.Watts {
	w := float64(c.Rate)
	if c.OnePhase.Contains(at) {
		w /= 3
	}

	if c.Taper > 0 {
		w *= min(1, max(0.1, c.Room/c.Taper))
	}

	if !c.offered.IsZero() && at.Before(c.offered.Add(c.Late)) {
		w = 0
	}

	return flex.Watts(w)
}

// offer tells the car whether there is power for it from an instant on.
func (c *Car) offer(power flex.Watts, at time.Time) {
	if power == 0 {
		c.offered = time.Time{}
	} else if c.offered.IsZero() {
		c.offered = at
	}
}

// edges are the instants at which it may draw another power, and the next minute of a taper.
func (c *Car) edges(at time.Time) []time.Time {
	edges := []time.Time{c.offered.Add(c.Late), c.OnePhase.From, c.OnePhase.To}
	if c.Taper > 0 {
		edges = append(edges, at.Truncate(time.Minute).Add(time.Minute))
	}

	return edges
}

// Metered is the energy that a charger drew in a part of one settlement period.
type Metered struct {
	Period flex.Period
	Energy float64 // Wh
}

// Receive takes a profile as pushed. A bad one is refused and the old one stays in force.
func (c *Charger) Receive(body []byte) error {
	parse := ocpp.Parse
	if c.Discharge > 0 {
		parse = ocpp.ParseDischarging
	}

	p, err := parse(body)
	if err != nil {
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	for n := len(c.profiles); n > 0 && !c.profiles[n-1].Span().From.Before(p.Span().From); n-- {
		c.profiles = c.profiles[:n-1]
	}

	c.profiles = append(c.profiles, p)
	c.received++

	return nil
}

// limitAt returns the limit of the profile that rules at the instant.
func (c *Charger) limitAt(at time.Time) flex.Watts {
	for i := len(c.profiles) - 1; i >= 0; i-- {
		if !c.profiles[i].Span().From.After(at) {
			return c.profiles[i].LimitAt(at)
		}
	}

	return flex.NoLimit
}

// Received returns how many profiles the charger took and the one it follows.
func (c *Charger) Received() (int, ocpp.Profile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.profiles) == 0 {
		return c.received, ocpp.Profile{}
	}

	return c.received, c.profiles[len(c.profiles)-1]
}

// Plug connects a car at the instant; nil unplugs. A profile rules one transaction: the
// last car's is forgotten.
func (c *Charger) Plug(car *Car, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.car, c.profiles = car, nil
	c.at = at
}

// Car returns a copy of the car that is plugged in, or nil.
func (c *Charger) Car() *Car {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.car == nil {
		return nil
	}
	car := *c.car

	return &car
}

// Drawing returns the power that flows at the instant, below zero if the car gives.
func (c *Charger) Drawing(at time.Time) flex.Watts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.powerAt(at)
}

func (c *Charger) powerAt(at time.Time) flex.Watts {
	if c.car == nil || c.Outage.Contains(at) {
		return 0
	}

	if limit := c.limitAt(at); limit < 0 {
		return max(limit, -c.Discharge)
	}

	if c.car.Room <= 0 {
		return 0
	}

	return min(c.Power, c.car.power(at), c.limitAt(at))
}

// RunTo lets time pass up to the instant. Prices value what is drawn; a missing one counts
// as zero.
func (c *Charger) RunTo(to time.Time, price func(flex.Period) flex.Price) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for c.at.Before(to) {
		if c.car != nil {
			c.car.offer(max(0, c.limitAt(c.at)), c.at)
		}

		next := c.boundary(to)
		if c.ShowsIdle {
			c.metered(flex.PeriodAt(c.at), 0)
		}

		c.flow(next, price)

		c.at = next
	}

	for len(c.profiles) > 1 && !c.profiles[1].Span().From.After(c.at) {
		c.profiles = c.profiles[1:]
	}
}

// flow has energy flow until an instant before which nothing changes.
func (c *Charger) flow(next time.Time, price func(flex.Period) flex.Price) {
	if c.car == nil {
		return
	}

	wh := float64(c.powerAt(c.at)) * next.Sub(c.at).Hours()

	if wh < 0 {
		c.car.Gave -= wh
		c.car.Room -= wh
	} else if c.car.Room > 0 {
		c.draw(flex.PeriodAt(c.at), min(c.car.Room, wh), price)
	}
}

// boundary returns the next instant at which power or price may change, at most to.
func (c *Charger) boundary(to time.Time) time.Time {
	next := flex.PeriodAt(c.at).End()
	edges := []time.Time{c.Outage.From, c.Outage.To}

	if c.car != nil {
		edges = append(edges, c.car.edges(c.at)...)
	}

	for _, edge := range edges {
		if edge.After(c.at) && edge.Before(next) {
			next = edge
		}
	}

	for _, p := range c.profiles {
		for _, s := range p.Steps {
			for _, edge := range []time.Time{s.From, s.To} {
				if edge.After(c.at) && edge.Before(next) {
					next = edge
				}
			}
		}
	}

	if to.Before(next) {
		return to
	}

	return next
}

func (c *Charger) draw(
	p flex.Period,
	wh float64,
	price func(flex.Period) flex.Price,
) {
	c.car.Room -= wh
	c.car.Got += wh
	c.car.Cost += wh * float64(price(p)) / 1e6
	c.register += wh
	c.metered(p, wh)
}

// metered adds energy to a half-hour of the meter.
func (c *Charger) metered(p flex.Period, wh float64) {
	if n := len(c.meter); n > 0 && c.meter[n-1].Period == p {
		c.meter[n-1].Energy += wh
		return
	}

	c.meter = append(c.meter, Metered{p, wh})
}

// Meter returns the half-hours that ended by the instant and were not returned before.
func (c *Charger) Meter(by time.Time) []Metered {
	c.mu.Lock()
	defer c.mu.Unlock()

	n := 0
	for n < len(c.meter) && !c.meter[n].Period.End().After(by) {
		n++
	}

	out := c.meter[:n:n]
	c.meter = c.meter[n:]

	return out
}
