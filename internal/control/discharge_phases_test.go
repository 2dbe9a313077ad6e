package control_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestDischarge_Phases has cars that could give 5 kW each behind a main fuse of 3 x 15 A, at a site that may export 23 kW: none
// passes 3.45 kW on a phase with the others, and what the phases bear is given.
func TestDischarge_Phases(t *testing.T) {
	for name, c := range storetest.InOrder(map[string]struct {
		wired []flex.Wiring
		given flex.Watts // at most, together
	}{
		"on L1":            {[]flex.Wiring{{Phases: 1, Phase: 1}}, 3450},
		"nobody knows":     {[]flex.Wiring{{Phases: 1}}, 3450},
		"on three":         {[]flex.Wiring{{Phases: 3}}, 5000},
		"both on L2":       {[]flex.Wiring{{Phases: 1, Phase: 2}, {Phases: 1, Phase: 2}}, 3450},
		"one nobody knows": {[]flex.Wiring{{Phases: 1, Phase: 2}, {Phases: 1}}, 3450},
		"on L1 and L3":     {[]flex.Wiring{{Phases: 1, Phase: 1}, {Phases: 1, Phase: 3}}, 6900},
		"on three and L3":  {[]flex.Wiring{{Phases: 3}, {Phases: 1, Phase: 3}}, 6783},
	}) {
		t.Run(name, func(t *testing.T) {
			eachOf(t, "2026-01-14T17:00:00Z", func(h *fixture) {
				h.mainFuse(15)

				h.Exec(`UPDATE site SET export_w = 23000 WHERE id = $1`, h.site.Bytes())
				g := &givingSite{fuse: flex.Fuse{Amperes: 15, Phases: 3}.Carries(), export: 23000, may: map[flex.AssetID][]store.Schedule{}, wired: map[flex.AssetID]flex.Wiring{}}
				h.mayDischarge()
				cars := []flex.AssetID{h.asset}
				if len(c.wired) > 1 {
					cars = append(cars, h.Asset(h.site, flex.Charger, 7400))
					h.discharges(cars[1])
				}

				h.Exec(`UPDATE asset SET power_w = 3000`)
				for i, car := range cars {
					g.wired[car] = c.wired[i]
					h.wire(car, c.wired[i])
					h.at(car).soc(80)
					h.plugInAt(2, flex.Minimise)
					h.accept()
				}

				var most flex.Watts
				for range 3 {
					h.wait(2 * time.Minute)
					h.replan()
					for _, car := range cars {
						h.at(car).acceptOnce()
						g.may[car] = []store.Schedule{h.look().Current}
					}
					h.checkSite(g, nil, "a round")
				}

				var given [][]flex.Step
				for _, car := range cars {
					if d := h.at(car).look().Current.From.Discharge; d != nil {
						given = append(given, d.Discharges)
					}
				}

				end := h.look().Current.From.ReadyBy
				for at := at("2026-01-14T17:00:00Z"); at.Before(end); at = at.Add(time.Minute) {
					var sum flex.Watts
					for _, steps := range given {
						sum += limitAt(steps, at)
					}
					most = max(most, sum)
				}

				if most > c.given || most < 2500 {
					t.Errorf("%d W are given, and %d could be: %s", most, c.given, h.why())
				}
				h.clean()
			})
		})
	}
}

// acceptOnce is accept for a schedule that may have been accepted before.
func (h *fixture) acceptOnce() {
	h.Helper()
	if n := h.Count(`SELECT count(*) FROM delivery WHERE event_id = $1`, h.look().Current.EventID.Bytes()); n == 0 {
		h.accept()
	}
}

// TestDischarge_PhasesRandom is TestDischargeBeside's evenings behind a fuse of three phases, with cars on one or all of them.
func TestDischarge_PhasesRandom(t *testing.T) {
	one(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		t := h.TB.(*testing.T)
		gave := 0
		for _, seed := range phasedEvenings {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				h.TB = t
				gave += h.randomBeside(rand.New(rand.NewPCG(seed, 31)), true)
			})
		}
		h.TB = t
		t.Logf("%d cars gave", gave)
		h.clean()
	})
}

// phasedEvenings are those in which a car lost what it needed while it waited for another one, and two others.
var phasedEvenings = []uint64{0, 2, 12, 18, 29, 42}

// TestBattery_Phases has a battery of 3 kW that earns by emptying itself into the grid, behind a main fuse of three phases: it does so
// where its phase carries that, and never beside what else may be given on it.
func TestBattery_Phases(t *testing.T) {
	for name, c := range storetest.InOrder(map[string]struct {
		amperes float64
		phases  int
		gives   bool
	}{
		"one phase carries it":          {13.1, 1, true},
		"one phase carries less":        {12.9, 1, false},
		"three phases carry it":         {4.5, 3, true},
		"three phases carry too little": {4.3, 3, false},
	}) {
		t.Run(name, func(t *testing.T) {
			eachOf(t, "2026-01-14T17:00:00Z", func(h *fixture) {
				id := h.homeSite()

				h.exports(50)
				h.mainFuse(c.amperes)
				h.Exec(`UPDATE site SET export_w = 23000 WHERE id = $1`, h.site.Bytes())
				h.Exec(`UPDATE asset SET phases = $1 WHERE id = $2`, c.phases, id.Bytes())
				h.runBatteries()
				gives := false

				for _, m := range h.modes(id) {
					gives = gives || m.Mode == battery.ModeDischarge
				}
				if gives != c.gives {
					t.Errorf("it discharges: %v: %s", gives, h.sentTo(id))
				}
			})
		})
	}
}
