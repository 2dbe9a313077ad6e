package control_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// fuse sets what the import of the fixture's site can carry, and gives it more chargers.
func (h *fixture) fuse(kw float64, chargers ...flex.Watts) (assets []flex.AssetID) {
	h.Helper()
	h.setFuse(kw)
	assets = append(assets, h.asset)
	for _, power := range chargers {
		assets = append(assets, h.Asset(h.site, flex.Charger, power))
	}
	return assets
}

func (h *fixture) setFuse(kw float64) {
	h.Helper()
	h.Exec(`UPDATE site SET supply_set = TRUE, import_w = $1 WHERE id = $2`, int64(flex.FromKW(kw)), h.site.Bytes())
}

// obeyed is what a charger does: what it accepted last since its car was plugged in.
type obeyed struct {
	steps   []flex.Step
	power   flex.Watts
	session flex.SessionID
}

// chargers are what the chargers of a site do, by the deliveries that they accepted alone.
type chargers map[flex.AssetID]obeyed

// accept has an asset's charger take the schedule that stands.
func (cs chargers) accept(h *fixture, asset flex.AssetID) {
	c := h.at(asset).look()
	if !c.Open() || c.Current.Generation == 0 {
		return
	}
	if _, had := cs[asset]; !had || cs[asset].session != c.Session.ID || !slices.Equal(cs[asset].steps, c.Current.Steps) {
		h.accept()
	}
	cs[asset] = obeyed{c.Current.Steps, c.Current.From.Power, c.Session.ID}
}

// most is the most that the chargers draw together from an instant on, and when, if nothing is
// heard of any more: after the end of its profile each draws what it likes.
func (cs chargers) most(from time.Time) (most flex.Watts, when time.Time) {
	instants := []time.Time{from}
	end := time.Time{}
	for _, c := range cs {
		end = maxTime(end, c.steps[len(c.steps)-1].To)
		for _, s := range c.steps {
			instants = append(instants, s.From, s.To)
		}
	}

	for _, at := range instants {
		if at.Before(from) || !at.Before(from.Add(control.TailTime)) {
			continue
		}

		sum := flex.Watts(0)
		for _, c := range cs {
			draws := c.power
			for _, s := range c.steps {
				if s.Contains(at) {
					draws = min(s.Limit, c.power)
				}
			}

			sum += draws
		}

		if sum > most {
			most, when = sum, at
		}
	}

	return most, when
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// settle has all accept what is sent to them until nothing changes.
func (cs chargers) settle(h *fixture, assets []flex.AssetID) {
	for range 4 {
		for _, a := range assets {
			cs.accept(h, a)
		}
		h.wait(control.FuseInterval + time.Second)
		h.replan()
	}
	for _, a := range assets {
		cs.accept(h, a)
	}
}

// TestFuse_TwoCars has two cars of 7.4 kW behind a fuse of 10. Both are ready, together they never
// draw more, the later explains why it waits, and when both are done neither is free of the fuse.
func TestFuse_TwoCars(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		cars := h.fuse(10, 7400)
		h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
		h.replan()
		cs := chargers{}
		plug := control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(22, flex.Minimise)}
		h.at(cars[0]).event(plug)
		cs.accept(h, cars[0])
		alone := h.look().Current
		if alone.Steps[len(alone.Steps)-1].To != alone.From.ReadyBy {
			t.Error("one car alone has a tail")
		}

		h.at(cars[1]).event(plug)
		cs.accept(h, cars[1])
		if w, at := cs.most(time.UnixMicro(h.micro.Load())); w > 10000 && at.Before(alone.From.ReadyBy) {
			t.Errorf("%d W are drawn at %v, before the first has accepted", w, at)
		}

		cs.settle(h, cars)

		if w, at := cs.most(time.UnixMicro(h.micro.Load())); w > 10000 {
			t.Errorf("%d W are drawn at %v", w, at)
		}

		explained := false
		for _, car := range cars {
			x := h.at(car).explanation()
			if !x.Exact || x.Plan.Shortfall > 0 {
				t.Errorf("%v: lacks %d Wh: %s", x.Exact, x.Plan.Shortfall, x.Prose())
			}

			explained = explained || strings.Contains(x.Prose(), "held back by the main fuse, 10 kW")
		}

		if !explained {
			t.Error("neither explanation names the fuse")
		}

		h.supposed(cars[1])
		h.foreseesNothing()
		before := []int64{h.at(cars[0]).look().Session.Generation, h.at(cars[1]).look().Session.Generation}
		h.wait(time.Hour)
		h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
		h.replan()
		for i, car := range cars {
			if g := h.at(car).look().Session.Generation; g != before[i] {
				t.Errorf("car %d is sent a schedule without a cause", i)
			}
		}

		h.at(cars[1]).event(control.Event{Kind: control.PlugOut})
		h.wait(2 * time.Minute)
		h.replan()
		if s := h.at(cars[0]).look().Current; s.End() != s.From.ReadyBy {
			t.Error("the one that is left still gives way to nobody")
		}

		h.clean()
	})
}

