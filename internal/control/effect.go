package control

import (
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// stepsWithin returns the part of steps that lies in a span.
func stepsWithin(steps []flex.Step, span flex.Span) []flex.Step {
	var out []flex.Step
	for _, s := range steps {
		s.Span = s.Meet(span)
		if !s.Empty() {
			out = append(out, s)
		}
	}

	return out
}

// effect is what steps do by ready-by from an instant on: energy in watt-seconds, and what
// the market asks for it.
type effect struct {
	// peak: of the energy, outside off-peak time and charge-now
	energy int64
	peak   int64
	cost   flex.MicroPounds
}

// effectOf adds up what the steps do in the problem's time at its prices.
func effectOf(
	p *charge.Problem,
	assumed flex.Price,
	steps []flex.Step,
) effect {
	var cost float64
	var w effect
	for _, s := range steps {
		power := int64(min(s.Limit, p.Power))

		s.Span = s.Meet(flex.Span{From: p.From, To: p.ReadyBy})
		if power == 0 || s.Empty() {
			continue
		}

		permitted := s.Len()
		if !p.AllOffPeak {
			permitted = s.Meet(p.ChargeNow).Len()
			for _, o := range p.OffPeak {
				in := s.Meet(o)
				permitted += in.Len() - in.Meet(p.ChargeNow).Len()
			}
		}

		w.energy += power * int64(s.Len()/time.Second)
		w.peak += power * int64((s.Len()-permitted)/time.Second)
		cost += priced(p.Prices, assumed, s.Span) * float64(power)
	}

	w.cost = flex.MicroPounds(cost / (3600 * 1e6))

	return w
}

// priced is the price summed over the seconds of a span.
func priced(
	ps []flex.PricedPeriod,
	assumed flex.Price,
	s flex.Span,
) float64 {
	var sum float64
	for at := flex.PeriodAt(s.From); at.Start().Before(s.To); at = at.Add(1) {
		price := assumed
		if len(ps) > 0 {
			i := at.Sub(ps[0].Period)
			if i >= 0 && i < len(ps) && ps[i].Known {
				price = ps[i].Price
			}
		}

		sum += float64(price) * s.Meet(at.Span()).Len().Seconds()
	}

	return sum
}
