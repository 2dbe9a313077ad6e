package control_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	_ "flexd/test/seed"
)

// chargers gives flexd n more chargers, each at a site of its own, and returns all.
func (h *fixture) chargers(n int) (assets []flex.AssetID, sites []flex.SiteID) {
	assets, sites = []flex.AssetID{h.asset}, []flex.SiteID{h.site}
	for range n {
		site := h.Site(flex.FullScheduleMethod)
		sites, assets = append(sites, site), append(assets, h.Asset(site, flex.Charger, 7400))
	}
	return assets, sites
}

// at makes the asset the one that flexd's other helpers mean.
func (h *fixture) at(asset flex.AssetID) *fixture { h.asset = asset; return h }

func (h *fixture) setCaps(c flex.Caps) {
	h.Helper()
	if err := h.service.SetCaps(h.Context(), h.Org, c); err != nil {
		h.Fatal(err)
	}
}

func kw(v float64) flex.Cap { return flex.Cap{Power: new(flex.FromKW(v))} }

// drawn is the most that assets draw together by their standing schedules at any instant
// from now on.
func (h *fixture) drawn(assets ...flex.AssetID) (most flex.Watts) {
	h.Helper()
	var all [][]flex.Step
	var powers []flex.Watts
	now := time.UnixMicro(h.micro.Load())
	instants := []time.Time{now}

	for _, a := range assets {
		c := h.at(a).look()
		if !c.Open() {
			continue
		}

		all, powers = append(all, c.Current.Steps), append(powers, c.Current.From.Power)

		for _, s := range c.Current.Steps {
			if s.From.After(now) {
				instants = append(instants, s.From)
			}
		}
	}

	for _, at := range instants {
		var sum flex.Watts
		for i, steps := range all {
			for _, s := range steps {
				if s.Contains(at) {
					sum += min(s.Limit, powers[i])
				}
			}
		}

		most = max(most, sum)
	}

	return most
}

func (h *fixture) clean() {
	h.Helper()
	found, err := h.db.Verify(h.Context())
	if err != nil || len(found) > 0 {
		h.Fatal(err, found)
	}
	if n := h.service.Refused(); n > 0 {
		h.Errorf("the check before sending refused %d plans", n)
	}
}

// TestCaps_TwoCarsOneCap has a cap of one car's power. The second takes what the first
// leaves; the third needs the hours that the first has, which moves; and a fourth that finds
// no headroom is sent so.
func TestCaps_TwoCarsOneCap(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		cars, _ := h.chargers(3)
		h.setCaps(flex.Caps{Fleet: kw(7.4)})
		h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...) // 00:00 to 02:00
		h.replan()
		two := need(7.4*2, flex.Minimise)
		h.at(cars[0]).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: two})
		h.chargesAt("the first", "11T00:00 11T02:00")
		h.at(cars[1]).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: two})

		if most := h.drawn(cars...); most != 7400 {
			t.Errorf("two cars draw %d W under a cap of 7400", most)
		}

		x := h.at(cars[1]).explanation()
		if !x.Exact || x.Plan.Shortfall > 0 || len(x.Caps) == 0 || !strings.Contains(x.Prose(), "held back by the cap of the fleet, 7.4 kW") {
			t.Errorf("the second is not told of the cap: %s", x.Prose())
		}

		// The third must go before 02:00: the first gives way, once the fleet is planned together.
		early := need(7.4*2, flex.Minimise)
		early.ReadyByLocal = new(flex.WallTime(2 * time.Hour))
		h.at(cars[2]).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: early})

		if x := h.explanation(); x.Plan.Shortfall == 0 || !strings.Contains(x.Summary, "There is not room enough under the cap of the fleet") {
			t.Errorf("the third found room that there was not: %s", x.Summary)
		}

		h.wait(control.MarketInterval)

		if h.replan() == 0 {
			t.Fatal("the fleet was not planned together")
		}

		h.at(cars[2]).chargesAt("the third", "10T23:30 11T01:30")

		for i, car := range cars[:3] {
			if x := h.at(car).explanation(); !x.Exact || x.Plan.Shortfall > 0 {
				t.Errorf("car %d lacks %d Wh (exact %v)\n%s", i, x.Plan.Shortfall, x.Exact, x.Prose())
			}
		}

		worth := ""
		for _, car := range cars[:3] {
			worth += h.at(car).explanation().Summary
		}

		if !strings.Contains(worth, "where room is worth £") {
			t.Errorf("nobody is told what room is worth: %s", worth)
		}

		less := h.at(cars[1])
		if a, err := less.service.WhatIf(t.Context(), h.Org, cars[1:2], control.Question{Need: new(flex.FromKWh(50))}); err != nil || a[0].Proposed.Shortfall < flex.FromKWh(50-7.4*2-8) {
			t.Errorf("what if it needed 50 kWh: %+v, %v", a, err)
		}

		if most := h.drawn(cars...); most != 7400 {
			t.Errorf("three cars draw %d W under a cap of 7400", most)
		}

		if n := h.replan(); n != 0 {
			t.Errorf("%d schedules changed without a reason", n)
		}

		h.at(cars[3]).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})

		if x := h.explanation(); x.Plan.Energy > 0 || x.Plan.Shortfall != 7400 {
			t.Errorf("the fourth found room that there is not: %s", x.Summary)
		}

		h.clean()
	})
}