// supposed asks what a car would do that needs all it can have: it is given what the other leaves.
func (h *fixture) supposed(car flex.AssetID) {
	h.Helper()
	same, err := h.service.WhatIf(h.Context(), h.Org, []flex.AssetID{car}, control.Question{})
	if err != nil || same[0].Current.Shortfall > 0 {
		h.Errorf("nothing is supposed: %v, %d Wh are missing", err, same[0].Current.Shortfall)
	}

	all, err := h.service.WhatIf(h.Context(), h.Org, []flex.AssetID{car}, control.Question{Need: new(flex.FromKWh(6 * 7.4))})
	if err != nil || all[0].Proposed.Shortfall == 0 {
		h.Errorf("what needs all that a car can draw is met beside another: %v", err)
	}
}

// BenchmarkFuse measures a plug-in and a plug-out at a site of one charger, without a set capacity
// and with one, and beside one and two other cars behind a main fuse.
func BenchmarkFuse(b *testing.B) {
	for name, others := range map[string]int{"alone": -1, "alone, set": 0, "beside one": 1, "beside two": 2} {
		b.Run(name, func(b *testing.B) {
			h := open(b, storetest.SQLite(b), "2026-01-10T18:00:00Z")
			if others >= 0 {
				h.setFuse(12)
			}

			own := h.asset
			for range others {
				h.at(h.Asset(h.site, flex.Charger, 7400)).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(15, flex.Minimise)})
				h.accept()
			}

			h.at(own)
			for b.Loop() {
				h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(15, flex.Minimise)})
				h.event(control.Event{Kind: control.PlugOut})
				h.wait(2 * time.Minute)
			}
		})
	}
}

// TestFuse_OneAsset has a fuse that bears the only charger of a site: its schedule is that of a
// site without one, to the second.
func TestFuse_OneAsset(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		plug := control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(22, flex.Minimise)}
		h.event(plug)
		without := h.look().Current

		for _, set := range []func(){func() { h.setFuse(7.4) }, func() { h.mainFuse(33) }} {
			h.event(control.Event{Kind: control.PlugOut})
			h.goTo("2026-01-10T18:00:00Z")
			set()
			h.event(plug)
			if with := h.look().Current; !slices.Equal(without.Steps, with.Steps) || with.From.Origins != without.From.Origins {
				t.Errorf("%v, without a fuse %v", with, without)
			}
		}
	})
}

// TestFuse_Random lets two or three cars come, go, want other things and charge now behind a fuse,
// while chargers are out of reach for a time: what was accepted never passes the fuse, at any
// later second, and what could be met of the needs is.
func TestFuse_Random(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		t := h.TB.(*testing.T)
		for seed := range uint64(40) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				h.TB = t
				h.randomSite(rand.New(rand.NewPCG(seed, 1)), 1, 0)
			})
		}
		h.TB = t
		h.clean()
	})
}

