package control_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
)

// clients are what the clients of batteries do that read nothing more: what each read last.
type clients map[flex.AssetID][]battery.Step

// read has a battery's client fetch its schedule.
func (cs clients) read(h *fixture, ids ...flex.AssetID) {
	h.Helper()
	for _, id := range ids {
		steps, _, err := h.service.BatterySteps(h.Context(), h.Org, id)
		if err != nil {
			h.Fatal(err)
		}
		cs[id] = steps
	}
}

// doing is how many of the batteries do something at full power at an instant.
func (cs clients) doing(action battery.Action, at time.Time) (n int) {
	for _, steps := range cs {
		for _, s := range steps {
			if s.Contains(at) && s.Action == action {
				n++
			}
		}
	}
	return n
}

// drawn is the most that batteries of 3 kW and chargers draw together in a minute of the next day and a half, and when.
func (cs clients) drawn(cars chargers, from time.Time) (most flex.Watts, when time.Time) {
	for m := from.Truncate(time.Minute).Add(time.Minute); m.Before(from.Add(36 * time.Hour)); m = m.Add(time.Minute) {
		sum := flex.Watts(3000 * cs.doing(battery.ChargeMax, m))
		for _, c := range cars {
			sum += c.at(m, c.power)
		}
		if sum > most {
			most, when = sum, m
		}
	}
	return most, when
}

// TestFuse_BatteryAlone has flexd fail after a car came to a home whose battery had read its night: what both were sent keeps the
// main fuse by itself. A fuse that carries both leaves the battery its whole night.
func TestFuse_BatteryAlone(t *testing.T) {
	for _, fuse := range []flex.Watts{8000, 12_000} {
		t.Run(fmt.Sprint(fuse), func(t *testing.T) {
			each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
				h.setFuse(fuse.KW())
				id := h.battery()
				h.read(id, flex.BatteryStateOfCharge, "2026-01-14T18:05:00Z", "2026-01-14T18:05:00Z", 20)
				h.runBatteries()
				if n := h.charging(id); n == 0 {
					t.Fatal("the battery is not planned to charge at night")
				}

				read, cars := clients{}, chargers{}
				read.read(h, id)
				night := len(h.chargingSteps(id)) > 0
				if carries := fuse > 7400+3000; night != carries {
					t.Errorf("asked to charge at night: %v, behind a fuse of %d W", night, fuse)
				}

				h.plugInAt(7.4*6, flex.Minimise)
				cars.accept(h, h.asset)
				if w, when := read.drawn(cars, time.UnixMicro(h.micro.Load())); w > fuse {
					t.Errorf("%d W are drawn at %s behind a fuse of %d", w, when, fuse)
				}
			})
		})
	}
}

// TestFuse_BatteryAloneRandom lets cars come and go beside one or two batteries behind a main fuse. Whenever flexd fails, what
// chargers accepted last and batteries read last keeps the fuse, minute by minute.
func TestFuse_BatteryAloneRandom(t *testing.T) {
	one(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		t, charged := h.TB.(*testing.T), 0
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				h.TB = t
				charged += h.batteriesAlone(rand.New(rand.NewPCG(seed, 7)))
			})
		}
		h.TB = t
		if charged == 0 {
			t.Error("no battery ever charges: nothing is shown")
		}
		h.clean()
	})
}

// batteriesAlone plays one night, and returns how often a battery was asked to charge at the time.
func (h *fixture) batteriesAlone(r *rand.Rand) (charged int) {
	evening := time.UnixMicro(h.micro.Load()).UTC().Truncate(24 * time.Hour).Add(45 * time.Hour)
	h.micro.Store(evening.UnixMicro())
	h.site = h.Site(flex.FullScheduleMethod)
	h.asset = h.Asset(h.site, flex.Charger, 7400)
	fuse := flex.FromKW(float64(8 + r.IntN(8)))
	cars := h.fuse(fuse.KW(), []flex.Watts{3680}[:r.IntN(2)]...)
	batteries := []flex.AssetID{h.homeSite()}
	if r.IntN(2) == 0 {
		batteries = append(batteries, h.homeSite())
	}
	h.exports(5)
	h.runBatteries()

	read, sent := clients{}, chargers{}
	read.read(h, batteries...)
	check := func(what string) {
		h.Helper()
		now := time.UnixMicro(h.micro.Load())
		if w, when := read.drawn(sent, now); w > fuse {
			h.Fatalf("%s at %s: %d W are drawn at %s behind a fuse of %d", what, now.UTC(), w, when.UTC(), fuse)
		}
	}

	for range 40 {
		h.wait(time.Duration(r.IntN(1500)) * time.Second)
		now := time.UnixMicro(h.micro.Load()).UTC()
		car := cars[r.IntN(len(cars))]
		what := h.comesOrGoes(r, car, sent)
		check(what)
		if id := batteries[r.IntN(len(batteries))]; r.IntN(3) == 0 {
			at := now.Truncate(time.Second).Format(time.RFC3339)
			h.read(id, flex.BatteryStateOfCharge, at, at, float64(10+r.IntN(80)))
		}

		h.replan()
		h.runBatteries()
		check("a round")
		for _, id := range batteries {
			if r.IntN(2) == 0 {
				read.read(h, id)
			}
		}

		check("what was read")
		for _, car := range cars {
			if r.IntN(2) == 0 {
				sent.accept(h, car)
			}
		}
		check("an acceptance")
		charged += read.doing(battery.ChargeMax, now)
	}

	for _, car := range cars {
		if c := h.at(car).look(); c.Open() {
			h.event(control.Event{Kind: control.PlugOut})
		}
	}

	return charged
}

