package control

import (
	"testing"
	"time"

	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestDrawBatteries_Phases: after the cars' last ready-by the batteries keep their power of the fuse only where
// each car could charge with its equal part of what is over, by its own least power: 1.38 kW on one phase, 4.14 kW on three.
func TestDrawBatteries_Phases(t *testing.T) {
	now := time.Date(2026, 1, 10, 18, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		fuse   flex.Watts
		phases []int
		kept   bool
	}{
		{6379, []int{1}, false},
		{6380, []int{1}, true},
		{6380, []int{3}, false},
		{7759, []int{1, 1}, false},
		{7760, []int{1, 1}, true},
		{9140, []int{3, 1}, false},
		{13_279, []int{1, 3}, false},
		{13_280, []int{3, 1}, true},
	} {
		f := &sitePlan{fuse: c.fuse, from: now, lastEnd: now.Add(time.Hour), tight: true}
		f.home = &siteHome{device: home.Battery{Power: 5000, Capacity: 10000}}
		for _, n := range c.phases {
			f.cars = append(f.cars, &siteCar{member: member{from: store.PlanInputs{Power: 7400, Phases: n}}})
		}

		f.addBatteryLoads()
		steps := f.others[0].lists[0]
		if kept := len(steps) > 0 && steps[len(steps)-1].To.Equal(f.lastEnd.Add(TailTime)); kept != c.kept {
			t.Errorf("%d W of fuse, cars on %v phases: a battery of 5 kW keeps its power afterwards: %v, want %v", c.fuse, c.phases, kept, c.kept)
		}
	}
}