// TestCaps_ChargeNow counts charge-now and what is not under control against the cap.
func TestCaps_ChargeNow(t *testing.T) {
	each(t, "2026-01-10T22:00:00Z", func(h *fixture) {
		cars, _ := h.chargers(1)
		free := h.Asset(h.Site(), flex.Charger, 3700)
		h.setCaps(flex.Caps{Fleet: kw(12)})
		h.publish("2026-01-10T22:00:00Z", night()[:18]...)
		h.replan()

		for _, car := range cars {
			h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
		}

		if most := h.drawn(cars...); most > 12_000 {
			t.Errorf("%d W under a cap of 12 kW", most)
		}

		h.at(cars[0]).event(control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-11T01:00:00Z")})

		if h.charges()[0].From != at("2026-01-10T22:00:00Z") {
			t.Error("charge-now waits")
		}

		h.wait(control.MarketInterval)
		h.replan()

		if most := h.drawn(cars...); most > 12_000 {
			t.Errorf("%d W beside charge-now, under a cap of 12 kW", most)
		}

		h.at(free).event(control.Event{Kind: control.PlugIn})
		h.replan()

		if most := h.drawn(cars...); most > 12_000-3700 {
			t.Errorf("%d W beside 3.7 kW that nobody plans, under a cap of 12 kW", most)
		}

		h.at(cars[1])

		if x := h.explanation(); !x.Exact || x.Plan.Shortfall > 0 {
			t.Errorf("the other car lacks %d Wh", x.Plan.Shortfall)
		}

		h.clean()
	})
}

// TestCaps_Set changes caps under a fleet that is plugged in.
func TestCaps_Set(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		cars, sites := h.chargers(3)
		h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
		h.replan()

		for _, car := range cars {
			h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
		}

		if most := h.drawn(cars...); most != 4*7400 {
			t.Fatalf("without caps %d W", most)
		}

		h.setCaps(flex.Caps{Fleet: kw(15), Groups: []flex.CapGroup{{Name: "feeder 7", Cap: kw(7.4), Sites: sites[:2]}}})

		if h.replan() == 0 {
			t.Error("no schedule gave way to the caps")
		}

		if most, feeder := h.drawn(cars...), h.drawn(cars[:2]...); most > 15_000 || feeder > 7400 {
			t.Errorf("%d W in all and %d W at the feeder", most, feeder)
		}

		for _, car := range cars {
			if x := h.at(car).explanation(); !x.Exact || x.Plan.Shortfall > 0 {
				t.Errorf("%v lacks %d Wh (exact %v)", car, x.Plan.Shortfall, x.Exact)
			}
		}

		c, err := h.service.Caps(t.Context(), h.Org)
		if err != nil || len(c.Groups) != 1 || len(c.Groups[0].Sites) != 2 || *c.Fleet.Power != 15_000 {
			t.Errorf("%+v, %v", c, err)
		}

		if err := h.service.ClearCaps(t.Context(), h.Org); err != nil {
			t.Fatal(err)
		}

		h.wait(control.MarketInterval)
		h.replan()

		if most := h.drawn(cars...); most != 4*7400 {
			t.Errorf("with the caps gone %d W", most)
		}

		if _, err := h.service.Caps(t.Context(), h.Org); flex.KindOf(err) != flex.NotFound {
			t.Error(err)
		}

		h.clean()
	})
}

