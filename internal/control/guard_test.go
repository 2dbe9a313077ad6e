package control

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// steps is a list of so many hours from an instant on, at one limit each.
func hourly(from time.Time, limits ...flex.Watts) (steps []flex.Step) {
	for i, w := range limits {
		at := from.Add(time.Duration(i) * time.Hour)
		steps = append(steps, flex.Step{Span: flex.Span{From: at, To: at.Add(time.Hour)}, Limit: w})
	}
	return steps
}

// TestGuard_Fuse plants a planner that lets two cars pass the main fuse together: what is sent keeps it, is
// marked for the list of exceptions, counted, and planned again. A plan that keeps the fuse is sent as it is.
func TestGuard_Fuse(t *testing.T) {
	now := time.Date(2026, 1, 10, 18, 0, 0, 0, time.UTC)
	ctx := t.Context()
	plan := func(second ...flex.Watts) *sitePlan {
		f := &sitePlan{fuse: 10000, from: now, now: now, lastEnd: now.Add(3 * time.Hour), replanTimes: map[time.Time][]flex.AssetID{}}
		for i, steps := range [][]flex.Step{hourly(now, 7400, 7400, 0), hourly(now, second...)} {
			id := flex.AssetID{byte(i + 1)}
			from := store.PlanInputs{Power: 7400, ReadyBy: now.Add(3 * time.Hour), Origins: "event asset site " + store.PlanRefused}
			p := &store.ScheduledAsset{Current: store.Schedule{Schedule: flex.Schedule{AssetID: id}, From: from}}
			f.cars = append(f.cars, &siteCar{member: member{ScheduledAsset: p, from: from}, renewed: true, stepsForNow: steps})
		}
		return f
	}

	d := &Service{}
	good := plan(2600, 0, 7400)
	for i, n := range d.guarded(ctx, good) {
		if planRefused(&n.next.From) || len(n.next.Steps) != len(good.cars[i].stepsForNow) {
			t.Errorf("a plan that keeps the fuse is changed: %+v", n.next)
		}
	}
	if d.Refused() != 0 || len(good.replanTimes) > 0 {
		t.Error("a plan that keeps the fuse is counted as refused")
	}

	bad := plan(2600, 7400, 7400) // 14.8 kW in the second hour
	all := d.guarded(ctx, bad)
	if d.Refused() != 1 || len(bad.replanTimes[now.Add(MarketInterval)]) != 2 {
		t.Errorf("%d refused, %v again", d.Refused(), bad.replanTimes)
	}

	for _, n := range all {
		if !planRefused(&n.next.From) {
			t.Errorf("not marked: %s", n.next.From.Origins)
		}
	}
	if got := all[1].next.Steps; len(got) != 3 || got[0].Limit != 2600 || got[1].Limit != 2600 || got[2].Limit != 7400 {
		t.Errorf("what is left of the second car is %v", got)
	}

	var x Explanation
	x.From = all[1].next.From
	if !strings.Contains(strings.Join(x.CapLines(), " "), "would have passed the main fuse and was not sent") {
		t.Errorf("it is explained as %v", x.CapLines())
	}
}

// TestGuard_Batteries plants a car's plan beside two batteries that charge, of which one is dispatched later too: the check counts both, in
// whichever order it is noted when they charge.
func TestGuard_Batteries(t *testing.T) {
	now := time.Date(2026, 1, 10, 18, 0, 0, 0, time.UTC)
	half := func(later int) flex.Step {
		return flex.Step{Span: flex.PeriodAt(now).Add(later).Span(), Limit: 3000}
	}

	for _, busy := range [][]flex.Step{
		{half(4), half(0), half(0)},
		{half(0), half(4), half(0)},
		{half(0), half(0), half(4)},
	} {
		f := &sitePlan{fuse: 10000, from: now, now: now, lastEnd: now.Add(3 * time.Hour), replanTimes: map[time.Time][]flex.AssetID{}}
		f.home = &siteHome{device: home.Battery{Power: 6000, Capacity: 20000}, count: 2, certainCharging: busy}
		from := store.PlanInputs{Power: 7400, ReadyBy: f.lastEnd, Origins: "event asset site"}
		p := &store.ScheduledAsset{Current: store.Schedule{Schedule: flex.Schedule{AssetID: flex.AssetID{1}}, From: from}}
		f.cars = []*siteCar{{member: member{ScheduledAsset: p, from: from}, renewed: true, stepsForNow: hourly(now, 7400, 0, 0)}}

		d := &Service{}
		all := d.guarded(t.Context(), f)
		if d.Refused() != 1 || len(all) != 1 || all[0].next.Steps[0].Limit > 4000 {
			t.Errorf("%d refused beside batteries at %v: %+v", d.Refused(), busy, all)
		}
	}
}

