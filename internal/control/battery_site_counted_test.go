package control

import (
	"slices"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestBatteries_CountedOn: others count on what a battery is planned to move, but where it refused what it was sent, and where an
// instruction calls it on what it was to do without.
func TestBatteries_CountedOn(t *testing.T) {
	first := flex.Period{}.Add(100)
	plan := &store.BatteryPlan{StoredAt: first, Without: []flex.Watts{-1, -2, -3, -4}}
	s := batteryInputs{
		periods:       []flex.Period{first, first.Add(1), first.Add(2), first.Add(3), first.Add(4)},
		ownDispatches: []ownDispatch{{}, {isSet: true, refused: true}, {}, {}, {}},
		fixed:         []bool{false, false, true, false, false},
	}

	got := s.reliablePowers(first, []flex.Watts{100, 200, 300, 400}, plan)
	if want := []flex.Watts{100, 0, -3, 400, 0}; !slices.Equal(got, want) {
		t.Errorf("counted on %v, want %v", got, want)
	}

	// The home draws 200 Wh: what others give beyond that is exported, and into what they charge nothing is given.
	m := &meter{others: []expectedPowers{{first: first, powers: []flex.Watts{-1000, -398, 3000, 0}}}}
	s = batteryInputs{periods: s.periods[:4], load: []flex.WattHours{200, 200, 200, 200}, roof: make([]flex.WattHours, 4), cars: make([]flex.WattHours, 4), meter: m}
	s.includeOtherBatteries(false)

	if want := []flex.WattHours{-200, -200, 1500, 0}; !slices.Equal(s.otherBatteries, want) {
		t.Errorf("beside others %v, want %v", s.otherBatteries, want)
	}
	if want := []flex.WattHours{300, 0, 0, 0}; !slices.Equal(s.otherExport, want) {
		t.Errorf("others export %v, want %v", s.otherExport, want)
	}
	if want := []bool{false, false, true, false}; !slices.Equal(s.otherDraws, want) {
		t.Errorf("others charge %v, want %v", s.otherDraws, want)
	}
}
