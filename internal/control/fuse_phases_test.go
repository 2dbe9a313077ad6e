package control_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// mainFuse sets a main fuse of three phases.
func (h *fixture) mainFuse(amperes float64) {
	h.Helper()
	f := flex.Fuse{Amperes: amperes, Phases: 3}
	h.Exec(`UPDATE site SET supply_set = TRUE, import_w = $1, fuse_ma = $2, fuse_phases = 3 WHERE id = $3`, int64(f.Carries()), f.MilliAmperes(), h.site.Bytes())
}

// wire says how a charger is wired.
func (h *fixture) wire(asset flex.AssetID, w flex.Wiring) {
	h.Helper()
	h.Exec(`UPDATE asset SET phases = $1, phase = $2 WHERE id = $3`, w.Phases, w.Phase, asset.Bytes())
}

// amperes are the most that chargers draw on any phase from an instant on, if nothing is heard of any more, and when. A charger
// on a phase that nobody knows may be on any.
func (cs chargers) amperes(from time.Time, wired map[flex.AssetID]flex.Wiring) (most float64, when time.Time) {
	for phase := 1; phase <= 3; phase++ {
		on := chargers{}
		for asset, c := range cs {
			switch w := wired[asset]; {
			case w.Phases == 3:
				on[asset] = c.part(3)
			case w.Phase == 0 || w.Phase == phase:
				on[asset] = c
			}
		}

		if len(on) == 0 {
			continue
		}

		if w, at := on.most(from); float64(w)/230 > most {
			most, when = float64(w)/230, at
		}
	}

	return most, when
}

// part is a part of what a charger does.
func (c obeyed) part(n flex.Watts) obeyed {
	steps := make([]flex.Step, len(c.steps))
	for i, s := range c.steps {
		steps[i] = flex.Step{Span: s.Span, Limit: (s.Limit + n - 1) / n}
	}
	return obeyed{steps, (c.power + n - 1) / n, c.session}
}

// TestFuse_Phases has two cars of 7.4 kW that both need all of the night, behind a main fuse of three phases. What their phases
// are not known to bear they do not draw, also where the sum of all phases is far away.
func TestFuse_Phases(t *testing.T) {
	const one, three = 1, 3
	for name, c := range storetest.InOrder(map[string]struct {
		amperes float64
		wired   [2]flex.Wiring
		drawn   flex.Watts // of both together
	}{
		"nobody knows the phases":     {25, [2]flex.Wiring{{Phases: one}, {Phases: one}}, 5750},
		"of one":                      {25, [2]flex.Wiring{{Phases: one, Phase: 2}, {Phases: one}}, 5750},
		"both are on L1":              {25, [2]flex.Wiring{{Phases: one, Phase: 1}, {Phases: one, Phase: 1}}, 5750},
		"on L1 and L3":                {25, [2]flex.Wiring{{Phases: one, Phase: 1}, {Phases: one, Phase: 3}}, 2 * 5750},
		"one is on all three":         {25, [2]flex.Wiring{{Phases: three}, {Phases: one, Phase: 1}}, 7400 + 3283},
		"both are on three":           {25, [2]flex.Wiring{{Phases: three}, {Phases: three}}, 14800},
		"the fuse bears both on one":  {80, [2]flex.Wiring{{Phases: one}, {Phases: one}}, 14800},
		"the fuse bears 50 A on each": {50, [2]flex.Wiring{{Phases: one}, {Phases: one}}, 11500},
	}) {
		t.Run(name, func(t *testing.T) {
			eachOf(t, "2026-01-10T18:00:00Z", func(h *fixture) {
				cars := h.fuse(10, 7400)
				h.mainFuse(c.amperes)
				wired := map[flex.AssetID]flex.Wiring{}

				for i, car := range cars {
					h.wire(car, c.wired[i])
					wired[car] = c.wired[i]
				}

				h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
				cs := chargers{}
				for _, car := range cars {
					h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(60, flex.Minimise)})
					cs.accept(h, car)
				}

				cs.settle(h, cars)
				if a, at := cs.amperes(time.UnixMicro(h.micro.Load()), wired); a > c.amperes {
					t.Errorf("%.1f A are drawn on a phase of %g at %v", a, c.amperes, at)
				}

				now := time.UnixMicro(h.micro.Load())
				if w, _ := cs.until(h).most(now); w != c.drawn && w != c.drawn+1 {
					t.Errorf("%d W are drawn, and %d could be", w, c.drawn)
				}

				if x := h.at(cars[1]).explanation(); c.drawn < 14800 && !strings.Contains(x.Prose(), "on the phases that it is on") {
					t.Errorf("its explanation does not name the phases: %s", x.Prose())
				}

				h.clean()
			})
		})
	}
}