// TestCaps_Refused goes to every limit, and over it.
func TestCaps_Refused(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		site, half := h.site, flex.PeriodAt(at("2026-01-10T18:00:00Z"))
		for _, c := range []struct {
			says string // empty if it is taken
			caps flex.Caps
		}{
			{"nothing is bound", flex.Caps{}},
			{"", flex.Caps{Fleet: flex.Cap{Power: new(flex.CapMax), StartsPerMinute: flex.StartsMax}}},
			{"", flex.Caps{Fleet: kw(0)}},
			{"the cap of the fleet", flex.Caps{Fleet: flex.Cap{Power: new(flex.CapMax + 1)}}},
			{"the cap of the fleet", flex.Caps{Fleet: kw(-1)}},
			{"the starts per minute", flex.Caps{Fleet: flex.Cap{StartsPerMinute: flex.StartsMax + 1}}},
			{"", flex.Caps{Groups: []flex.CapGroup{{Name: strings.Repeat("é", flex.CapGroupNameMax), Sites: []flex.SiteID{site}}}}},
			{"1 to 64 characters", flex.Caps{Groups: []flex.CapGroup{{Name: strings.Repeat("é", flex.CapGroupNameMax+1)}}}},
			{"1 to 64 characters", flex.Caps{Groups: []flex.CapGroup{{Name: " a"}}}},
			{"named twice", flex.Caps{Groups: []flex.CapGroup{{Name: "a"}, {Name: "a"}}}},
			{"one group at most", flex.Caps{Groups: []flex.CapGroup{{Name: "a", Sites: []flex.SiteID{site}}, {Name: "b", Sites: []flex.SiteID{site}}}}},
			{"groups: there may be", flex.Caps{Groups: make([]flex.CapGroup, flex.CapGroupsMax+1)}},
			{"comes twice", flex.Caps{Position: []flex.Traded{{Period: half}, {Period: half}}}},
			{"selling must not be dearer", flex.Caps{Position: []flex.Traded{{Period: half, Buy: 1, Sell: 2}}}},
			{"half-hours: there may be", flex.Caps{Position: make([]flex.Traded, flex.TradedMax+1)}},
			{"should be 0 to", flex.Caps{Position: []flex.Traded{{Period: half, Energy: flex.TradedEnergyMax + 1}}}},
			{"", flex.Caps{Position: []flex.Traded{{Period: half.Add(1)}, {Period: half, Energy: flex.TradedEnergyMax}}}},
			{"not found", flex.Caps{Groups: []flex.CapGroup{{Name: "a", Sites: []flex.SiteID{{1}}}}}},
		} {
			err := h.service.SetCaps(t.Context(), h.Org, c.caps)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%+v: %v, want %q", c.caps, err, c.says)
			}
		}
	})
}

// TestCaps_Any lives through random evenings of plug-ins, departures, prices and changes of
// caps: at the end of every job no cap is exceeded, every schedule is explained to the
// second, and a need is short only where a cap is named.
func TestCaps_Any(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		f.Value.Set("30")
		defer f.Value.Set(f.DefValue)
	}

	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		all, sites := h.chargers(5)
		steps := 5

		if os.Getenv("FLEXD_LONG") != "" {
			steps = 20
		}

		rapid.Check(t, func(rt *rapid.T) {
			day := time.UnixMicro(h.micro.Load()).UTC().Truncate(24 * time.Hour).Add(42 * time.Hour).Format(time.RFC3339) // the next evening
			h.goTo(day)

			for _, car := range all {
				h.at(car).event(control.Event{Kind: control.PlugOut})
			}

			fleet, feeder := kw(float64(rapid.IntRange(0, 5).Draw(rt, "fleet"))*7.4), kw(float64(rapid.IntRange(0, 3).Draw(rt, "feeder"))*5)
			fleet.StartsPerMinute = rapid.IntRange(0, 2).Draw(rt, "starts")
			h.setCaps(flex.Caps{Fleet: fleet, Groups: []flex.CapGroup{{Name: "feeder", Cap: feeder, Sites: sites[:3]}}})

			for range rapid.IntRange(1, steps).Draw(rt, "steps") {
				h.at(rapid.SampledFrom(all).Draw(rt, "car"))

				switch rapid.IntRange(0, 5).Draw(rt, "act") {
				case 0:
					h.event(control.Event{Kind: control.PlugOut})
				case 1:
					h.publish(day, night(rapid.SliceOfN(rapid.IntRange(8, 25), 0, 4).Draw(rt, "cheap")...)...)

				case 2:
					if err := h.db.Write(t.Context(), h.Org, func(tx *store.Tx) error { return tx.MarkDue(t.Context(), all...) }); err != nil {
						rt.Fatal(err)
					}
				default:
					in := need(float64(rapid.IntRange(0, 30).Draw(rt, "need")), rapid.SampledFrom([]flex.ChargingMode{flex.Minimise, flex.Maximise}).Draw(rt, "mode"))
					in.MayChargePeak = rapid.Bool().Draw(rt, "peak")
					h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: in})
				}

				h.wait(time.Duration(rapid.IntRange(0, 40).Draw(rt, "minutes")) * time.Minute)
				h.replan()

				if most := h.drawn(all...); most > *fleet.Power {
					rt.Fatalf("%d W under a cap of %d", most, *fleet.Power)
				}

				if most := h.drawn(all[:3]...); most > *feeder.Power {
					rt.Fatalf("%d W at a feeder of %d", most, *feeder.Power)
				}

				for _, car := range all {
					if c := h.at(car).look(); !c.Open() || c.Current.Generation == 0 || c.Session.Generation == 0 {
						continue
					}

					if x := h.explanation(); !x.Exact || x.Plan.Shortfall > 0 && len(x.Caps) == 0 && len(x.Limits) > 0 {
						rt.Fatalf("exact %v, lacks %d Wh: %s", x.Exact, x.Plan.Shortfall, fmt.Sprint(x.Limits, x.Caps))
					}
				}
			}
		})

		h.clean()
	})
}

