package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestFuse_TailIsNoCharging has two cars behind a main fuse, whose schedules go on after ready-by for the fuse's sake.
// Every answer about what is planned shows charging up to ready-by alone, whether asked before it or after.
func TestFuse_TailIsNoCharging(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		cars := h.fuse(10, 7400)
		h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
		h.replan()
		cs := chargers{}
		for _, car := range cars {
			h.at(car).event(control.Event{
				Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(22, flex.Minimise),
			})
		}

		cs.settle(h, cars)
		ready := h.at(cars[0]).look().Current.From.ReadyBy
		for i, car := range cars {
			if s := h.at(car).look().Current; !s.End().After(ready.Add(24 * time.Hour)) {
				t.Fatalf("the schedule of car %d ends at %v: the test shows nothing", i, s.End())
			}
		}

		h.chargesUntil(cars, ready)
		h.micro.Store(ready.Add(time.Hour).UnixMicro())
		h.chargesUntil(cars, ready)
	})
}

// chargesUntil fails if any answer shows charging after an instant, or another energy than 22 kWh for each car.
func (h *fixture) chargesUntil(cars []flex.AssetID, ready time.Time) {
	h.Helper()
	household, err := h.service.Household(h.Context(), h.Org, h.site)
	if err != nil {
		h.Fatal(err)
	}

	for _, car := range household.Cars {
		for _, s := range car.Charging {
			h.endsBy("the household", s, ready)
		}
	}

	for _, car := range cars {
		past, err := h.service.Past(h.Context(), control.PastQuery{
			Asset: car, Org: h.Org, From: flex.DayAt(ready).Add(-1), To: flex.DayAt(ready).Add(1), Show: "dates",
		})
		if err != nil {
			h.Fatal(err)
		}

		for _, d := range append(past.Planned(), past.Ahead()...) {
			h.endsBy("the page of an asset", d.Span, ready)
		}
	}

	h.fleetUntil(len(cars), ready)
	e, found, err := h.service.NextGridEvent(h.Context(), h.Org, h.site)
	if err != nil {
		h.Fatal(err)
	}
	if found {
		h.endsBy("the home", e.Span, ready)
	}
}

// fleetUntil is chargesUntil of what the pages of the fleet and the envelope are made of.
func (h *fixture) fleetUntil(cars int, ready time.Time) {
	h.Helper()
	taken := flex.WattHours(0)
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
		err := tx.EachPlugged(h.Context(), flex.Scope{}, func(p *store.Plugged) {
			taken += p.Delivered
			for _, s := range p.Steps {
				taken += min(s.Limit, p.Power).For(s.Len())
				h.endsBy("the fleet", s.Span, ready)
			}
		})
		if err != nil {
			return err
		}

		day := flex.Span{From: ready.Add(-24 * time.Hour), To: ready.Add(24 * time.Hour)}

		return tx.EachSessionPlan(h.Context(), day, func(p *store.SessionPlan) {
			for _, s := range p.Steps {
				h.endsBy("the past of the fleet", s.Span, ready)
			}
		})
	})
	if err != nil {
		h.Fatal(err)
	}

	if want := flex.WattHours(22_000 * cars); taken < want || taken > want+want/50 {
		h.Errorf("the fleet is to take %d Wh, of %d Wh needed", taken, want)
	}
}

func (h *fixture) endsBy(who string, s flex.Span, ready time.Time) {
	h.Helper()
	if s.To.After(ready) {
		h.Errorf("%s is shown charging from %v to %v, and ready-by is %v", who, s.From, s.To, ready)
	}
}
