package console_test

import (
	"encoding/json"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/worker"
)

// patchy meters the fleet with holes: one asset in full, one in part, and the others not.
func (s *scene) patchy() {
	s.Helper()
	whole := make([]float64, 14*48)
	s.meter(plain, "2026-01-01T00:00:00Z", whole...)
	s.meter(shortfall, "2026-01-05T00:00:00Z", whole[:3*48+7]...)
	s.meter(atOnce, "2026-01-10T12:00:00Z", whole[:4*48]...)
	batch := []reading.Given{
		{AssetID: s.assets[plain], Span: flex.PeriodAt(at("2026-01-14T12:00:00Z")).Span(), Label: flex.ChargerEnergy, Value: -3},
		{AssetID: s.assets[plain], Span: flex.PeriodAt(at("2026-01-14T12:00:00Z")).Span(), Label: "charger_power", Value: 3},
	}
	if _, err := (&reading.Service{DB: s.db}).Take(s.Context(), s.Org, batch); err != nil {
		s.Fatal(err)
	}
}

func TestReadings(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		s.patchy()
		d.login()
		page := d.page("/console/readings")
		d.wants(page, ">14 Jan</th>", ">1 Jan</th>", `<td class="full"><span class="unseen">none missing</span></td>`, `<td class="gone">`, `>41</a>`,
			"Value -3 is below 0", "Label &#34;charger_power&#34; is not one of the interface&#39;s", "half-hours on this page are missing")
		if n := strings.Count(page, `<tr><th scope="row"><a href="/console/sites/`); n != 14 {
			t.Errorf("%d assets", n)
		}
		var list []struct {
			Name    string `json:"external_id"`
			Day     string
			Wanted  int
			Missing int
		}
		if err := json.Unmarshal([]byte(d.page("/console/readings.json?days=7&to=2026-01-14")), &list); err != nil {
			t.Fatal(err)
		}
		for _, l := range list {
			if l.Name == "CP-2041" {
				t.Errorf("missing of the one that is metered in full: %+v", l)
			}
			if l.Name == "CP-2058" && l.Day == "2026-01-08" && (l.Wanted != 48 || l.Missing != 41) {
				t.Errorf("%+v", l)
			}
			if l.Day == "2026-01-14" && l.Wanted != 43 { // it is 21:40
				t.Errorf("today: %+v", l)
			}
		}
		for days, status := range map[string]int{"0": 400, "1": 200, "31": 200, "32": 400, "x": 400} {
			if a := d.get("/console/readings?days=" + days); a.status != status {
				t.Errorf("%s days: %d", days, a.status)
			}
		}
	})
}

func TestEngine(t *testing.T) {
	each(t, "2026-01-13T12:00:00Z", func(d *service) {
		d.login()
		d.wants(d.page("/console/engine"), "Nothing is plugged in to be planned.", "None were made.", "No rounds run in this process.")
		newScene(d)
		d.login()
		d.server.Jobs = func() []*worker.Worker { return []*worker.Worker{{Name: "control", Every: 30e9}} }
		page := d.page("/console/engine")
		d.wants(page, "12 assets that are plugged in", "<dt>Short of their need</dt><dd>1</dd>", "a car was plugged in", "charging now was asked for", "30 s")
		if n := strings.Count(d.page("/console/engine.csv"), "\n"); n != 13 {
			t.Errorf("%d lines", n)
		}
	})
}

func TestBrowser_Quality(t *testing.T) {
	s := testScene(t)
	d := s.service
	s.patchy()
	d.login()
	d.server.Jobs = func() []*worker.Worker { return []*worker.Worker{{Name: "control", Every: 30e9}} }
	b := browse(d)
	b.screen("readings", "/console/readings")
	b.screen("engine", "/console/engine")
}
