package grid

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/store"
)

// replay moves past sessions into a window again, at the window's prices. Half-hours are
// counted by the clocks in London, as in forecasts: cars come and go by them on the days when
// they change, too.
type replay struct {
	day            flex.Day
	window, length int // half-hours
	up             bool
	since          time.Time
	prices         [forecast.PricedSlots]float64
	moved          []forecast.Moved
	days           map[flex.Day]bool
}

// readPrices reads the prices of the day, and of the days before and after. A half-hour
// without a price has that of the day before; on the first of these days, the mean of all
// known prices.
func (r *replay) readPrices(ctx context.Context, tx *store.Tx) error {
	prices, err := tx.Prices(ctx, flex.Span{
		From: r.day.Add(-1).Start(),
		To:   r.day.Add(2).Start(),
	})
	if err != nil {
		return err
	}

	var known [forecast.PricedSlots]bool
	sum, count := 0.0, 0.0
	for _, p := range prices {
		t := r.placeOf(p.Period)
		// In autumn an hour comes twice by the clocks: the first one counts.
		if !p.Known || known[t] {
			continue
		}

		r.prices[t], known[t] = p.Price.GBPPerMWh(), true
		sum += r.prices[t]
		count++
	}

	for t := range r.prices {
		if known[t] {
			continue
		}

		r.prices[t] = sum / max(1, count)
		if t >= forecast.Slots {
			r.prices[t] = r.prices[t-forecast.Slots]
		}
	}

	return nil
}

// placeOf returns the index in prices of a half-hour of the three days.
func (r *replay) placeOf(p flex.Period) int {
	t := forecast.SlotOf(p)
	for d := r.day.Add(-1); d != flex.DayAt(p.Start()); d = d.Add(1) {
		t += forecast.Slots
	}

	return t
}

// add moves a session on each of its days that is of the same class as the window's. Days on
// which the clocks change are left out.
func (r *replay) add(s *forecast.Stay) {
	if len(s.Open) == 0 || s.Open[0].From.Before(r.since) {
		return
	}

	out := s.Open[len(s.Open)-1].To
	for d := flex.DayAt(s.Open[0].From); d.Start().Before(out); d = d.Add(1) {
		if !r.isLike(d) || !d.Start().Before(r.day.Start()) {
			continue
		}

		m := forecast.Move(s, d.Start(), r.window, r.length, r.up, &r.prices)
		if m.KWh <= 0 {
			continue
		}

		r.moved = append(r.moved, m)
		if r.days == nil {
			r.days = map[flex.Day]bool{}
		}

		r.days[d] = true
	}
}

// isLike reports whether a day is of the class of the window's day, and has no clock change.
func (r *replay) isLike(d flex.Day) bool {
	return dayClass(d) == dayClass(r.day) && d.Periods() == forecast.Slots
}

// meanKW returns the power that was moved on the replayed days, on average over the window.
func (r *replay) meanKW() float64 {
	sum := 0.0
	for _, m := range r.moved {
		sum += m.KWh
	}

	return sum / max(1, float64(len(r.days))) / (float64(r.length) * flex.HalfHour.Hours())
}
