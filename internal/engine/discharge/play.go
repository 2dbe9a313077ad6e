package discharge

import (
	"math"
	"time"

	"flexd/internal/flex"
)

// Course is what a schedule comes to.
type Course struct {
	End  float64 // watt-hours stored by ready-by
	Cost float64 // pence
	// what it discharges in each half-hour, in order
	Parts []Part

	taken  float64 // kWh
	paid   float64 // pence, for that
	broken bool    // it takes while it discharges, or discharges what is to stay
}

// Part is what a car discharges in one half-hour.
type Part struct {
	Rate
	Energy float64 // watt-hours, on the grid's side
}

// Play follows a schedule until ready-by. A car that is full takes nothing more.
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

// play follows a time in which nothing changes.
func (c *Course) play(
	p *Problem,
	r Rate,
	takes, discharges flex.Watts,
	hours float64,
) {
	full := max(p.Capacity, p.Stored)
	taken := float64(min(takes, p.Charge)) * hours
	taken = min(taken, max(0, full-c.End)/Efficiency)
	given := float64(discharges) * hours

	c.End += taken*Efficiency - given/Efficiency
	c.taken += taken / 1000
	c.paid += taken / 1000 * r.Buy
	c.Cost += taken / 1000 * r.Buy
	c.Cost += given / 1000 * (p.Wear - r.Sell)

	if given == 0 {
		return
	}

	c.broken = c.broken || takes > 0 || c.End < p.Reserve-1

	if n := len(c.Parts); n > 0 && c.Parts[n-1].Period == r.Period {
		c.Parts[n-1].Energy += given

		return
	}

	c.Parts = append(c.Parts, Part{Rate: r, Energy: given})
}

// Filled is what a car takes of a schedule from From to ReadyBy, in which it discharges: nothing more once it is full.
func (p *Problem) Filled(steps, discharges []flex.Step) []flex.Step {
	var taken []flex.Step
	stored := p.Stored
	full := max(p.Capacity, p.Stored)
	in := flex.Span{From: p.From, To: p.ReadyBy}

	for in.From.Before(in.To) {
		part := flex.Span{From: in.From, To: nextChange(steps, discharges, in)}
		in.From = part.To
		takes := min(limitAt(steps, part.From), p.Charge)
		hours := part.Len().Hours()
		stored -= float64(limitAt(discharges, part.From)) * hours / Efficiency

		on := part
		headroom := max(0, full-stored) / Efficiency

		if float64(takes)*hours > headroom {
			on.To = fullAt(on.From, headroom, takes)
		}

		stored += float64(takes) * on.Len().Hours() * Efficiency
		taken = flex.AppendStep(taken, on, takes)
		taken = flex.AppendStep(taken, flex.Span{From: on.To, To: part.To}, 0)
	}

	return taken
}

// fullAt is when a car that charges with a power has taken an energy in watt-hours, in whole seconds.
func fullAt(from time.Time, energy float64, power flex.Watts) time.Time {
	seconds := energy / float64(power) * 3600
	return from.Add(time.Duration(seconds) * time.Second)
}

// nextChange is the first instant in a time, after its beginning, at which anything changes.
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

// limitAt is what steps say of an instant; nothing where they say none.
func limitAt(steps []flex.Step, at time.Time) flex.Watts {
	for _, s := range steps {
		if s.Contains(at) {
			return s.Limit
		}
	}

	return 0
}

// HasTime reports whether the car could take more by ready-by than it does alone, in the time in which it may charge.
func (p *Problem) HasTime() bool {
	const least = 0.01 // kWh
	most := 0.0

	for _, s := range p.slots() {
		if s.open {
			most += p.Charge.KW() * s.Len().Hours()
		}
	}

	alone := p.Play(p.Alone, nil)

	return most > alone.taken+least
}

// HasMargin reports whether discharging in the dearest half-hour earns more than the wear and charging it again in the cheapest.
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
