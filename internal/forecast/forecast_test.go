package forecast

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	_ "flexd/test/seed"
)

func weekday(d flex.Day) bool { return d.Weekday() != time.Saturday && d.Weekday() != time.Sunday }

// periodsOf are the settlement periods of a day.
func periodsOf(d flex.Day) (ps []flex.Period) {
	for n := 1; n <= d.Periods(); n++ {
		ps = append(ps, d.Period(n))
	}
	return ps
}

// fill meters whole days before a day, each half-hour as load says.
func fill(before flex.Day, days int, load func(day flex.Day, local time.Time) flex.WattHours) Series {
	s := Series{}
	for k := 1; k <= days; k++ {
		d := before.Add(-k)
		for _, p := range periodsOf(d) {
			s[p] = load(d, p.Start().In(flex.London))
		}
	}
	return s
}

func TestNothingKnown(t *testing.T) {
	d := flex.Day{Year: 2025, Month: 10, Dom: 26}
	ps := periodsOf(d)
	got, known := Load(nil, ps, weekday)
	if known || len(got) != 50 || got[0] != Unknown || got[49] != Unknown {
		t.Errorf("%v, %v", got, known)
	}

	if got, known := Solar(nil, ps); known || got[20] != 0 {
		t.Errorf("%v, %v", got, known)
	}

	if got, known := Load(Series{d.Period(1): 5}, nil, weekday); len(got) != 0 || !known {
		t.Errorf("%v, %v", got, known)
	}

	// What is metered later, or too long ago, says nothing.
	late := Series{d.Period(1): 9999, d.Period(1).Add(-Days*48 - 1): 9999}
	if got, known := Load(late, ps, weekday); known || got[0] != Unknown {
		t.Errorf("%v, %v", got[0], known)
	}
}

// TestTheClockOnTheWall: a load that follows the wall is guessed at its hour on the days
// when the clocks change too, a roof at the sun's.
func TestTheClockOnTheWall(t *testing.T) {
	for _, d := range []flex.Day{{Year: 2025, Month: 10, Dom: 26}, {Year: 2025, Month: 3, Dom: 30}, {Year: 2025, Month: 10, Dom: 27}, {Year: 2025, Month: 3, Dom: 31}} {
		past := fill(d, 20, func(_ flex.Day, local time.Time) flex.WattHours {
			return flex.WattHours(local.Hour()*100 + local.Minute())
		})

		ps := periodsOf(d)
		got, _ := Load(past, ps, weekday)
		for i, p := range ps {
			local := p.Start().In(flex.London)
			if want := flex.WattHours(local.Hour()*100 + local.Minute()); got[i] != want {
				t.Errorf("%s: %d, want %d", local, got[i], want)
			}
		}

		sun := fill(d, 20, func(_ flex.Day, local time.Time) flex.WattHours { return flex.WattHours(local.UTC().Hour()) })
		roof, _ := Solar(sun, ps)
		for i, p := range ps {
			if want := flex.WattHours(p.Start().Hour()); roof[i] != want {
				t.Errorf("the sun at %s: %d, want %d", p.Start(), roof[i], want)
			}
		}
	}
}

func TestDayClassAndRecency(t *testing.T) {
	saturday := flex.Day{Year: 2025, Month: 6, Dom: 14}
	past := fill(saturday, Days, func(d flex.Day, _ time.Time) flex.WattHours {
		if weekday(d) {
			return 100
		}

		return 500
	})

	weekend, _ := Load(past, periodsOf(saturday)[:1], weekday)
	working, _ := Load(past, periodsOf(saturday.Add(2))[:1], weekday)
	if weekend[0] < 280 || weekend[0] > 500 || working[0] > 180 || working[0] < 100 {
		t.Errorf("weekend %d, working %d", weekend[0], working[0])
	}

	risen := fill(saturday, Days, func(d flex.Day, _ time.Time) flex.WattHours {
		if daysBetween(d, saturday) <= 14 {
			return 400
		}

		return 100
	})

	if got, _ := Load(risen, periodsOf(saturday)[:1], weekday); got[0] < 300 {
		t.Errorf("a home that has changed is still guessed at %d", got[0])
	}
}

func TestGapsAreLeftOut(t *testing.T) {
	monday := flex.Day{Year: 2025, Month: 6, Dom: 16}
	past := Series{monday.Add(-7).Period(20): 700, monday.Add(-3).Period(20): 700}
	got, known := Load(past, periodsOf(monday), weekday)
	if !known || got[19] != 700 || got[18] != Unknown {
		t.Errorf("%d, %d, %v", got[19], got[18], known)
	}
}

// TestWithinWhatWasMetered: a mean lies between the least and the most, is the same for
// the same readings, and knows nothing of the future.
func TestWithinWhatWasMetered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := flex.Day{Year: 2025, Month: time.Month(rapid.IntRange(1, 12).Draw(t, "month")), Dom: rapid.IntRange(1, 28).Draw(t, "day")}
		least, most := flex.WattHours(1<<40), flex.WattHours(0)
		past := Series{}
		for range rapid.IntRange(1, 200).Draw(t, "readings") {
			e := flex.WattHours(rapid.IntRange(0, 5000).Draw(t, "Wh"))
			past[d.Period(1).Add(-rapid.IntRange(1, Days*48).Draw(t, "back"))] = e
		}

		for _, e := range past {
			least, most = min(least, e), max(most, e)
		}

		got, known := Load(past, periodsOf(d), weekday)
		past[d.Period(1)] = 1 << 30
		again, _ := Load(past, periodsOf(d), weekday)
		for i, e := range got {
			if e != Unknown && (e < least || e > most) || !known || again[i] != e {
				t.Fatalf("half-hour %d: %d, then %d; metered %d to %d", i, e, again[i], least, most)
			}
		}
	})
}
