package grid

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/store"
)

// replay plays past stays again at a window's prices. Windows and prices are counted by the clocks in London, as forecasts are: on the day
// on which these change, too, cars come and go by them.
type replay struct {
	day            flex.Day
	window, length int // half-hours
	up             bool
	since          time.Time
	prices         [forecast.PricedSlots]float64
	moved          []forecast.Moved
	days           map[flex.Day]bool
}

// readPrices reads the prices of the day, of the one before and of the one after. A half-hour that has none yet has that of the day
// before; one of the first of these days the mean of all that are known.
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
		// Of the hour that comes twice in autumn the first counts.
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

// placeOf is the place of a half-hour of the three days among the prices.
func (r *replay) placeOf(p flex.Period) int {
	t := forecast.SlotOf(p)
	for d := r.day.Add(-1); d != flex.DayAt(p.Start()); d = d.Add(1) {
		t += forecast.Slots
	}

	return t
}

// add plays a stay again on each of its days that is of the same class. A day on which the clocks change is left out.
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

// isLike reports whether a day can be played again for the window's day.
func (r *replay) isLike(d flex.Day) bool {
	return dayClass(d) == dayClass(r.day) && d.Periods() == forecast.Slots
}

// meanKW is what the replayed days moved, on average over the window.
func (r *replay) meanKW() float64 {
	sum := 0.0
	for _, m := range r.moved {
		sum += m.KWh
	}

	return sum / max(1, float64(len(r.days))) / (float64(r.length) * flex.HalfHour.Hours())
}