// comesOrGoes has a car come with a need, whose charger takes its schedule up, or one that is there leave.
func (h *fixture) comesOrGoes(r *rand.Rand, car flex.AssetID, sent chargers) string {
	c := h.at(car).look()
	open := c.Open()

	switch x := r.IntN(6); {
	case open && x == 0:
		h.event(control.Event{Kind: control.PlugOut})
		delete(sent, car)
		return "a plug-out"
	case !open && x < 3:
		h.plugInAt(float64(4+r.IntN(40)), flex.Minimise)
		sent.accept(h, car)
		return "a plug-in"
	}
	return "time"
}

// TestExportLimits_Alone lets batteries of a feeder be planned anew as their states of charge come in. Whenever flexd fails,
// those that go by what they read last do not pass the feeder's export limit together.
func TestExportLimits_Alone(t *testing.T) {
	gave := 0
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			do := one
			if seed == 0 {
				do = each
			}
			do(t, "2026-01-14T18:10:00Z", func(h *fixture) { gave += h.feederAlone(rand.New(rand.NewPCG(seed, 9))) })
		})
	}
	if gave == 0 {
		t.Error("no battery ever gives: nothing is shown")
	}
}

// feederAlone plays an evening of four batteries of 3 kW behind one feeder, and returns how often one gave.
func (h *fixture) feederAlone(r *rand.Rand) (gave int) {
	north, south := h.feeders()
	batteries := append(north, south...)
	var sites []flex.SiteID
	for _, id := range batteries {
		sites = append(sites, h.at(id).look().Asset.SiteID)
	}

	limit := flex.Watts(3000 * (1 + r.IntN(2)))
	h.setCaps(flex.Caps{Groups: []flex.CapGroup{{Name: "north", Sites: sites}}})
	err := h.service.ImportLimits(h.Context(), h.Org, []flex.CapLimit{exportLimit("north", limit, "2026-01-14T18:00:00Z", "2026-01-16T00:00:00Z")})
	if err != nil {
		h.Fatal(err)
	}

	h.runBatteries()
	read := clients{}
	for now := time.UnixMicro(h.micro.Load()); now.Before(at("2026-01-14T22:00:00Z")); now = time.UnixMicro(h.micro.Load()) {
		for _, id := range batteries {
			if r.IntN(2) == 0 {
				read.read(h, id)
			}
		}

		for m := now.Truncate(time.Minute); m.Before(now.Add(24 * time.Hour)); m = m.Add(time.Minute) {
			if w := flex.Watts(3000 * read.doing(battery.DischargeMax, m)); w > limit {
				h.Fatalf("%s: %d W are given at %s under a limit of %d", now.UTC(), w, m.UTC(), limit)
			}
		}

		gave += read.doing(battery.DischargeMax, now)
		h.wait(time.Duration(200+r.IntN(1200)) * time.Second)
		when := time.UnixMicro(h.micro.Load()).UTC().Truncate(time.Second).Format(time.RFC3339)
		h.read(batteries[r.IntN(len(batteries))], flex.BatteryStateOfCharge, when, when, float64(r.IntN(100)))
		prices := make([]float64, 12)
		for i := range prices {
			prices[i] = float64(50 + 450*r.IntN(2))
		}
		h.publish(when, prices...)
		h.runBatteries()
	}

	return gave
}