// randomSite plays one site of random cars on so many phases; 0 is what their power implies. What could be met
// of their needs is worked out for cars that take any power, so it is asked for of cars on one phase alone.
// Before that some time passes.
func (h *fixture) randomSite(r *rand.Rand, phases int, rest time.Duration) {
	evening := time.UnixMicro(h.micro.Load()).UTC().Truncate(24 * time.Hour).Add(42 * time.Hour)
	h.micro.Store(evening.UnixMicro())
	h.site = h.Site(flex.FullScheduleMethod)
	powers := []flex.Watts{3680, 7400, 11000}
	h.asset = h.Asset(h.site, flex.Charger, powers[r.IntN(3)])
	more := make([]flex.Watts, 1+r.IntN(2))
	for i := range more {
		more[i] = powers[r.IntN(3)]
	}

	fuse := flex.FromKW(float64(6 + r.IntN(16)))
	cars := h.fuse(fuse.KW(), more...)
	h.Exec(`UPDATE asset SET phases = $1 WHERE site_id = $2`, phases, h.site.Bytes())
	prices := make([]float64, 48)
	for i := range prices {
		prices[i] = float64(r.IntN(200))
	}

	h.publish(evening.Format(time.RFC3339), prices...)
	cs := chargers{}
	check := func(what string) {
		h.Helper()
		if w, at := cs.most(time.UnixMicro(h.micro.Load())); w > fuse && len(cs) > 1 {
			h.Fatalf("after %s %d W are drawn at %v behind a fuse of %d", what, w, at, fuse)
		}
	}

	wishes := make([]wanted, len(cars))
	for i, car := range cars {
		wishes[i] = wanted{kwh: float64(2 + r.IntN(40)), hour: 3 + r.IntN(5)}
		h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: wishes[i].intent()})
		check("plug-in")
		if r.IntN(2) == 0 {
			cs.accept(h, cars[r.IntN(len(cars))])
			check("an acceptance")
		}
	}

	cs.settle(h, cars)
	for rested := time.Duration(0); rested < 3*rest; rested += rest {
		h.wait(rest)
		h.replan()
		cs.settle(h, cars)
	}
	check("all")
	if phases == 1 {
		h.met(cars, wishes, fuse)
	}

	for range 12 {
		h.wait(time.Duration(r.IntN(3600)) * time.Second)
		car := cars[r.IntN(len(cars))]
		what := h.happens(r, car, cs)
		check(what)
		if r.IntN(3) > 0 {
			h.replan()
		}

		for range r.IntN(3) {
			cs.accept(h, cars[r.IntN(len(cars))])
			check(what + " and an acceptance")
		}

		h.allTakePower(cars...)
	}

	for _, car := range cars {
		if c := h.at(car).look(); c.Open() {
			h.event(control.Event{Kind: control.PlugOut})
		}
	}
}

// happens lets something happen at a car, and says what.
func (h *fixture) happens(r *rand.Rand, car flex.AssetID, cs chargers) string {
	c := h.at(car).look()
	open := c.Open()
	switch r.IntN(5) {
	case 0:
		if open {
			h.event(control.Event{Kind: control.PlugOut})
			delete(cs, car)
			h.wait(2 * time.Minute)

			return "plug-out"
		}

	case 1:
		if open {
			h.event(control.Event{Kind: control.ChargeNow, EndAt: time.UnixMicro(h.micro.Load()).Add(time.Duration(1+r.IntN(300)) * time.Minute)})
			return "charge-now"
		}

	case 2:
		h.event(control.Event{Kind: control.IntentUpdate, Intent: wanted{float64(1 + r.IntN(40)), r.IntN(24)}.intent()})
		return "intent"

	case 3:
		if !open {
			h.event(control.Event{Kind: control.PlugIn})
			return "plug-in again"
		}
	}

	return "time"
}

// wanted is what a car of the random sites needs.
type wanted struct {
	kwh  float64
	hour int
}

func (w wanted) intent() *flex.Intent {
	in := need(w.kwh, flex.Minimise)
	in.ReadyByLocal = new(flex.WallTime(time.Duration(w.hour) * time.Hour))
	return in
}

