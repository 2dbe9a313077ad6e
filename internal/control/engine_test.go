package control_test

import (
	"slices"
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

func TestForesee(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", slices.Repeat([]float64{50}, 26)...)
		h.event(control.Event{Kind: control.PlugIn, Intent: need(15, flex.Minimise), Tariff: nightTariff("Europe/London")})
		prices := func(cheap int) (ps []flex.PricedPeriod) { // of the night's half-hours one is far cheaper
			for i := range 14 {
				p := flex.PricedPeriod{Period: flex.PeriodAt(at("2026-01-10T23:00:00Z")).Add(i), Known: true, Price: flex.FromGBPPerMWh(50)}
				if i == cheap {
					p.Price = flex.FromGBPPerMWh(-200)
				}
				ps = append(ps, p)
			}

			return ps
		}

		before := h.look().Session.Generation

		for name, c := range map[string]struct {
			supposed []flex.PricedPeriod
			changed  int
		}{"nothing": {nil, 0}, "the same": {prices(-1), 0}, "one far cheaper": {prices(12), 1}, "long past": {[]flex.PricedPeriod{{Period: flex.PeriodAt(at("2020-01-01T00:00:00Z")), Known: true}}, 0}} {
			f, err := h.service.Foresee(t.Context(), h.Org, c.supposed)
			if err != nil {
				t.Fatal(err)
			}

			if f.Planned != 1 || f.Changed != c.changed || (f.Saving > 0) != (c.changed > 0) {
				t.Errorf("%s: %+v", name, f)
			}
		}

		if h.look().Session.Generation != before {
			t.Error("foreseeing changed a schedule")
		}

		// What was foreseen is what happens.
		h.publish("2026-01-10T23:00:00Z", append(append(slices.Repeat([]float64{50}, 12), -200), 50)...)
		h.replan()

		if got := h.look().Session.Generation; got != before+1 {
			t.Errorf("generation %d after the prices came, %d before", got, before)
		}

		if planned, changed := h.service.Planned(); planned < 1 || changed != 1 {
			t.Errorf("weighed %d, changed %d", planned, changed)
		}
	})
}

// TestForesee_Unread has the schedule of one of two cars be one that cannot be read: it is counted as failed, and the other one is foreseen.
func TestForesee_Unread(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		cars, _ := h.chargers(1)
		for _, car := range cars {
			h.at(car).event(control.Event{Kind: control.PlugIn, Intent: need(3.7, flex.Minimise), Tariff: nightTariff("Europe/London")})
		}
		h.breaks(cars[0])

		cheap := []flex.PricedPeriod{{Period: flex.PeriodAt(at("2026-01-11T02:00:00Z")), Known: true, Price: flex.FromGBPPerMWh(-200)}}
		f, err := h.service.Foresee(t.Context(), h.Org, cheap)
		if err != nil || f.Planned != 2 || f.Changed != 1 || f.Failed != 1 {
			t.Errorf("%+v, %v", f, err)
		}
	})
}

func TestSample(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		if s, err := h.service.Sample(t.Context(), h.Org, 10); err != nil || len(s) != 0 {
			t.Errorf("nothing is plugged in: %v, %v", s, err)
		}

		h.publish("2026-01-10T18:00:00Z", slices.Repeat([]float64{50}, 26)...)
		h.event(control.Event{Kind: control.PlugIn, Intent: need(60, flex.Minimise), Tariff: nightTariff("Europe/London")})

		s, err := h.service.Sample(t.Context(), h.Org, 10)
		if err != nil || len(s) != 1 || s[0].Shortfall <= 0 || s[0].Took <= 0 || s[0].Gap < 0 || s[0].Gap > 1000 {
			t.Errorf("%+v: %v", s, err)
		}

		err = h.db.Read(t.Context(), h.Org, func(tx *store.Tx) error {
			counts, err := tx.SchedulesSince(t.Context(), at("2026-01-10T00:00:00Z"))
			if len(counts) != 1 || counts[0] != (store.CauseCount{Cause: store.CausePlugIn, Count: 1}) {
				t.Errorf("counted %v", counts)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}
