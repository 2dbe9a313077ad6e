package control_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A charger that an operator has excluded draws what it likes from its plug-in on. The others behind its main fuse make room for it at once.
func TestFuse_ExcludedComes(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		cars := h.fuse(10, 7400)
		h.Exec(`UPDATE asset SET excluded_at = 1 WHERE id = $1`, cars[1].Bytes())
		h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
		h.replan()

		plugIn := control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)}
		h.at(cars[0]).event(plugIn)
		h.accept()
		h.wait(time.Minute)
		h.at(cars[1]).event(plugIn)
		h.replan()

		current := h.at(cars[0]).look().Current
		for _, s := range current.Charging() {
			if min(s.Limit, 7400)+7400 > 10_000 {
				t.Errorf("from %v to %v it may draw %d W beside 7400 W", s.From, s.To, s.Limit)
			}
		}
	})
}

// aloneCase is the only charger of a site, behind a main fuse.
type aloneCase struct {
	set   func(h *fixture)
	power flex.Watts // of the charger; 0 for not known
	wired flex.Wiring
	drawn flex.Watts // the most that it may draw
	need  float64    // kWh by 07:00
}

// sumCosts and phasesOf set a main fuse as what its sum carries in kW, and as amperes on three phases.
func sumCosts(kw float64) func(*fixture)      { return func(h *fixture) { h.setFuse(kw) } }
func phasesOf(amperes float64) func(*fixture) { return func(h *fixture) { h.mainFuse(amperes) } }

var aloneCases = map[string]aloneCase{
	"below the charger":                  {sumCosts(5), 7400, flex.Wiring{Phases: 1}, 5000, 22},
	"one phase of three":                 {phasesOf(25), 7400, flex.Wiring{Phases: 1, Phase: 2}, 5750, 22},
	"a phase that nobody knows":          {phasesOf(25), 7400, flex.Wiring{Phases: 1}, 5750, 22},
	"on three phases":                    {phasesOf(25), 22000, flex.Wiring{Phases: 3}, 17250, 40},
	"a power that nobody knows":          {sumCosts(6), 0, flex.Wiring{}, 6000, 22},
	"a power that nobody knows, phases":  {phasesOf(20), 0, flex.Wiring{}, 4600, 22},
	"less than three phases can use":     {sumCosts(4), 11000, flex.Wiring{Phases: 3}, 0, 10},
	"more than it is, and no phase less": {phasesOf(32.5), 7400, flex.Wiring{Phases: 1}, 7400, 22},
}

// TestFuse_Alone has a charger alone behind a main fuse that is smaller than itself, as a sum or on its phase: what it was
// sent never lets it draw more, at any second of the days after, also during charge-now and once it is done. What can be
// met of its need is, and its explanation names the fuse. It is so under caps, and for what is planned without an event.
func TestFuse_Alone(t *testing.T) {
	for name, c := range storetest.InOrder(aloneCases) {
		t.Run(name, func(t *testing.T) {
			eachOf(t, "2026-01-10T18:00:00Z", func(h *fixture) { h.alone(&c) })
		})
		t.Run(name+", under caps", func(t *testing.T) {
			one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
				h.setCaps(flex.Caps{Fleet: kw(50)})
				h.alone(&c)
			})
		})
	}
}

// alone plays the night of a charger alone.
func (h *fixture) alone(c *aloneCase) {
	h.Helper()
	c.set(h)
	h.Exec(`UPDATE asset SET power_w = $1 WHERE id = $2`, nullable(c.power), h.asset.Bytes())
	h.wire(h.asset, c.wired)
	h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
	plug := control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(c.need, flex.Minimise)}
	h.event(plug)
	h.drawsAtMost(c, "plugged in")

	x := h.explanation()
	above := c.drawn < c.power || c.power == 0
	if named := strings.Contains(x.Prose(), "main fuse"); named != above || !x.Exact {
		h.Errorf("%v: %s", x.Exact, x.Prose())
	}
	if c.drawn > 0 && x.Plan.Shortfall > 0 {
		h.Errorf("%d Wh are missed", x.Plan.Shortfall)
	}

	h.accept()
	generation := h.look().Current.Generation
	h.wait(time.Hour)
	h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
	h.replan()
	if g := h.look().Current.Generation; g != generation {
		h.Errorf("it is sent generation %d after %d without a cause", g, generation)
	}

	h.event(control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-10T21:00:00Z")})
	h.drawsAtMost(c, "charging now")
	h.goTo("2026-01-11T00:10:00Z")
	h.publish("2026-01-11T00:00:00Z", night(15, 14, 13, 12)...)
	h.replan()
	h.drawsAtMost(c, "other prices")
	h.clean()
}

