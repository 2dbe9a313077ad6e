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
		f := &behindFuse{fuse: fuse, from: now, tight: true}
		f.home = &siteHome{device: home.Battery{Power: 5000, Capacity: 10000}}
		off := flex.Step{Span: flex.Span{From: now, To: now.Add(24 * time.Hour)}}
		f.tanks = []draws{{lists: [][]flex.Step{{off}}, power: 3000, free: true}}
		f.cars = []*siteCar{{member: member{from: store.Effective{Power: 7400, Phases: 1, ReadyBy: now.Add(time.Hour)}}}}
		f.cars[0].Planned = &store.Planned{}

		f.drawBeside(nil, nil)
		l := f.load()
		l.addAll(f.others, f.last.Add(time.Minute))
		if least := f.cars[0].least(); f.fuse-l.most() < least {
			t.Errorf("%d W of fuse: %d W are left of it for a car that takes %d", fuse, f.fuse-l.most(), least)
		}
		if has := slices.ContainsFunc(f.others, func(o draws) bool { return o.battery && o.at(f.last.Add(time.Minute)) > 0 }); has != kept {
			t.Errorf("%d W of fuse: the battery keeps its power: %v", fuse, has)
		}
	}
}
