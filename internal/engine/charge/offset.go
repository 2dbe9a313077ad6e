package charge

import (
	"slices"
	"time"

	"flexd/internal/flex"
)

// solveLater plans a car whose half-hours begin later. It moves the whole problem back by the offset, plans it
// on the market's half-hours and moves the plan forth.
func solveLater(p *Problem, buffer []Period) Plan {
	moved := *p
	moved.Offset = 0
	moved.From, moved.ReadyBy = p.From.Add(-p.Offset), p.ReadyBy.Add(-p.Offset)
	moved.ChargeNow = shift(p.ChargeNow, -p.Offset)
	moved.OffPeak, moved.Limits = slices.Clone(p.OffPeak), slices.Clone(p.Limits)
	moved.Prices = meanPrices(p.Prices, p.Offset)

	for i := range moved.OffPeak {
		moved.OffPeak[i] = shift(moved.OffPeak[i], -p.Offset)
	}

	for i := range moved.Limits {
		moved.Limits[i].Span = shift(moved.Limits[i].Span, -p.Offset)
	}

	out := solve(&moved, false, buffer)
	for i := range out.Steps {
		out.Steps[i].Span = shift(out.Steps[i].Span, p.Offset)
	}

	for i := range out.Periods {
		out.Periods[i].Span = shift(out.Periods[i].Span, p.Offset)
	}

	return out
}

// shift moves a span; an empty one stays as it is.
func shift(s flex.Span, by time.Duration) flex.Span {
	if s.Empty() {
		return s
	}
	return flex.Span{From: s.From.Add(by), To: s.To.Add(by)}
}

// meanPrices are the prices of half-hours that begin later: the mean over that time. One whose second part
// has no price has that of its first. Before the first of them lies one that has the first price.
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

// following is the price of the half-hour after the i-th.
func following(prices []flex.PricedPeriod, i int) (flex.Price, bool) {
	if i+1 == len(prices) || prices[i+1].Period != prices[i].Period.Add(1) {
		return 0, false
	}
	return prices[i+1].Price, prices[i+1].Known
}
