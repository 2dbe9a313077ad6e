package control

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/forecast"
)

// TestLearnBase learns what a home usually draws: by half-hour and kind of day, at the level that
// nine days of ten do not pass, in steps of half a kilowatt.
func TestLearnBase(t *testing.T) {
	first := flex.DayAt(time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)) // a Monday
	drawn := forecast.Series{}
	for k := range 28 {
		day := first.Add(k)
		for n := 1; n <= 48; n++ {
			drawn[day.Period(n)] = 200
		}

		drawn[day.Period(37)] = 1500 // 18:00
		if kind, _ := kindOf(day.Period(37)); kind == 1 {
			drawn[day.Period(37)] = 600
		}
	}

	drawn[first.Period(3)] = 5000 // one day of twenty

	known := func(flex.Period) bool { return false }
	b := learnBase(drawn, known)
	monday, saturday := first.Add(28), first.Add(33)
	for _, c := range []struct {
		p    flex.Period
		want flex.Watts
	}{{monday.Period(1), 500}, {monday.Period(3), 500}, {monday.Period(37), 3000}, {saturday.Period(37), 1500}} {
		if got := b.powerAt(c.p); got != c.want {
			t.Errorf("%v: %d W, want %d", c.p.Start(), got, c.want)
		}
	}

	if b.max() != 3000 || !b.known {
		t.Errorf("most %d, known %v", b.max(), b.known)
	}

	if none := learnBase(forecast.Series{first.Period(1): 100}, known); none.known || none.max() != 0 {
		t.Errorf("of one half-hour %d W are learned", none.max())
	}
}
