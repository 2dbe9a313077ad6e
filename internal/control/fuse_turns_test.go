package control

import (
	"testing"
	"time"

	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestFinish_Parts has cars on one phase and on three behind a fuse. After ready-by each has at least the least that it can charge with.
// Where the fuse does not carry that, they take turns, and one that is short comes first. They never pass the fuse.
func TestFinish_Parts(t *testing.T) {
	now := time.Date(2026, 1, 10, 18, 0, 0, 0, time.UTC)

	cases := []struct {
		fuse   flex.Watts
		phases []int
		want   []flex.Watts // at first; the last car is short by 4.14 kWh
		turns  bool
	}{
		{7200, []int{1, 3}, []flex.Watts{3060, 4140}, false},
		{7200, []int{1, 1}, []flex.Watts{3600, 3600}, false},
		{5000, []int{1, 3}, []flex.Watts{0, 5000}, true},
		{8279, []int{3, 3}, []flex.Watts{0, 8279}, true},
		{3000, []int{1, 1, 1}, []flex.Watts{1500, 0, 1500}, true},
	}

	for _, c := range cases {
		f := &sitePlan{fuse: c.fuse, from: now, tight: true}
		for _, phases := range c.phases {
			e := store.PlanInputs{Power: 11000, Phases: phases, ReadyBy: now.Add(time.Hour)}
			f.cars = append(f.cars, &siteCar{member: member{ScheduledAsset: &store.ScheduledAsset{}, from: e}})
		}

		f.cars[len(f.cars)-1].plan.Shortfall = 4140
		f.addLoads(nil, nil)
		f.setAllStepsAfterEnd()

		if c.turns {
			f.firstOfAll(t, c.want)
		}

		f.staysUnder(t, c.fuse)

		for i, car := range f.cars {
			got := limitAt(car.stepsAfterEnd, f.lastEnd.Add(time.Minute))
			if !c.turns && got != c.want[i] {
				t.Errorf(
					"%d W, phases %v: the car %d has %d W, not %d",
					c.fuse,
					c.phases,
					i,
					got,
					c.want[i],
				)
			}
			if had := takenOf(car.stepsAfterEnd); had < 10000 {
				t.Errorf(
					"%d W, phases %v: the car %d has %d Wh in a week",
					c.fuse,
					c.phases,
					i,
					had,
				)
			}
		}
	}
}

// TestFinish_TurnsBesideLoads has three cars behind a fuse that carries two of them, beside a tank and a battery. After their ready-by the
// cars take turns in what the tank leaves, as a car can charge beside it. The battery reserves nothing: no car could charge beside both.
func TestFinish_TurnsBesideLoads(t *testing.T) {
	now := time.Date(2026, 1, 10, 18, 0, 0, 0, time.UTC)
	f := &sitePlan{fuse: 9200, from: now, tight: true}
	f.home = &siteHome{device: home.Battery{Power: 5000, Capacity: 10000}}
	off := flex.Step{Span: flex.Span{From: now, To: now.Add(24 * time.Hour)}}
	f.heaters = []loadBound{{lists: [][]flex.Step{{off}}, power: 3000, openEnded: true}}

	for range 3 {
		e := store.PlanInputs{Power: 11000, Phases: 3, ReadyBy: now.Add(time.Hour)}
		f.cars = append(f.cars, &siteCar{member: member{ScheduledAsset: &store.ScheduledAsset{}, from: e}})
	}

	f.addLoads(nil, nil)
	f.setAllStepsAfterEnd()
	f.staysUnder(t, 6200)

	for i, car := range f.cars {
		if had := takenOf(car.stepsAfterEnd); had < 50_000 {
			t.Errorf("the car %d has %d Wh in a week", i, had)
		}
	}
}

// firstOfAll fails unless the last car, which is short, is served first for as long as it takes to catch up with its least power, with the
// power that is wanted.
func (f *sitePlan) firstOfAll(t *testing.T, want []flex.Watts) {
	t.Helper()
	last := f.cars[len(f.cars)-1]
	for at := f.lastEnd; at.Before(last.shortfallMetAt(f.from)); at = at.Add(10 * time.Minute) {
		if got := limitAt(last.stepsAfterEnd, at); got != want[len(want)-1] {
			t.Errorf("%d W: the car that is short has %d W at %v", f.fuse, got, at)
		}
	}
}

// staysUnder fails if the cars together pass the fuse.
func (f *sitePlan) staysUnder(t *testing.T, fuse flex.Watts) {
	t.Helper()
	for at := f.lastEnd; at.Before(f.lastEnd.Add(TailTime)); at = at.Add(time.Minute) {
		var sum flex.Watts
		for _, car := range f.cars {
			sum += limitAt(car.stepsAfterEnd, at)
		}
		if sum > fuse {
			t.Fatalf("%d W at %v behind %d", sum, at, fuse)
		}
	}
}

// takenOf is the energy of steps.
func takenOf(steps []flex.Step) flex.WattHours {
	var sum flex.WattHours
	for _, s := range steps {
		sum += s.Limit.For(s.Len())
	}

	return sum
}
