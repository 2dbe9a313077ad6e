package forecast

import (
	"testing"

	"flexd/internal/flex"
)

// TestSolar_Today: a roof that gave half of the usual this morning is guessed lower for the rest of the day, less so with
// each half-hour, and as usual tomorrow.
func TestSolar_Today(t *testing.T) {
	today := flex.Day{Year: 2026, Month: 1, Dom: 20}
	roof := Series{}
	for back := 1; back <= Days; back++ {
		for n := 20; n < 30; n++ {
			roof[today.Add(-back).Period(n+1)] = 1000
		}
	}

	for n := 20; n < 24; n++ {
		roof[today.Period(n+1)] = 500
	}
	var periods []flex.Period
	for n := 24; n < 78; n++ {
		periods = append(periods, today.Period(1).Add(n))
	}
	got, known := Solar(roof, periods)

	// 1,000 x (1 + 0.8 + 0.64 + 0.512) Wh were usual and half of that came, and 500 are added to both: 1,976 of 3,452.
	if want := flex.WattHours(572); !known || got[0] != want {
		t.Errorf("%d Wh, want %d", got[0], want)
	}
	if want := flex.WattHours(615); got[1] != want {
		t.Errorf("%d Wh a half-hour later, want %d", got[1], want)
	}
	if tomorrow := got[24+24]; tomorrow != 1000 {
		t.Errorf("%d Wh tomorrow, want the usual 1000", tomorrow)
	}
}