// drawsAtMost fails where the schedule in force lets the charger draw more at any second of the days in which it keeps the
// fuse. What it takes where its power is not known is as much as any charger gives.
func (h *fixture) drawsAtMost(c *aloneCase, when string) {
	h.Helper()
	power := c.power
	if power == 0 {
		power = flex.ChargerMax
	}

	cs := chargers{h.asset: {steps: h.look().Current.Steps, power: power}}
	if w, at := cs.most(time.UnixMicro(h.micro.Load())); w > c.drawn {
		h.Errorf("%s: %d W are drawn at %v, and the fuse carries %d", when, w, at, c.drawn)
	}
}

// nullable is a power as it is stored.
func nullable(w flex.Watts) any {
	if w == 0 {
		return nil
	}
	return int64(w)
}

// TestFuse_AloneBase has a home that always draws 4 kW by itself, behind a main fuse of 10 kW that would bear its only charger of
// 7.4 kW: the charger leaves the home what it draws.
func TestFuse_AloneBase(t *testing.T) {
	for _, caps := range []bool{false, true} {
		t.Run(fmt.Sprint(caps), func(t *testing.T) {
			each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
				if caps {
					h.setCaps(flex.Caps{Fleet: kw(50)})
				}

				h.setFuse(10)
				h.Consent(flex.DayAt(at("2026-01-10T18:00:00Z")).Add(-30).Start())
				h.draws(h.Asset(h.site, flex.BoundaryMeter, 0), flex.DayAt(at("2026-01-10T18:00:00Z")), 4000)
				c := aloneCase{power: 7400, drawn: 6000}
				h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
				h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(22, flex.Minimise)})
				h.drawsAtMost(&c, "beside the home")
				if x := h.explanation(); x.Plan.Shortfall > 0 {
					t.Errorf("%d Wh are missed", x.Plan.Shortfall)
				}
				h.clean()
			})
		})
	}
}

// TestFuse_AloneBorne has a charger of 7.4 kW alone behind 23 kW, which it can never pass beside a home that draws 4 kW: it is sent what it
// is without a fuse, under caps too, is called by an instruction, and its site is not read for itself once the home is learned.
func TestFuse_AloneBorne(t *testing.T) {
	for _, capped := range []bool{false, true} {
		t.Run(fmt.Sprint(capped), func(t *testing.T) {
			var sent [2]string

			for i := range sent {
				one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
					if capped {
						h.setCaps(flex.Caps{Fleet: kw(50)})
					}
					if i == 1 {
						h.setFuse(23)
					}
					sent[i] = h.borneNight()
				})
			}

			if sent[0] != sent[1] {
				t.Errorf("without a fuse: %s\nbehind one: %s", sent[0], sent[1])
			}
		})
	}
}

// borneNight plays an evening of a charger in a home that draws 4 kW, and returns what it was sent.
func (h *fixture) borneNight() string {
	h.Helper()
	h.Consent(flex.DayAt(at("2026-01-10T18:00:00Z")).Add(-30).Start())
	h.draws(h.Asset(h.site, flex.BoundaryMeter, 0), flex.DayAt(at("2026-01-10T18:00:00Z")), 4000)
	h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
	h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(22, flex.Minimise)})
	h.accept()
	sent := fmt.Sprint(h.look().Current.Steps)

	var sites []store.FusedSite
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
		var err error
		sites, err = control.FusedSites(h.Context(), tx)
		return err
	})
	if err != nil || len(sites) > 0 {
		h.Errorf("%d sites are read one by one, %v", len(sites), err)
	}

	h.wait(time.Hour)
	h.publish("2026-01-10T19:00:00Z", night(2, 3, 14, 15)...)
	h.replan()
	h.acceptOnce()
	sent += fmt.Sprint(h.look().Current.Steps)

	in := peak(-7_000)
	in.Span = flex.Span{From: at("2026-01-11T00:00:00Z"), To: at("2026-01-11T00:30:00Z")}
	p, err := h.service.SendInstruction(h.Context(), h.Org, in)
	if err != nil || len(p.Assets) != 1 {
		h.Errorf("%d are called, %v: %s", len(p.Assets), err, p.Why())
	}

	return sent + fmt.Sprint(h.look().Current.Steps)
}
