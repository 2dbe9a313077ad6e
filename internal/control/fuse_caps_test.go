package control_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestFuse_Caps has two cars of 7.4 kW at a site of 40 A on one phase, in an organisation with a cap that does not
// bind them. What they were sent never passes the fuse, whoever accepted it; each has what it needs; and the
// explanation of the one that waits names the fuse.
func TestFuse_Caps(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) { h.underCap("2026-01-10T18:00:00Z") })
}

// TestFuse_CapsClock is the same in the nights in which the clocks change.
func TestFuse_CapsClock(t *testing.T) {
	for _, start := range []string{"2026-03-28T18:00:00Z", "2026-10-24T18:00:00Z"} {
		one(t, start, func(h *fixture) { h.underCap(start) })
	}
}

// underCap plays the night of two cars that TestFuse_Caps speaks of.
func (h *fixture) underCap(start string) {
	t := h.TB
	h.setCaps(flex.Caps{Fleet: kw(50)})
	cars := h.fuse(9.2, 7400)
	h.publish(start, night(12, 13, 14, 15)...)
	h.replan()
	cs := chargers{}
	plug := control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(18, flex.Minimise)}

	for _, car := range cars {
		h.at(car).event(plug)
		cs.accept(h, car)
		if w, at := cs.most(time.UnixMicro(h.micro.Load())); w > 9200 && len(cs) > 1 {
			t.Errorf("%d W are drawn at %v before the first has accepted to give way", w, at)
		}
	}

	cs.settle(h, cars)
	for range 3 { // the fleet is planned together, and again when all have accepted
		h.wait(flex.HalfHour)
		h.replan()
		cs.settle(h, cars)
	}

	if w, at := cs.most(time.UnixMicro(h.micro.Load())); w > 9200 {
		t.Errorf("%d W are drawn at %v", w, at)
	}

	explained := false
	for _, car := range cars {
		x := h.at(car).explanation()
		if !x.Exact || x.Plan.Shortfall > 0 {
			t.Errorf("%v: lacks %d Wh: %s", x.Exact, x.Plan.Shortfall, x.Prose())
		}

		explained = explained || strings.Contains(x.Prose(), "held back by the main fuse, 9.2 kW")
	}

	if !explained {
		t.Error("neither explanation names the fuse")
	}

	before := []int64{h.at(cars[0]).look().Session.Generation, h.at(cars[1]).look().Session.Generation}
	h.wait(time.Hour)
	h.publish(start, night(12, 13, 14, 15)...)
	h.replan()
	for i, car := range cars {
		if g := h.at(car).look().Session.Generation; g != before[i] {
			t.Errorf("car %d is sent a schedule without a cause", i)
		}
	}

	h.supposed(cars[1])
	h.clean()
}

// TestFuse_CapsBattery has two cars and a battery behind a fuse under a cap, one car out of reach and then the other
// replaced by one that needs more: at no instant do the schedules in force, and what the battery is sent to charge
// with, pass the fuse together.
func TestFuse_CapsBattery(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.setCaps(flex.Caps{Fleet: kw(50)})
		cars := h.fuse(12, 7400)
		battery := h.homeSite()
		h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
		h.replan()

		plug := control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(18, flex.Minimise)}
		check := func(when string) {
			h.Helper()
			if most := h.drawnBeside(battery, cars...); most > 12000 {
				h.Errorf("%s: %d W behind a fuse of 12 kW", when, most)
			}
		}

		h.at(cars[0]).event(plug)
		h.accept()
		h.at(cars[1]).event(plug) // which never accepts anything
		check("plugged in")
		for range 3 {
			h.wait(control.MarketInterval)
			h.replan()
			h.at(cars[0])
			check("planned together")
		}

		h.at(cars[0]).event(control.Event{Kind: control.PlugOut})
		h.wait(2 * time.Minute)
		plug.Intent = need(30, flex.Minimise)
		h.event(plug)
		check("another car")
		h.wait(control.MarketInterval)
		h.replan()
		check("planned with the other car")
		h.clean()
	})
}

// drawnBeside is the most that the schedules in force of cars let them draw together with what a battery is sent to
// charge with.
func (h *fixture) drawnBeside(battery flex.AssetID, cars ...flex.AssetID) (most flex.Watts) {
	h.Helper()
	most = h.drawn(cars...)
	var all []store.Schedule
	for _, car := range cars {
		all = append(all, h.at(car).look().Current)
	}

	for _, m := range h.modes(battery) {
		if m.Mode.String() != "CHARGE" {
			continue
		}

		for at := m.From; at.Before(m.To); at = at.Add(time.Minute) {
			w := flex.Watts(3000)
			for _, s := range all {
				for _, step := range s.Steps {
					if step.Contains(at) {
						w += min(step.Limit, s.From.Power)
					}
				}
			}
			most = max(most, w)
		}
	}

	return most
}

// foreseesNothing supposes prices as they are: nothing is foreseen to change.
func (h *fixture) foreseesNothing() {
	h.Helper()
	f, err := h.service.Foresee(h.Context(), h.Org, nil)
	if err != nil || f.Planned == 0 || f.Changed > 0 {
		h.Errorf("of %d that are looked at %d would change for nothing: %v", f.Planned, f.Changed, err)
	}
}

// TestFuse_CapsRandom plays some of the random sites under a cap of the organisation.
func TestFuse_CapsRandom(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		t := h.TB.(*testing.T)
		h.setCaps(flex.Caps{Fleet: kw(60)})
		for seed := range uint64(12) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				h.TB = t
				h.randomSite(rand.New(rand.NewPCG(seed, 1)), 1, control.MarketInterval)
			})
		}
		h.TB = t
		h.clean()
	})
}

// TestFuse_CapsAgain has a car behind a fuse that is less than its power, under a cap, charge now after it was done: its plan keeps the
// fuse by itself, and the check before sending has nothing to refuse.
func TestFuse_CapsAgain(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		cars := h.fuse(8, 11_000)
		h.setCaps(flex.Caps{Fleet: kw(100)})
		h.publish("2026-01-10T18:00:00Z", night()...)
		for _, car := range cars {
			h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(6, flex.Minimise)})
			h.accept()
		}

		h.replan()
		h.wait(16 * time.Hour)
		h.event(control.Event{Kind: control.ChargeNow, EndAt: time.UnixMicro(h.micro.Load()).Add(time.Hour)})
		if w := h.drawn(cars...); w > 8000 {
			t.Errorf("%d W are drawn behind a fuse of 8 kW", w)
		}

		h.clean()
	})
}
