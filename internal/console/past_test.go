package console_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// pastNight plays the scene's night to its end, meters a part of it, and has the past counted.
func (s *scene) pastNight() {
	s.Helper()
	for i := range 5 {
		s.meterPoint(i)
	}
	s.Exec(`UPDATE asset SET model = 'Ohme Home' WHERE id = $1`, s.assets[shortfall].Bytes())
	s.goTo("2026-01-15T08:20:00Z")
	s.event(plain, control.Event{Kind: control.PlugOut})
	kwh := make([]float64, 24)

	for i := 11; i < 20; i++ {
		kwh[i] = 3.2
	}
	s.meter(plain, "2026-01-14T20:00:00Z", kwh...)
	s.meter(others, "2026-01-14T22:00:00Z", kwh[:14]...)
	if _, err := s.server.Operations.CountPast(s.Context()); err != nil {
		s.Fatal(err)
	}
}

func TestPast(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		d.wants(d.page("/console/past"), "Nothing was counted of this day.", "where a sandbox clock was turned further")
		d.wants(d.page("/console/readings/fleet"), "No readings were wanted on this day.")
		s.pastNight()

		page := d.page("/console/past?day=2026-01-15")
		d.wants(page, "<dt>Saved by the plan</dt>", "<dt>Earned</dt>", ">Model Zappi 2.1</option>", ">GSP group _M</option>", "Wednesday 14 January 2026", "Thursday 8 January 2026", "38.4 kWh")
		d.wants(d.page("/console/past?day=2026-01-15&group=model:Zappi+2.1"), `<option value="model:Zappi 2.1" selected>`)
		d.wants(d.page("/console/past?day=2026-01-15&group=firmware:9.9"), "Nothing was counted of this day.")

		var hours []map[string]any
		whole := d.page("/console/past.json?day=2026-01-15")
		if err := json.Unmarshal([]byte(whole), &hours); err != nil || len(hours) != 48 {
			t.Fatalf("%d half-hours: %v", len(hours), err)
		}

		// From 01:30 to 06:00 the car at the first charger took 3.2 kWh each half-hour.
		if h := hours[4]; h["metered_kw"] != 6.4 || h["planned_kw"].(float64) < 30 || h["price_gbp_per_mwh"] == nil || h["day_before_metered_kw"] != 0.0 || h["cap_kw"] != nil {
			t.Errorf("%v", h)
		}
		if h := hours[47]; h["metered_kw"] != nil || h["planned_kw"] != nil || h["plugged_in"] != nil {
			t.Errorf("a half-hour that is not over: %v", h)
		}
		if n := strings.Count(d.page("/console/past.csv?day=2026-01-15"), "\n"); n != 49 {
			t.Errorf("%d lines", n)
		}

		heat := d.page("/console/readings/fleet?day=2026-01-15&by=model")
		d.wants(heat, "Zappi 2.1</a>", "Ohme Home</a>", `<td class="gone">100</td>`, `<td class="poor">`)
		if strings.Index(heat, "Ohme Home</a>") > strings.Index(heat, "Zappi 2.1</a>") {
			t.Error("the worst group does not come first")
		}
		d.wants(d.page("/console/readings/fleet.csv?day=2026-01-15&by=model"), "model,start,wanted,missing")
		for _, path := range []string{"past?group=x", "past?group=site:1", "past?day=x", "past?model=x", "readings/fleet?by=site", "readings/fleet?day=x"} {
			if a := d.get("/console/" + path); a.status != 422 {
				t.Errorf("%s: %d", path, a.status)
			}
		}
	})
}

// The days when the clocks change have 46 and 50 half-hours.
func TestPast_ClockChange(t *testing.T) {
	for day, n := range map[string]int{"2026-03-29": 46, "2026-10-25": 50} {
		each(t, day+"T20:10:00Z", func(d *service) {
			asset := d.Asset(d.Site(flex.FullScheduleMethod), flex.Charger, 7400)
			d.Exec(`UPDATE asset SET created_at = $1`, at(day+"T20:10:00Z").Add(-48*time.Hour).UnixMicro())
			d.goTo(day + "T00:00:00Z")
			if err := d.control.Event(t.Context(), d.Org, asset, control.Event{Kind: control.PlugIn}); err != nil {
				t.Fatal(err)
			}
			d.goTo(day + "T20:10:00Z")
			if _, err := d.server.Operations.CountPast(t.Context()); err != nil {
				t.Fatal(err)
			}

			d.login()
			var hours []map[string]any
			if err := json.Unmarshal([]byte(d.page("/console/past.json")), &hours); err != nil || len(hours) != n {
				t.Errorf("%s has %d half-hours: %v", day, len(hours), err)
			}

			heat := d.page("/console/readings/fleet")
			if got := strings.Count(heat, `<th scope="col"><time`); got != n {
				t.Errorf("%s has %d columns", day, got)
			}
			if n == 50 {
				d.wants(d.page("/console/past"), ">01:00 BST</time>", ">01:00 GMT</time>")
			}
		})
	}
}

func TestBrowser_Past(t *testing.T) {
	s := testScene(t)
	s.login()
	s.pastNight()
	b := browse(s.service)
	b.screen("past", "/console/past?day=2026-01-15")
	b.screen("readings-fleet", "/console/readings/fleet?day=2026-01-15&by=model")
}