// until is what chargers do before the first of their cars is to be ready.
func (cs chargers) until(h *fixture) chargers {
	cut := chargers{}
	for asset, c := range cs {
		ready := h.at(asset).look().Current.From.ReadyBy
		c.steps = append(c.steps[:0:0], c.steps...)
		for i := range c.steps {
			if !c.steps[i].From.Before(ready) {
				c.steps[i].Limit = 0
			}
		}

		cut[asset] = c
	}

	return cut
}

// TestFuse_PhasesRandom lets two or three cars on random phases come, go, want other things and charge now behind a fuse of
// three phases, while chargers are out of reach for a time: what was accepted passes no phase of the fuse, at any
// later second.
func TestFuse_PhasesRandom(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		t := h.TB.(*testing.T)
		for seed := range uint64(phaseSites) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				h.TB = t
				h.phasedSite(rand.New(rand.NewPCG(seed, 5)))
			})
		}
		h.TB = t
		h.clean()
	})
}

// phaseSites is how many random sites are played.
const phaseSites = 12

// phasedSite plays one random site behind a fuse of three phases.
func (h *fixture) phasedSite(r *rand.Rand) {
	evening := time.UnixMicro(h.micro.Load()).UTC().Truncate(24 * time.Hour).Add(42 * time.Hour)
	h.micro.Store(evening.UnixMicro())
	h.site = h.Site(flex.FullScheduleMethod)
	h.asset = h.Asset(h.site, flex.Charger, 7400)
	powers := []flex.Watts{3680, 7400, 11000}
	cars := h.fuse(10, powers[r.IntN(3)], powers[r.IntN(3)])[:2+r.IntN(2)]
	amperes := float64(16 + r.IntN(40))
	h.mainFuse(amperes)

	wired := map[flex.AssetID]flex.Wiring{}
	for _, car := range cars {
		wired[car] = flex.Wiring{Phases: 1 + 2*r.IntN(2)}
		if wired[car].Phases == 1 {
			wired[car] = flex.Wiring{Phases: 1, Phase: r.IntN(4)}
		}
		h.wire(car, wired[car])
	}

	if r.IntN(3) == 0 {
		h.setCaps(flex.Caps{Fleet: kw(20)})
		defer h.service.ClearCaps(h.Context(), h.Org)
	}
	h.publish(evening.Format(time.RFC3339), night(12, 13, 14, 15)...)
	cs := chargers{}
	check := func(what string) {
		h.Helper()
		if a, at := cs.amperes(time.UnixMicro(h.micro.Load()), wired); a > amperes+0.01 && len(cs) > 1 {
			h.Fatalf("after %s %.1f A are drawn on a phase of %g at %v: %v", what, a, amperes, at, wired)
		}
	}

	for _, car := range cars {
		wish := wanted{kwh: float64(2 + r.IntN(40)), hour: 3 + r.IntN(5)}
		h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: wish.intent()})
		if r.IntN(2) == 0 {
			cs.accept(h, cars[r.IntN(len(cars))])
			check("an acceptance")
		}
	}

	cs.settle(h, cars)
	check("all")
	for range 8 {
		h.wait(time.Duration(r.IntN(3600)) * time.Second)
		what := h.happens(r, cars[r.IntN(len(cars))], cs)
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
