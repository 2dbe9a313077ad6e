package discharge

import (
	"math"
	"time"

	"flexd/internal/flex"
)

// Course is the result of a simulated schedule.
type Course struct {
	End  float64 // watt-hours stored by ready-by
	Cost float64 // pence
	// the discharged energy of each half-hour, in order
	Parts []Part

	charged   float64 // kWh
	paid      float64 // pence, for that
	isInvalid bool    // it charges while it discharges, or uses the reserve
}

// Part is the discharged energy of one half-hour.
type Part struct {
	Rate
	Energy float64 // watt-hours, on the grid's side
}

// Play simulates a schedule until ready-by. A full car charges no further.
func (p *Problem) Play(steps, discharges []flex.Step) Course {
	var c Course
	c.End = p.Stored

	for _, r := range p.Rates {
		in := r.Span().Meet(flex.Span{From: p.From, To: p.ReadyBy})

		for in.From.Before(in.To) {
			to := nextChange(steps, discharges, in)
			c.play(
				p,
				r,
				limitAt(steps, in.From),
				limitAt(discharges, in.From),
				to.Sub(in.From).Hours(),
			)
			in.From = to
		}
	}

	return c
}

// play simulates a span in which nothing changes.
func (c *Course) play(
	p *Problem,
	r Rate,
	chargePower, dischargePower flex.Watts,
	hours float64,
) {
	full := max(p.Capacity, p.Stored)
	chargedEnergy := float64(min(chargePower, p.Charge)) * hours
	chargedEnergy = min(chargedEnergy, max(0, full-c.End)/Efficiency)
	dischargedEnergy := float64(dischargePower) * hours

	c.End += chargedEnergy*Efficiency - dischargedEnergy/Efficiency
	c.charged += chargedEnergy / 1000
	c.paid += chargedEnergy / 1000 * r.Buy
	c.Cost += chargedEnergy / 1000 * r.Buy
	c.Cost += dischargedEnergy / 1000 * (p.Wear - r.Sell)

	if dischargedEnergy == 0 {
		return
	}

	c.isInvalid = c.isInvalid || chargePower > 0 || c.End < p.Reserve-1

	if n := len(c.Parts); n > 0 && c.Parts[n-1].Period == r.Period {
		c.Parts[n-1].Energy += dischargedEnergy

		return
	}

	c.Parts = append(c.Parts, Part{Rate: r, Energy: dischargedEnergy})
}

// Filled returns the steps that a discharging car charges of a schedule, from From to ReadyBy.
// It stops charging when it is full.
func (p *Problem) Filled(steps, discharges []flex.Step) []flex.Step {
	var charging []flex.Step
	stored := p.Stored
	full := max(p.Capacity, p.Stored)
	in := flex.Span{From: p.From, To: p.ReadyBy}

	for in.From.Before(in.To) {
		part := flex.Span{From: in.From, To: nextChange(steps, discharges, in)}
		in.From = part.To
		power := min(limitAt(steps, part.From), p.Charge)
		hours := part.Len().Hours()
		stored -= float64(limitAt(discharges, part.From)) * hours / Efficiency

		on := part
		headroom := max(0, full-stored) / Efficiency

		if float64(power)*hours > headroom {
			on.To = fullAt(on.From, headroom, power)
		}

		stored += float64(power) * on.Len().Hours() * Efficiency
		charging = flex.AppendStep(charging, on, power)
		charging = flex.AppendStep(charging, flex.Span{From: on.To, To: part.To}, 0)
	}

	return charging
}

// fullAt returns when a charging car has taken an energy in watt-hours, in whole seconds.
func fullAt(from time.Time, energy float64, power flex.Watts) time.Time {
	seconds := energy / float64(power) * 3600
	return from.Add(time.Duration(seconds) * time.Second)
}

// nextChange returns the first instant within a span, after its start, at which anything
// changes.
func nextChange(steps, discharges []flex.Step, in flex.Span) time.Time {
	next := in.To

	for _, list := range [][]flex.Step{steps, discharges} {
		for _, s := range list {
			for _, at := range []time.Time{s.From, s.To} {
				if at.After(in.From) && at.Before(next) {
					next = at
				}
			}
		}
	}

	return next
}

// limitAt returns the limit of the steps at an instant; zero where there is none.
func limitAt(steps []flex.Step, at time.Time) flex.Watts {
	for _, s := range steps {
		if s.Contains(at) {
			return s.Limit
		}
	}

	return 0
}

// HasTime reports whether the car could charge more by ready-by than it does with Alone, in
// the time in which it may charge.
func (p *Problem) HasTime() bool {
	const least = 0.01 // kWh
	most := 0.0

	for _, s := range p.slots() {
		if s.open {
			most += p.Charge.KW() * s.Len().Hours()
		}
	}

	chargeOnly := p.Play(p.Alone, nil)

	return most > chargeOnly.charged+least
}

// HasMargin reports whether discharging in the dearest half-hour earns more than the wear and
// recharging in the cheapest half-hour cost.
func (p *Problem) HasMargin() bool {
	dearest, cheapest := math.Inf(-1), math.Inf(1)

	for _, s := range p.slots() {
		dearest = max(dearest, s.rate.Sell)

		if s.open {
			cheapest = min(cheapest, s.rate.Buy)
		}
	}

	return dearest > p.Wear+cheapest/(Efficiency*Efficiency)
}