// TestCaps_AtOnce plugs cars in at the same moment, while the fleet is planned: none takes the
// headroom that another has just taken.
func TestCaps_AtOnce(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		cars, _ := h.chargers(11)
		h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
		h.setCaps(flex.Caps{Fleet: kw(20)})
		errs := make([]error, len(cars)+2)
		var wg sync.WaitGroup

		for i, car := range cars {
			wg.Go(func() {
				errs[i] = h.service.Event(t.Context(), h.Org, car, control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
			})
		}

		for i := range 2 {
			wg.Go(func() { _, errs[len(cars)+i] = h.service.PlanDue(t.Context()) })
		}

		wg.Wait()

		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}

		if most := h.drawn(cars...); most > 20_000 {
			t.Errorf("%d W under a cap of 20 kW", most)
		}

		h.wait(control.MarketInterval)
		h.replan()

		if most := h.drawn(cars...); most > 20_000 {
			t.Errorf("%d W under a cap of 20 kW, once planned together", most)
		}

		h.clean()
	})
}

// TestCaps_Position has bought 7.4 kWh ahead for each of two dear half-hours: selling them back
// brings little, so the fleet charges there, and no more than that.
func TestCaps_Position(t *testing.T) {
	each(t, "2026-01-10T22:00:00Z", func(h *fixture) {
		cars, _ := h.chargers(3)
		h.publish("2026-01-10T22:00:00Z", night()[:18]...) // £60 all night
		first := flex.PeriodAt(at("2026-01-11T01:00:00Z"))
		h.setCaps(flex.Caps{Position: []flex.Traded{
			{Period: first, Energy: 7400, Buy: flex.FromGBPPerMWh(200), Sell: flex.FromGBPPerMWh(5)},
			{Period: first.Add(1), Energy: 7400, Buy: flex.FromGBPPerMWh(200), Sell: flex.FromGBPPerMWh(5)},
		}})

		h.replan()

		for _, car := range cars {
			h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
		}

		h.wait(control.MarketInterval)
		h.replan()
		var there flex.WattHours

		for _, car := range cars {
			x := h.at(car).explanation()
			if !x.Exact || x.Plan.Shortfall > 0 {
				t.Errorf("lacks %d Wh (exact %v)", x.Plan.Shortfall, x.Exact)
			}

			for _, p := range x.Plan.Periods {
				if !p.From.Before(first.Start()) && p.From.Before(first.Add(2).Start()) {
					there += p.Energy
				}
			}
		}

		if there < 14_500 || there > 15_300 {
			t.Errorf("%d Wh of the 14,800 that were bought are used, to the minute", there)
		}

		h.clean()
	})
}

// TestCaps_Pace lets one car start a minute, of four that would all start together.
func TestCaps_Pace(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		cars, _ := h.chargers(3)
		h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
		h.setCaps(flex.Caps{Fleet: flex.Cap{StartsPerMinute: 1}})
		h.replan()

		for _, car := range cars {
			h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4*0.75, flex.Minimise)})
		}

		for range 2 {
			starts := map[time.Time]int{}
			for _, car := range cars {
				for _, s := range h.at(car).charges() {
					starts[s.From.Truncate(time.Minute)]++
				}

				if x := h.explanation(); x.Plan.Shortfall > 0 || !x.Exact {
					t.Errorf("lacks %d Wh (exact %v)", x.Plan.Shortfall, x.Exact)
				}
			}

			for at, n := range starts {
				if n > 1 {
					t.Errorf("%d start at %v", n, at)
				}
			}

			h.wait(control.MarketInterval)
			h.replan()
		}

		h.clean()
	})
}