// TestGuard_Giving plants modes beside a car that gives, and another battery that discharges: what would store it, or pass the export
// limit with it, is locked.
func TestGuard_Giving(t *testing.T) {
	first := flex.PeriodAt(time.Date(2026, 1, 10, 18, 0, 0, 0, time.UTC))
	periods := []flex.Period{first, first.Add(1), first.Add(2), first.Add(3), first.Add(4)}
	gives := hourly(first.Start(), 4000)
	other := []flex.Step{{Span: periods[3].Span(), Limit: 3000}}
	s := batteryInputs{periods: periods, load: make([]flex.WattHours, 5), roof: make([]flex.WattHours, 5), meter: &meter{
		supply:             flex.Supply{Import: 10000, Export: 5000, Set: true},
		possibleDischarges: []loadBound{{lists: [][]flex.Step{gives}, power: flex.NoLimit}},
		batteryDischarges:  []loadBound{{lists: [][]flex.Step{other}, power: 3000}},
	}}

	d := &Service{}
	device := home.Battery{Power: 3000, Capacity: 10000}
	for _, c := range []struct{ first, second, want battery.Mode }{
		{battery.ModeCharge, battery.ModeSelfUse, battery.ModeLock},
		{battery.ModeDischarge, battery.ModeDischarge, battery.ModeLock},
		{battery.ModeFeedIn, battery.ModeFeedIn, battery.ModeFeedIn},
	} {
		modes := []battery.Mode{c.first, c.second, battery.ModeDischarge, battery.ModeDischarge, battery.ModeCharge}
		d.guardBattery(t.Context(), &store.Battery{}, device, &s, modes, make([]flex.Watts, 5))
		if modes[0] != c.want || modes[1] != c.want || modes[2] != battery.ModeDischarge || modes[3] != battery.ModeLock || modes[4] != battery.ModeCharge {
			t.Errorf("of %v and %v is left %v", c.first, c.second, modes)
		}
	}
}

// TestGuard_Battery plants modes that pass a site's limits: they are locked, the others stay.
func TestGuard_Battery(t *testing.T) {
	first := flex.PeriodAt(time.Date(2026, 1, 10, 18, 0, 0, 0, time.UTC))
	periods := []flex.Period{first, first.Add(1), first.Add(2), first.Add(3)}
	car := hourly(first.Start(), 7400)
	s := batteryInputs{periods: periods, load: make([]flex.WattHours, 4), roof: make([]flex.WattHours, 4), meter: &meter{
		supply:          flex.Supply{Import: 10000, Export: 2000, Set: true},
		possibleDraws:   []loadBound{{lists: [][]flex.Step{car}, power: 7400}},
		plannedDraws:    []loadBound{{lists: [][]flex.Step{car}, power: 7400}},
		noDischargeInto: []loadBound{{lists: [][]flex.Step{car}, power: 7400}},
	}}

	modes := []battery.Mode{battery.ModeCharge, battery.ModeSelfUse, battery.ModeDischarge, battery.ModeCharge}
	powers := []flex.Watts{3000, -100, -3000, 3000}
	d := &Service{}
	device := home.Battery{Power: 3000, Capacity: 10000}
	if !d.guardBattery(t.Context(), &store.Battery{}, device, &s, modes, powers) {
		t.Error("a plan that passes limits is not marked as refused")
	}

	want := []battery.Mode{battery.ModeLock, battery.ModeLock, battery.ModeLock, battery.ModeCharge}
	for i := range modes {
		if modes[i] != want[i] {
			t.Errorf("half-hour %d: %v, want %v", i, modes[i], want[i])
		}
	}
	if d.guardBattery(t.Context(), &store.Battery{}, device, &s, modes, powers) {
		t.Error("what is left of a refused plan is refused again")
	}
	if d.Refused() != 3 || powers[2] != 0 || powers[3] != 3000 {
		t.Errorf("%d refused, %v W", d.Refused(), powers)
	}
}
