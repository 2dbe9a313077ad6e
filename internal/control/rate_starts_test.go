package control

import (
	"testing"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// A car that may charge and has not begun yet has its delay in the allowance, and is allowed the same for its second start, as before
// and after.
func TestLateStarts_Begun(t *testing.T) {
	from := time.Date(2026, 1, 15, 0, 10, 0, 0, time.UTC)
	var prices []flex.PricedPeriod
	for i := range 14 { // 00:00 to 01:00 is cheapest, then 03:00 to 05:00
		price := 60.0
		switch {
		case i < 2:
			price = 10
		case i >= 6 && i < 10:
			price = 20
		}

		prices = append(prices, flex.PricedPeriod{Period: flex.PeriodAt(from).Add(i), Price: flex.FromGBPPerMWh(price), Known: true})
	}

	for _, test := range []struct {
		name      string
		delivered flex.WattHours
		want      flex.WattHours // 1 % and a minute more than is left, and so many starts of 900 Wh
	}{
		{"not yet", 600, 5400 + 54 + 60 + 2*900},
		{"at the end of its delay", 900, 5100 + 51 + 60 + 2*900},
		{"begun", 1000, 5000 + 50 + 60 + 900},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := store.PlanInputs{ReadyBy: from.Add(6 * time.Hour), Need: 6000, Power: 3600, Running: true, Mode: flex.Minimise, Delivered: test.delivered}
			e.Learned = &store.Learned{Nominal: 7400, Delay: 15 * time.Minute, HalfHours: 3}

			if p := problemOf(e, from, prices); p.Need != test.want {
				t.Errorf("%d Wh, want %d", p.Need, test.want)
			}
		})
	}
}

// A schedule that names a learned power names none that is a pause for the charger.
func TestLimitByRate_Least(t *testing.T) {
	for _, test := range []struct {
		phases                 int
		nominal, learned, want flex.Watts
	}{
		{1, 7400, 1200, 1380},
		{0, 7400, 1200, 1380},
		{1, 7400, 1381, 1381},
		{1, 1000, 900, 1000},
		{3, 11_000, 1200, 4140},
	} {
		e := store.PlanInputs{Power: test.learned, Phases: test.phases, Learned: &store.Learned{Nominal: test.nominal}}

		if limitToLearned(&e, true); e.Power != test.want {
			t.Errorf("%d phases, %d W of %d W: %d W are named, want %d", test.phases, test.learned, test.nominal, e.Power, test.want)
		}
	}
}

// What a car is allowed for its second start takes no peak time, also where a ramp leaves the rest of the off-peak time to others.
func TestLateStarts_NoPeak(t *testing.T) {
	from := time.Date(2026, 1, 14, 22, 0, 0, 0, time.UTC)
	e := store.PlanInputs{ReadyBy: from.Add(9 * time.Hour), Need: 10_800, Power: 3600, Mode: flex.Minimise, MayChargePeak: true}
	e.Tariff = flex.Tariff{OffPeak: "00:00-02:00, 03:00-05:00", Zone: "Europe/London", Type: flex.DualRate}
	e.Learned = &store.Learned{Nominal: 7400, Delay: 15 * time.Minute, HalfHours: 3}
	e.Ramp = &store.Ramp{Offset: 10 * time.Minute, Spread: 20 * time.Minute}

	plan := charge.Solve(problemOf(e, from, nil))
	for _, p := range plan.Periods {
		if !p.OffPeak && p.Energy > 0 {
			t.Errorf("%d Wh in %v, which is peak time", p.Energy, p.Span)
		}
	}

	if plan.Energy < e.Need {
		t.Errorf("%d Wh of %d", plan.Energy, e.Need)
	}
}
