package control_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// A night is skipped once, however often that is asked: a press of a button may come twice. The next night is charged for.
func TestSkipPlan_Twice(t *testing.T) {
	each(t, "2026-01-10T20:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.replan()
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})

		for range 3 {
			if err := h.service.SkipPlan(t.Context(), h.Org, h.asset); err != nil {
				t.Fatal(err)
			}
			if c := h.look(); !c.Away.To.Equal(at("2026-01-11T07:00:00Z")) || c.Current.Generation != 2 {
				t.Fatalf("skipped until %v by schedule %d", c.Away.To, c.Current.Generation)
			}
			h.chargesAt("skipped")
		}

		h.goTo("2026-01-11T07:00:30Z")
		if _, err := h.service.ReplanAbsences(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(h.charges()) == 0 {
			t.Error("nothing is charged in the next night")
		}
	})
}

// An absence that was given before is not lost when a night is skipped.
func TestSkipPlan_Absence(t *testing.T) {
	each(t, "2026-01-10T20:00:00Z", func(h *fixture) {
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})

		for _, test := range []struct {
			from string
			kind flex.Kind // of the refusal, if it is one
		}{
			{"2026-01-13T00:00:00Z", flex.Malformed},
			{"2026-01-11T00:00:00Z", 0},
		} {
			away := flex.Span{From: at(test.from), To: at("2026-01-20T00:00:00Z")}
			if err := h.service.SetAway(t.Context(), h.Org, h.site, away); err != nil {
				t.Fatal(err)
			}

			err := h.service.SkipPlan(t.Context(), h.Org, h.asset)
			if (err != nil) != (test.kind != 0) || err != nil && flex.KindOf(err) != test.kind {
				t.Errorf("away from %s: %v", test.from, err)
			}
			if got := h.look().Away; !got.To.Equal(away.To) {
				t.Errorf("away from %s: now until %v", test.from, got.To)
			}
		}
	})
}

// An absence that lies ahead, and is taken back, changes nothing of the charge under way: what was charged still counts. To end a skipped
// night does not take it back.
func TestSetAway_Ahead(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
		h.accept()
		h.goTo("2026-01-11T00:30:00Z")
		h.metered("2026-01-11T00:00:00Z", 3.7)
		h.replan()

		before := h.look().Current.Generation
		ahead := flex.Span{From: at("2026-01-17T00:00:00Z"), To: at("2026-01-20T00:00:00Z")}
		for _, away := range []flex.Span{ahead, {}, ahead} {
			if err := h.service.SetAway(t.Context(), h.Org, h.site, away); err != nil {
				t.Fatal(err)
			}
			if c := h.look(); c.Current.Generation != before || c.Away != away {
				t.Errorf(
					"away %v: %v, by schedule %d instead of %d",
					away,
					c.Away,
					c.Current.Generation,
					before,
				)
			}
		}

		if err := h.service.EndSkip(t.Context(), h.Org, h.asset); err != nil {
			t.Fatal(err)
		}
		if got := h.look().Away; got != ahead {
			t.Errorf("after the end of no skipped night: away %v", got)
		}
	})
}

// An absence of a home is set for all of its cars or for none.
func TestSetAway_AllOrNone(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		cars := []flex.AssetID{h.asset, h.Asset(h.site, flex.Charger, 7400)}
		for _, car := range cars {
			h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
		}

		// they are asked in the order of their ids
		slices.SortFunc(cars, func(a, b flex.AssetID) int { return bytes.Compare(a.Bytes(), b.Bytes()) })
		away := flex.Span{From: at("2026-01-10T18:00:00Z"), To: at("2026-01-12T12:00:00Z")}
		h.breaks(cars[1])
		if err := h.service.SetAway(h.Context(), h.Org, h.site, away); err == nil {
			t.Fatal("a car that cannot be read is away")
		}
		if c := h.at(cars[0]).look(); !c.Away.Empty() {
			t.Errorf("the first is away %v, though the second is not", c.Away)
		}
	})
}

// The profile of a skipped night, and of an absence of days, ends soon after it: if flexd sends nothing more, the car can charge in the
// night that follows. Asked again before the car is planned again, the next night is skipped and not a quarter of an hour.
func TestAway_ProfileEnds(t *testing.T) {
	each(t, "2026-01-10T20:00:00Z", func(h *fixture) {
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
		ends := func(what string, away time.Time) {
			t.Helper()
			h.chargesAt(what)
			if s := h.look().Current; s.End().Before(away) || s.End().After(away.Add(control.AwayGrace)) {
				t.Errorf("%s until %v: the profile ends at %v", what, away, s.End())
			}
		}

		if err := h.service.SkipPlan(t.Context(), h.Org, h.asset); err != nil {
			t.Fatal(err)
		}
		ends("skipped", at("2026-01-11T07:00:00Z"))

		h.goTo("2026-01-11T07:00:30Z")
		if err := h.service.SkipPlan(t.Context(), h.Org, h.asset); err != nil {
			t.Fatal(err)
		}
		ends("skipped again", at("2026-01-12T07:00:00Z"))

		away := flex.Span{From: at("2026-01-11T00:00:00Z"), To: at("2026-01-20T00:00:00Z")}
		if err := h.service.SetAway(t.Context(), h.Org, h.site, away); err != nil {
			t.Fatal(err)
		}
		ends("away", away.To)
	})
}
