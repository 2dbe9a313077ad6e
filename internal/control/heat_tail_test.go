package control

import (
	"slices"
	"testing"
	"time"

	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestDrawBatteries_BesideHeat: after the cars' last ready-by a battery keeps its power of the fuse only where each car could charge
// beside that and all that a heater has then.
func TestDrawBatteries_BesideHeat(t *testing.T) {
	now := time.Date(2026, 1, 10, 18, 0, 0, 0, time.UTC)
	for fuse, kept := range map[flex.Watts]bool{9379: false, 9380: true} {
		f := &sitePlan{fuse: fuse, from: now, tight: true}
		f.home = &siteHome{device: home.Battery{Power: 5000, Capacity: 10000}}
		off := flex.Step{Span: flex.Span{From: now, To: now.Add(24 * time.Hour)}}
		f.heaters = []loadBound{{lists: [][]flex.Step{{off}}, power: 3000, openEnded: true}}
		f.cars = []*siteCar{{member: member{from: store.PlanInputs{Power: 7400, Phases: 1, ReadyBy: now.Add(time.Hour)}}}}
		f.cars[0].ScheduledAsset = &store.ScheduledAsset{}

		f.addLoads(nil, nil)
		l := f.load()
		l.addAll(f.others, f.lastEnd.Add(time.Minute))
		if least := f.cars[0].least(); f.fuse-l.max() < least {
			t.Errorf("%d W of fuse: %d W are left of it for a car that takes %d", fuse, f.fuse-l.max(), least)
		}
		if has := slices.ContainsFunc(f.others, func(o loadBound) bool { return o.isBattery && o.powerAt(f.lastEnd.Add(time.Minute)) > 0 }); has != kept {
			t.Errorf("%d W of fuse: the battery keeps its power: %v", fuse, has)
		}
	}
}

// TestFinish_SeveralBesideHeat: after their last ready-by one to three cars leave a heater all of its power only where each of them can
// charge beside that at once, and where one alone could not without it either. Else they have their equal parts of the fuse, or take turns.
func TestFinish_SeveralBesideHeat(t *testing.T) {
	now := time.Date(2026, 1, 10, 18, 0, 0, 0, time.UTC)
	for cars := range flex.Watts(4) {
		if cars == 0 {
			continue
		}

		for _, c := range []struct {
			fuse   flex.Watts
			heats  bool
			charge flex.Watts // how many of the cars do, at first
		}{
			{3000 + 1380*cars, true, cars},
			{3000 + 1380*cars - 1, false, cars},
			{1380*cars - 1, cars == 1, cars - 1},
		} {
			f := &sitePlan{fuse: c.fuse, from: now, tight: true}
			off := flex.Step{Span: flex.Span{From: now, To: now.Add(24 * time.Hour)}}
			f.heaters = []loadBound{{lists: [][]flex.Step{{off}}, power: 3000, openEnded: true}}
			for range cars {
				e := store.PlanInputs{Power: 7400, Phases: 1, ReadyBy: now.Add(time.Hour)}
				f.cars = append(f.cars, &siteCar{member: member{ScheduledAsset: &store.ScheduledAsset{}, from: e}})
			}

			f.addLoads(nil, nil)
			after := f.lastEnd.Add(time.Minute)
			heats := slices.ContainsFunc(f.others, func(o loadBound) bool { return o.isRequest && o.powerAt(after) == 3000 })
			if heats != c.heats {
				t.Errorf("%d cars, %d W: the heater keeps its power: %v", cars, c.fuse, heats)
			}

			var charge flex.Watts
			for _, car := range f.cars {
				f.setStepsAfterEnd(car)
				if limitAt(car.stepsAfterEnd, after) >= car.least() {
					charge++
				}
			}

			if charge != c.charge {
				t.Errorf("%d cars, %d W: %d charge, not %d", cars, c.fuse, charge, c.charge)
			}
		}
	}
}
