package check

import (
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// withoutOffset converts a problem whose half-hours begin later, and its plan, to a time line
// on which they begin with the market's.
func withoutOffset(p charge.Problem, plan charge.Plan) (charge.Problem, charge.Plan) {
	late := p.Offset
	p.Offset = 0
	p.From = p.From.Add(-late)
	p.ReadyBy = p.ReadyBy.Add(-late)
	p.ChargeNow = earlier(p.ChargeNow, late)

	p.OffPeak = slices.Clone(p.OffPeak)

	for i := range p.OffPeak {
		p.OffPeak[i] = earlier(p.OffPeak[i], late)
	}

	p.Limits = stepsEarlier(p.Limits, late)
	p.Prices = pricesLater(p.Prices, late)
	plan.Steps = stepsEarlier(plan.Steps, late)

	plan.Periods = slices.Clone(plan.Periods)

	for i := range plan.Periods {
		plan.Periods[i].Span = earlier(plan.Periods[i].Span, late)
	}

	return p, plan
}

// earlier shifts a span to an earlier time; an empty one stays empty.
func earlier(s flex.Span, by time.Duration) flex.Span {
	if s.To.After(s.From) {
		return flex.Span{From: s.From.Add(-by), To: s.To.Add(-by)}
	}

	return s
}

func stepsEarlier(steps []flex.Step, by time.Duration) []flex.Step {
	var out []flex.Step
	for _, s := range steps {
		out = append(out, flex.Step{Span: earlier(s.Span, by), Limit: s.Limit})
	}

	return out
}

// pricesLater returns the price of each half-hour on that time line: the mean of two market
// prices, weighted by their seconds. An unknown price does not count.
func pricesLater(
	prices []flex.PricedPeriod,
	late time.Duration,
) []flex.PricedPeriod {
	known := map[flex.Period]flex.Price{}

	for _, q := range prices {
		if q.Known {
			known[q.Period] = q.Price
		}
	}

	var out []flex.PricedPeriod
	for i, q := range prices {
		if i == 0 {
			out = append(out, flex.PricedPeriod{
				Period: q.Period.Add(-1),
				Price:  q.Price,
				Known:  q.Known,
			})
		}

		if next, ok := known[q.Period.Add(1)]; ok && q.Known {
			second := int64(late.Seconds())
			q.Price = flex.Price((int64(q.Price)*(int64(flex.HalfHour.Seconds())-second) +
				int64(next)*second) / int64(flex.HalfHour.Seconds()))
		}

		out = append(out, q)
	}

	return out
}
