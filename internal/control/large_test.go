package control_test

import (
	"fmt"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
)

// A charger that can draw as much as the interface's number for no limit, or more, is planned as any other, and its
// limits name its power: whoever takes 99999 for watts charges with all of it too.
func TestCharger_Large(t *testing.T) {
	for _, c := range []struct {
		name         string
		rated        flex.Watts
		fuse, cap    float64 // kW; 0 for none
		battery      bool
		energy       float64 // kWh; all within the hour from 02:00
		limit, drawn flex.Watts
	}{
		{name: "just below", rated: 99_998, energy: 90, limit: flex.NoLimit, drawn: 99_998},
		{name: "the number itself", rated: flex.NoLimit, energy: 90, limit: flex.NoLimit, drawn: flex.NoLimit},
		{name: "100 kW", rated: 100_000, energy: 90, limit: 100_000, drawn: 100_000},
		{name: "1 GW", rated: 1_000_000_000, energy: 90, limit: 1_000_000_000, drawn: 1_000_000_000},
		{name: "a fuse that is not set, and a battery", rated: 150_000, battery: true, energy: 90, limit: 150_000, drawn: 150_000},
		{name: "a fuse above its power", rated: 150_000, fuse: 1000, battery: true, energy: 90, limit: 150_000, drawn: 150_000},
		{name: "a cap above 100 kW", rated: 350_000, cap: 120, energy: 90, limit: 120_000, drawn: 120_000},
		{name: "a cap below 100 kW", rated: 350_000, cap: 90, energy: 80, limit: 90_000, drawn: 90_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
				h.at(h.Asset(h.site, flex.Charger, c.rated))

				if c.fuse > 0 {
					h.setFuse(c.fuse)
				}

				if c.cap > 0 {
					h.setCaps(flex.Caps{Fleet: kw(c.cap)})
				}

				if c.battery {
					h.battery()
				}

				h.publish("2026-01-10T18:00:00Z", night(16, 17)...)
				h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(c.energy, flex.Minimise)})
				s := h.look().Current
				on, wh := time.Duration(0), flex.WattHours(0)
				for _, step := range s.Steps {
					if step.Limit == 0 {
						continue
					}

					on += step.Len()
					wh += min(step.Limit, c.rated).For(step.Len())
					if step.Limit != c.limit {
						t.Errorf("a limit of %d W, not %d", step.Limit, c.limit)
					}
				}

				if most := c.drawn.For(on); wh != most || wh < flex.FromKWh(c.energy) || wh > flex.FromKWh(c.energy)+c.drawn.For(time.Minute) {
					t.Errorf("%d Wh in %v, for %v kWh", wh, on, c.energy)
				}

				if p, err := ocpp.New(h.asset, s.Steps); err != nil || fmt.Sprint(p.Steps) != fmt.Sprint(s.Steps) {
					t.Errorf("%v is sent for %v: %v", p.Steps, s.Steps, err)
				}
			})
		})
	}
}

// Chargers of more than 100 kW share a main fuse: all needs are met, and what is drawn stays within it.
func TestFuse_Large(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.at(h.Asset(h.site, flex.Charger, 150_000))
		cars := h.fuse(200, 150_000, 120_000)
		h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
		cs := chargers{}
		for _, car := range cars {
			h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(60, flex.Minimise)})
			cs.accept(h, car)
		}

		cs.settle(h, cars)
		if w, at := cs.most(time.UnixMicro(h.micro.Load())); w > 200_000 {
			t.Errorf("%d W are drawn at %v", w, at)
		}

		fuse := false
		for _, car := range cars {
			for _, p := range h.at(car).explanation().Plan.Periods {
				fuse = fuse || p.Reason == charge.FuseClosed
				if p.Reason == charge.CapClosed {
					t.Errorf("%v has %q, where the main fuse is all", p.Span, p.Reason)
				}
			}

			if x := h.at(car).explanation(); x.Plan.Shortfall > 0 {
				t.Errorf("lacks %d Wh: %s", x.Plan.Shortfall, x.Prose())
			}
		}

		if !fuse {
			t.Error("no half-hour is closed by the main fuse")
		}
	})
}

// A charger of more than 100 kW that draws all that it can, or less, is planned with that.
func TestRate_Large(t *testing.T) {
	for drawn, want := range map[float64]flex.Watts{75: 150_000, 60: 120_000} {
		one(t, "2026-01-10T12:00:00Z", func(h *fixture) {
			h.at(h.Asset(h.site, flex.Charger, 150_000))
			h.slowNight("2026-01-10", 300, drawn, drawn, drawn, drawn)
			if r := h.rate(); r.Planned != want || r.HalfHours == 0 {
				t.Errorf("%v kWh a half-hour: %+v", drawn, r)
			}
		})
	}
}
