package backtest

import (
	"io"
	"maps"
	"slices"
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
	Car   string // its name, where there are several
}

// The columns of a file of stays.
var (
	staysNeeded   = []string{"plugged_in", "plugged_out", "energy_kwh"}
	staysOptional = []string{"power_kw", "car"}
)

// ReadStays reads a CSV file of stays, with the columns plugged_in and plugged_out, instants
// with their offsets, energy_kwh, what the car drew, and, if it is known, power_kw, at which
// it did; where it is not, it is the charger's. With several cars, car is the name of each.
func ReadStays(r io.Reader, charger flex.Watts) ([]CarStay, error) {
	var stays []CarStay
	for row, err := range csvfile.ReadKnown(r, staysNeeded, staysOptional) {
		if err != nil {
			return nil, err
		}

		s, err := stayOf(row, charger)
		if err != nil {
			return nil, err
		}

		stays = append(stays, s)
	}

	return stays, nil
}

// stayOf reads a row's stay.
func stayOf(row csvfile.Row, charger flex.Watts) (CarStay, error) {
	s := CarStay{Power: charger, Car: row.Get("car")}
	for _, to := range []struct {
		column string
		at     *time.Time
	}{{"plugged_in", &s.From}, {"plugged_out", &s.To}} {
		at, err := time.Parse(time.RFC3339, row.Get(to.column))
		if err != nil {
			return s, row.Fault(
				"%s: %q is not an instant of the form 2026-04-14T18:05:00Z or 2026-04-14T19:05:00+01:00",
				to.column,
				row.Get(to.column),
			)
		}

		*to.at = at
	}

	if s.Empty() {
		return s, row.Fault(
			"plugged_out: a stay ends after it begins, at %s",
			row.Get("plugged_in"),
		)
	}

	if s.Len() > MaxStay {
		return s, row.Fault(
			"plugged_out: a stay lasts up to 30 days, not %s",
			s.Len(),
		)
	}

	kwh, known, err := numberOf(row, "energy_kwh", 0, 1000, "energy in kWh")
	if err != nil {
		return s, err
	}

	if !known {
		return s, row.Fault("energy_kwh: \"\" is no energy in kWh from 0 to 1000")
	}

	s.Energy = flex.FromKWh(kwh)
	kw, known, err := numberOf(
		row,
		"power_kw",
		0.001,
		MaxPower.KW(),
		"power in kW",
	)
	if known {
		s.Power = min(charger, flex.FromKW(kw))
	}

	return s, err
}

// ByCar sorts stays by their cars, in the order in which these come first. More than MaxCars are refused.
func ByCar(all []CarStay) ([][]CarStay, error) {
	place := map[string]int{}
	var cars [][]CarStay
	for _, s := range all {
		k, known := place[s.Car]
		if !known && len(cars) == MaxCars {
			return nil, flex.Fail(
				flex.Invalid,
				"car: %q is one more than the %d cars that a home may have",
				s.Car,
				MaxCars,
			)
		}

		if !known {
			k = len(cars)
			place[s.Car] = k
			cars = append(cars, nil)
		}

		cars[k] = append(cars[k], s)
	}

	return cars, nil
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
		Metering:    settle.Boundary,
		Metered:     daysOf(home),
		Home:        daysOf(b.Load),
		PlannedCars: daysOf(shown),
		From:        b.From,
		To:          b.To,
		First:       b.First,
		Last:        b.Last,
	}
}

// addTo adds what the car drew in the stay, and what the baseline takes of its plan.
func (s *CarStay) addTo(car, shown forecast.Series, charger flex.Watts) {
	stay := settle.Stay{Span: s.Span}
	stay.Plan = stay.FullPowerPlan(charger)
	first, left := flex.PeriodAt(s.From), s.Energy

	for i := range stay.Plan {
		p := first.Add(i)
		drew := min(left, over(s.Power, p.Span().Meet(s.Span).Len()))
		left -= drew
		car[p] += drew
		stay.Drawn, stay.Fastest = stay.Drawn+drew, max(stay.Fastest, drew)
	}

	for i, e := range stay.SupportedPlan() {
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
