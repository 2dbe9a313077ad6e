package settle_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// A home that draws 200 Wh in every half-hour, and a car that took 3,000 Wh in one of them on
// the last day alone.
func TestTrial(t *testing.T) {
	first := flex.Day{Year: 2025, Month: time.November, Dom: 3}
	const n = 36
	series := func(last flex.WattHours, days int, at flex.WattHours) (all []settle.MeteredDay) {
		for i := range days {
			m := settle.MeteredDay{Day: first.Add(i)}
			m.Set(n, at)
			if i == days-1 {
				m.Set(n, last)
			}
			all = append(all, m)
		}

		return all
	}

	const days = 24 // the last is a Wednesday with 17 working days before it
	last := first.Add(days - 1)
	trial := settle.Trial{
		Metering: settle.Boundary, Metered: series(3200, days, 200), Home: series(200, days, 200), PlannedCars: series(3000, days, 0),
		From: last, To: last, First: n, Last: n,
	}

	for _, c := range []struct {
		name   string
		method settle.Method
		change func(*settle.Trial)
		want   settle.Accuracy
	}{
		{"mean", settle.Mean, nil, settle.Accuracy{Days: 1, HalfHours: 1, Metered: 3200, Deviation: 3000, Absolute: 3000}},
		{"nominated", settle.Nominated, nil, settle.Accuracy{Days: 1, HalfHours: 1, Metered: 3200}},
		{"nominated, of a car that was not there", settle.Nominated, func(t *settle.Trial) { t.Metered, t.PlannedCars = t.Home, nil },
			settle.Accuracy{Days: 1, HalfHours: 1, Metered: 200}},

		{"nominated, on the car's own meter", settle.Nominated, func(t *settle.Trial) { t.Metering, t.Metered = settle.Asset, t.PlannedCars },
			settle.Accuracy{Days: 1, HalfHours: 1, Metered: 3000}},
		{"something was asked that day", settle.Mean, func(t *settle.Trial) { t.EventDays = []flex.Day{last} }, settle.Accuracy{}},
		{"too few days before it", settle.Mean, func(t *settle.Trial) { t.Metered = t.Metered[days-8:] }, settle.Accuracy{}},
		{"all days with ten before them", settle.Mean, func(t *settle.Trial) { t.From = first },
			// Working days from the eleventh on: 17 to 25 November and the last; weekends with four
			// before them: 15, 16, 22, 23 from the third on.
			settle.Accuracy{Days: 10, HalfHours: 10, Metered: 9*200 + 3200, Deviation: 3000, Absolute: 3000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tried := trial

			if c.change != nil {
				c.change(&tried)
			}

			rule := settle.DefaultRule
			rule.Method = c.method
			if got := tried.Try(rule); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestUsed(t *testing.T) {
	day := flex.Day{Year: 2026, Month: time.January, Dom: 14}
	own := settle.MeteredDay{Day: day}
	own.Set(37, 3000)
	stay := flex.Span{From: day.Period(36).Start().Add(time.Minute), To: day.Period(38).End().Add(-time.Minute)}
	used := settle.UsedEnergy([]settle.MeteredDay{own}, []flex.Span{stay}, []flex.Day{day})
	for n, want := range map[int]flex.WattHours{35: 0, 36: -1, 37: 3000, 38: -1, 39: 0} {
		if e, known := used[0].At(n); known != (want >= 0) || known && e != want {
			t.Errorf("period %d: %d, %t; want %d", n, e, known, want)
		}
	}
}