// met holds what the cars are to be given against the most that any plan could, by maximum flow
// from half-hours to cars. Nothing was charged yet.
func (h *fixture) met(cars []flex.AssetID, wishes []wanted, fuse flex.Watts) {
	h.Helper()
	open := time.UnixMicro(h.micro.Load()).UTC().Truncate(24 * time.Hour).Add(23*time.Hour + 30*time.Minute)
	slots := make([]float64, 12) // 23:30 to 05:30
	for i := range slots {
		slots[i] = fuse.KW() / 2
	}

	needs, most, given, slack := make([]float64, len(cars)), make([]float64, len(cars)), 0.0, 0.0
	for i, car := range cars {
		s := h.at(car).look().Current
		needs[i], most[i] = wishes[i].kwh, s.From.Power.KW()/2
		got := 0.0
		for _, p := range s.Steps {
			p.Span = p.Meet(flex.Span{From: open, To: s.From.ReadyBy})
			if !p.Empty() {
				got += min(p.Limit, s.From.Power).KW() * p.Len().Hours()
			}
		}

		given += min(got, needs[i])
		slack += s.From.Power.KW()*control.TurnSlack.Hours() + needs[i]/100
	}

	can := flow(needs, most, slots, func(car, slot int) bool {
		return !open.Add(time.Duration(slot+1) * flex.HalfHour).After(open.Add(time.Duration(wishes[car].hour)*time.Hour + flex.HalfHour))
	})

	// What is left of the fuse beside others may be less than a car can charge with.
	if given < can*0.95-slack {
		h.Errorf("%.2f kWh of what is needed are given, and %.2f could be: fuse %d, %v of at most %v kWh a half-hour", given, can, fuse, wishes, most)
	}
}

// flow is the most energy that cars can be given: each at most its need, and so much in a slot.
func flow(needs, most, slots []float64, may func(car, slot int) bool) (sum float64) {
	given := make([][]float64, len(needs))
	for i := range given {
		given[i] = make([]float64, len(slots))
	}
	for i := range needs {
		for more := 1.0; needs[i] > 1e-9 && more > 1e-9; sum += more {
			more = push(i, needs[i], given, most, slots, may, make([]bool, len(needs)))
			needs[i] -= more
		}
	}
	return sum
}

// push gives a car up to so much more, from a slot with headroom or from one of which another car
// can be moved.
func push(car int, want float64, given [][]float64, most, slots []float64, may func(car, slot int) bool, visited []bool) float64 {
	visited[car] = true
	for s := range slots {
		if w := min(want, most[car]-given[car][s], slots[s]); may(car, s) && w > 1e-9 {
			given[car][s], slots[s] = given[car][s]+w, slots[s]-w
			return w
		}
	}

	for s := range slots {
		for other := range given {
			w := min(want, most[car]-given[car][s], given[other][s])
			if visited[other] || !may(car, s) || w <= 1e-9 {
				continue
			}

			if moved := push(other, w, given, most, slots, may, visited); moved > 0 {
				given[other][s], given[car][s] = given[other][s]-moved, given[car][s]+moved
				return moved
			}
		}
	}

	return 0
}

// TestFuse_Judges holds the two judges of the random sites to faults of which they must know.
func TestFuse_Judges(t *testing.T) {
	from := at("2026-01-10T18:00:00Z")
	step := func(hours int, limit flex.Watts) []flex.Step {
		return []flex.Step{{Span: flex.Span{From: from, To: from.Add(time.Duration(hours) * time.Hour)}, Limit: limit}}
	}
	a, b := flex.AssetID{1}, flex.AssetID{2}
	freed := chargers{a: {steps: step(2, 3000), power: 7400}, b: {steps: step(5, 3000), power: 7400}}

	if w, when := freed.most(from); w != 14800 || when != from.Add(5*time.Hour) {
		t.Errorf("two that are free draw %d W from %v on", w, when)
	}

	any := func(int, int) bool { return true }
	if kwh := flow([]float64{10, 10}, []float64{3, 3}, []float64{4, 4}, any); kwh != 8 {
		t.Errorf("a full fuse gives %v kWh", kwh)
	}

	// The first can take either slot, the second the first alone: the first is moved.
	last := func(car, slot int) bool { return car == 0 || slot == 0 }
	if kwh := flow([]float64{3, 3}, []float64{3, 3}, []float64{3, 3}, last); kwh != 6 {
		t.Errorf("one that could be moved is not: %v kWh", kwh)
	}
}
