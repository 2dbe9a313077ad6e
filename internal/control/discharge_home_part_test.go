package control

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestKeepDischarge_Parts has a car keep discharging by its schedule in force: of the half-hours in which it discharges those stay that are
// not over, and one that ends at the first instant is over.
func TestKeepDischarge_Parts(t *testing.T) {
	at := time.Date(2026, 1, 10, 18, 0, 0, 0, time.UTC)
	for from, want := range map[time.Time]int{at.Add(-time.Second): 2, at: 1, at.Add(time.Second): 1, at.Add(flex.HalfHour): 0} {
		before := &store.Discharge{}
		for _, k := range []time.Duration{-2, -1, 0} {
			before.Parts = append(before.Parts, store.DischargedPart{From: at.Add(k * flex.HalfHour)})
		}

		p := &store.ScheduledAsset{}
		p.Current.From.Discharge = before
		car := &siteCar{member: member{ScheduledAsset: p, from: store.PlanInputs{
			ReadyBy:   at.Add(4 * time.Hour),
			Discharge: &store.Discharge{},
		}}}

		car.keepDischarge(&sitePlan{from: from, now: from})
		if n := len(car.from.Discharge.Parts); n != want || len(before.Parts) != 3 {
			t.Errorf("from %v on %d half-hours stay, want %d", from, n, want)
		}
	}
}
