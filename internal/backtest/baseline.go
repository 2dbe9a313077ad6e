package backtest

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/settle"
)

// Limits of a file of stays.
const (
	MaxStay  = 30 * 24 * time.Hour
	MaxPower = flex.Watts(350_000)
)

// CarStay is a time in which a car was plugged in and nobody steered it.
type CarStay struct {
	flex.Span
	Energy flex.WattHours // that it drew
	// at which it drew it, from the beginning of the stay on
	Power flex.Watts
}

// ReadStays reads a CSV file of stays, with the columns plugged_in and plugged_out, instants
// with their offsets, energy_kwh, what the car drew, and, if it is known, power_kw, at which
// it did; where it is not, it is the charger's.
func ReadStays(r io.Reader, charger flex.Watts) ([]CarStay, error) {
	var stays []CarStay
	for row, err := range csvfile.Read(
		r,
		"plugged_in",
		"plugged_out",
		"energy_kwh",
	) {
		if err != nil {
			return nil, err
		}

		s := CarStay{Power: charger}
		for column, to := range map[string]*time.Time{
			"plugged_in":  &s.From,
			"plugged_out": &s.To,
		} {
			at, err := time.Parse(time.RFC3339, row.Get(column))
			if err != nil {
				return nil, row.Fault(
					"%s: %q is not an instant of the form 2026-04-14T18:05:00Z",
					column,
					row.Get(column),
				)
			}

			*to = at
		}

		if s.Empty() || s.Len() > MaxStay {
			return nil, row.Fault(
				"plugged_out: a stay lasts up to 30 days, not %s",
				s.To.Sub(s.From),
			)
		}

		kwh, err := strconv.ParseFloat(row.Get("energy_kwh"), 64)
		if err != nil || !(kwh >= 0 && kwh <= 1000) {
			return nil, row.Fault(
				"energy_kwh: %q is no energy from 0 to 1000",
				row.Get("energy_kwh"),
			)
		}

		s.Energy = flex.FromKWh(kwh)

		if text := row.Get("power_kw"); text != "" {
			kw, err := strconv.ParseFloat(text, 64)
			if err != nil || !(kw > 0 && kw <= MaxPower.KW()) {
				return nil, row.Fault(
					"power_kw: %q is no power above 0, up to %g",
					text,
					MaxPower.KW(),
				)
			}

			s.Power = min(charger, flex.FromKW(kw))
		}

		stays = append(stays, s)
	}

	return stays, nil
}

// Baselines is a home's past on which baselines are tried, with the stays of a car, if any.
type Baselines struct {
	Load    forecast.Series
	Stays   []CarStay
	Charger flex.Watts
	From    flex.Day
	To      flex.Day
	First   int
	Last    int
}

// Trial lays the car's charging over the home. What the car drew is known as by its own
// meter, half-hour by half-hour; its plan without the market is full power of the charger from
// the beginning of each stay.
func (b *Baselines) Trial() *settle.Trial {
	car, shown := forecast.Series{}, forecast.Series{}
	for _, s := range b.Stays {
		s.addTo(car, shown, b.Charger)
	}

	home := forecast.Series{}
	for p, e := range b.Load {
		home[p] = e + car[p]
	}

	return &settle.Trial{
		Metering: settle.Boundary,
		Metered:  daysOf(home),
		Home:     daysOf(b.Load),
		Shown:    daysOf(shown),
		From:     b.From,
		To:       b.To,
		First:    b.First,
		Last:     b.Last,
	}
}

// addTo adds what the car drew in the stay, and what the baseline takes of its plan.
func (s *CarStay) addTo(car, shown forecast.Series, charger flex.Watts) {
	stay := settle.Stay{Span: s.Span}
	stay.Plan = stay.At(charger)
	first, left := flex.PeriodAt(s.From), s.Energy

	for i := range stay.Plan {
		p := first.Add(i)
		drew := min(left, over(s.Power, p.Span().Meet(s.Span).Len()))
		left -= drew
		car[p] += drew
		stay.Drawn, stay.Fastest = stay.Drawn+drew, max(stay.Fastest, drew)
	}

	for i, e := range stay.Shown() {
		shown[first.Add(i)] += e
	}
}

func over(w flex.Watts, d time.Duration) flex.WattHours {
	return flex.WattHours(int64(w) * int64(d/time.Second) / 3600)
}

// daysOf makes settlement days of a series.
func daysOf(s forecast.Series) []settle.MeteredDay {
	var days []settle.MeteredDay
	for _, p := range slices.SortedFunc(maps.Keys(s), func(a, b flex.Period) int {
		return a.Sub(b)
	}) {
		day, n := p.SettlementPeriod()
		if len(days) == 0 || days[len(days)-1].Day != day {
			days = append(days, settle.MeteredDay{Day: day})
		}
		days[len(days)-1].Set(n, s[p])
	}

	return days
}
