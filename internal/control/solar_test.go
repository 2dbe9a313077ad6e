package control_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestSolarForecast: what somebody says of a roof is what its battery is planned on, until
// it is taken back.
func TestSolarForecast(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := open(t, url, "2026-06-15T06:10:00Z")
		id := h.battery()
		h.read(id, flex.BatteryStateOfCharge, "2026-06-15T06:05:00Z", "2026-06-15T06:05:00Z", 20)
		h.runBatteries()
		said := func(kwh float64) (all []flex.Solar) {
			for n := range 10 { // 11:00 to 16:00 in London
				all = append(all, flex.Solar{Period: flex.PeriodAt(at("2026-06-15T10:00:00Z")).Add(n), Energy: flex.FromKWh(kwh)})
			}
			return all
		}

		noon := func() string {
			h.Helper()

			steps, _, err := h.service.BatterySteps(h.Context(), h.Org, id)
			if err != nil {
				t.Fatal(err)
			}

			for _, s := range steps {
				if s.Contains(at("2026-06-15T12:00:00Z")) {
					return string(s.Action)
				}
			}

			return ""
		}

		outlook := func(first, last int) string {
			h.Helper()

			o, err := h.service.Solar(h.Context(), h.Org, h.site)
			if err != nil {
				t.Fatal(err)
			}

			words := []string{o.Source, fmt.Sprint(len(o.HalfHours))}
			for _, x := range o.HalfHours[first:last] {
				words = append(words, fmt.Sprint(x.Energy, x.Origin))
			}

			return strings.Join(words, " ")
		}
		if got := outlook(0, 1); got != " 82 0none" || noon() != "avoid_import" {
			t.Errorf("nothing is known of a roof: %s, %s", got, noon())
		}

		set := func(source string, all []flex.Solar) {
			h.Helper()
			h.wait(time.Second)

			if err := h.service.SetSolar(h.Context(), h.Org, h.site, source, all); err != nil {
				t.Fatal(err)
			}

			if n := h.runBatteries(); n != 1 {
				t.Errorf("%d plans after %s spoke", n, source)
			}
		}

		set("the weatherman", said(1))

		if got := outlook(7, 10); got != "the weatherman 82 0none 1000given 1000given" || noon() != string(battery.AvoidExport) {
			t.Errorf("a sunny noon: %s, %s", got, noon())
		}

		set("the weatherman", nil)

		if got := outlook(8, 10); got != " 82 0none 0none" || noon() != "avoid_import" {
			t.Errorf("taken back: %s, %s", got, noon())
		}

		// What was metered is what is expected of a half-hour that nothing is said of.
		var rs []flex.Reading

		for k := 1; k <= 3; k++ {
			for n := range 10 {
				p := flex.PeriodAt(at("2026-06-15T10:00:00Z").AddDate(0, 0, -k)).Add(n)
				rs = append(rs, flex.Reading{AssetID: id, Span: p.Span(), Label: flex.SolarPower, Value: 600_000})
			}
		}

		if err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return tx.PutReadings(h.Context(), rs) }); err != nil {
			t.Fatal(err)
		}

		set("a neighbour", said(2)[1:2])

		if got := outlook(8, 10); got != "a neighbour 82 300metered 2000given" {
			t.Errorf("beside readings: %s", got)
		}

		// What is said of tomorrow counts tomorrow.
		tomorrow := said(3)
		for i := range tomorrow {
			tomorrow[i].Period = tomorrow[i].Period.Add(48)
		}

		set("the weatherman", tomorrow)
		h.goTo("2026-06-15T23:10:00Z")
		h.runBatteries()

		if got := outlook(21, 23); got != "the weatherman 96 0metered 3000given" {
			t.Errorf("the day after: %s", got)
		}
	})
}

// TestSolarForecast_SameInstant has a sandbox clock not go: what is said of a roof after a battery's plan, at the same instant, is what it
// is planned on, and so is its withdrawal. Nothing is due after that.
func TestSolarForecast_SameInstant(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := open(t, url, "2026-06-15T06:10:00Z")
		id := h.battery()
		h.read(id, flex.BatteryStateOfCharge, "2026-06-15T06:05:00Z", "2026-06-15T06:05:00Z", 20)
		h.runBatteries()

		var sunny []flex.Solar
		for n := range 10 { // 11:00 to 16:00 in London
			sunny = append(sunny, flex.Solar{Period: flex.PeriodAt(at("2026-06-15T10:00:00Z")).Add(n), Energy: flex.FromKWh(1)})
		}

		for _, c := range []struct {
			said []flex.Solar
			want battery.Action
		}{
			{sunny, battery.AvoidExport},
			{nil, battery.AvoidImport},
		} {
			if err := h.service.SetSolar(h.Context(), h.Org, h.site, "the weatherman", c.said); err != nil {
				t.Fatal(err)
			}

			if n := h.runBatteries(); n != 1 {
				t.Errorf("%d plans after %v was said", n, c.said)
			}

			if n := h.runBatteries(); n != 0 {
				t.Errorf("%d plans more, with nothing new", n)
			}

			steps, _, err := h.service.BatterySteps(h.Context(), h.Org, id)
			if err != nil {
				t.Fatal(err)
			}

			for _, s := range steps {
				if s.Contains(at("2026-06-15T12:00:00Z")) && s.Action != c.want {
					t.Errorf("%v at noon, after %v was said", s.Action, c.said)
				}
			}
		}
	})
}

func TestSolarForecast_Limits(t *testing.T) {
	one(t, "2026-06-15T06:10:00Z", func(h *fixture) {
		say := func(when string, kwh float64, more ...flex.Solar) error {
			return h.service.SetSolar(h.Context(), h.Org, h.site, "x", append([]flex.Solar{{Period: flex.PeriodAt(at(when)), Energy: flex.FromKWh(kwh)}}, more...))
		}

		twice := flex.Solar{Period: flex.PeriodAt(at("2026-06-15T10:00:00Z"))}
		for what, c := range map[string]struct {
			err  error
			fine bool
		}{
			"nothing":           {say("2026-06-15T10:00:00Z", 0), true},
			"the most":          {say("2026-06-15T10:00:00Z", control.SolarMost.KWh()), true},
			"more than that":    {say("2026-06-15T10:00:00Z", control.SolarMost.KWh()+0.001), false},
			"below zero":        {say("2026-06-15T10:00:00Z", -0.001), false},
			"a day ago":         {say("2026-06-14T06:30:00Z", 1), true},
			"before that":       {say("2026-06-14T06:00:00Z", 1), false},
			"in two weeks":      {say("2026-06-29T05:30:00Z", 1), true},
			"after that":        {say("2026-06-29T06:00:00Z", 1), false},
			"a half-hour twice": {say("2026-06-15T10:00:00Z", 1, twice), false},
		} {
			if fine := c.err == nil; fine != c.fine || !fine && flex.KindOf(c.err) != flex.Malformed {
				t.Errorf("%s: %v", what, c.err)
			}
		}

		if err := h.service.SetSolar(h.Context(), h.Org, flex.SiteID{9}, "x", nil); flex.KindOf(err) != flex.NotFound {
			t.Errorf("nobody's site: %v", err)
		}

		if _, err := h.service.Solar(h.Context(), h.Org, flex.SiteID{9}); flex.KindOf(err) != flex.NotFound {
			t.Errorf("nobody's site: %v", err)
		}
	})
}
