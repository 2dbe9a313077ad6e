package charge

import (
	"slices"
	"time"

	"flexd/internal/flex"
)

// solveLater plans a car whose half-hours begin later than the market's. It shifts the problem
// back by the offset, plans it on the market's half-hours, and shifts the plan forward again.
func solveLater(p *Problem, buffer []Period) Plan {
	shifted := *p
	shifted.Offset = 0
	shifted.From, shifted.ReadyBy = p.From.Add(-p.Offset), p.ReadyBy.Add(-p.Offset)
	shifted.ChargeNow = shift(p.ChargeNow, -p.Offset)
	shifted.OffPeak, shifted.Limits = slices.Clone(p.OffPeak), slices.Clone(p.Limits)
	shifted.Prices = meanPrices(p.Prices, p.Offset)

	for i := range shifted.OffPeak {
		shifted.OffPeak[i] = shift(shifted.OffPeak[i], -p.Offset)
	}

	for i := range shifted.Limits {
		shifted.Limits[i].Span = shift(shifted.Limits[i].Span, -p.Offset)
	}

	out := solve(&shifted, false, buffer)
	for i := range out.Steps {
		out.Steps[i].Span = shift(out.Steps[i].Span, p.Offset)
	}

	for i := range out.Periods {
		out.Periods[i].Span = shift(out.Periods[i].Span, p.Offset)
	}

	return out
}

// shift shifts a span; an empty one is unchanged.
func shift(s flex.Span, by time.Duration) flex.Span {
	if s.Empty() {
		return s
	}
	return flex.Span{From: s.From.Add(by), To: s.To.Add(by)}
}

// meanPrices returns the prices of shifted half-hours: the mean over their time. If there is
// no price for the second part, that of the first part counts. One half-hour is added before
// the first, with the first price.
func meanPrices(
	prices []flex.PricedPeriod,
	offset time.Duration,
) []flex.PricedPeriod {
	if len(prices) == 0 {
		return nil
	}

	out := make([]flex.PricedPeriod, 0, len(prices)+1)
	before := prices[0]
	before.Period = before.Period.Add(-1)
	out = append(out, before)

	late := int64(offset / time.Second)
	for i, q := range prices {
		if next, known := following(prices, i); q.Known && known {
			q.Price = flex.Price((int64(q.Price)*(1800-late) +
				int64(next)*late) / 1800)
		}
		out = append(out, q)
	}

	return out
}

// following returns the price of the half-hour after the i-th.
func following(prices []flex.PricedPeriod, i int) (flex.Price, bool) {
	if i+1 == len(prices) || prices[i+1].Period != prices[i].Period.Add(1) {
		return 0, false
	}
	return prices[i+1].Price, prices[i+1].Known
}
