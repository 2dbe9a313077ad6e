package console_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// patchy meters the fleet with holes: one asset in full, one in part, and the others not.
func (s *scene) patchy() {
	s.Helper()
	whole := make([]float64, 14*48)
	s.meter(plain, "2026-01-01T00:00:00Z", whole...)
	s.meter(shortfall, "2026-01-05T00:00:00Z", whole[:3*48+7]...)
	s.meter(atOnce, "2026-01-10T12:00:00Z", whole[:4*48]...)
	batch := []reading.Input{
		{AssetID: s.assets[plain], Span: flex.PeriodAt(at("2026-01-14T12:00:00Z")).Span(), Label: flex.ChargerEnergy, Value: -3},
		{AssetID: s.assets[plain], Span: flex.PeriodAt(at("2026-01-14T12:00:00Z")).Span(), Label: "charger_power", Value: 3},
	}
	if _, err := (&reading.Service{DB: s.db}).Store(s.Context(), s.Org, batch); err != nil {
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
			if l.Name == "CP-2058" && l.Day == "2026-01-14" && l.Wanted != 43 { // it is 21:40
				t.Errorf("today: %+v", l)
			}
		}

		for days, status := range map[string]int{"0": 422, "1": 200, "31": 200, "32": 422, "x": 422} {
			if a := d.get("/console/readings?days=" + days); a.status != status {
				t.Errorf("%s days: %d", days, a.status)
			}
		}
	})
}

func TestEngine(t *testing.T) {
	each(t, "2026-01-13T12:00:00Z", func(d *service) {
		d.login()
		d.wants(d.page("/console/engine"), "Nothing is plugged in to be planned.", "None were made.", "No background jobs run in this process.")
		newScene(d)
		d.login()
		d.server.Jobs = func() []*worker.Worker { return []*worker.Worker{{Name: "control", Every: 30e9}} }
		page := d.page("/console/engine")
		d.wants(page, "12 plugged-in assets", "<dt>Short of their need</dt><dd>1</dd>", "a car was plugged in", "charging now was asked for", "30 s")
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

// A charger that only sends readings of its sessions is not red for the time between them, but
// is red for what its sessions lack. A charger that sent any reading of another time must have
// all. The worst comes first.
func TestReadings_SessionsOnly(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		s.goTo("2026-01-15T07:20:00Z")
		s.event(plain, control.Event{Kind: control.PlugOut})
		s.goTo("2026-01-15T12:00:00Z")
		d.login()

		rows := func() (wanted, missing map[string]int, first string) {
			wanted, missing = map[string]int{}, map[string]int{}
			var list []struct {
				Name            string `json:"external_id"`
				Wanted, Missing int
			}
			if err := json.Unmarshal([]byte(d.page("/console/readings.json?to=2026-01-15")), &list); err != nil {
				t.Fatal(err)
			}

			for _, l := range list {
				wanted[l.Name] += l.Wanted
				missing[l.Name] += l.Missing
			}
			return wanted, missing, list[0].Name
		}

		// what lies in the session as a whole, which ends at 07:20
		since := s.sessions(plain)[0]
		first := flex.PeriodAt(since.Add(flex.PeriodAt(since).Span().To.Sub(flex.PeriodAt(since).Start()) - time.Microsecond))
		want := int(at("2026-01-15T07:00:00Z").Sub(first.Start()) / (30 * time.Minute))
		if wanted, missing, _ := rows(); missing["CP-2041"] != want || wanted["CP-2041"] != want {
			t.Errorf("of a session of %d half-hours %d are wanted, %d missing", want, wanted["CP-2041"], missing["CP-2041"])
		}

		s.meter(plain, flex.PeriodAt(since).Start().Format(time.RFC3339), make([]float64, want+2)...)
		if _, missing, first := rows(); missing["CP-2041"] != 0 || first == "CP-2041" {
			t.Errorf("%d are missing of a session that is metered in full", missing["CP-2041"])
		}

		s.meter(shortfall, "2026-01-12T03:00:00Z", 0) // a time without a car
		if _, missing, first := rows(); missing["CP-2058"] < 100 || first != "CP-2058" {
			t.Errorf("of one that sends all day %d are missing, the first is %s", missing["CP-2058"], first)
		}
	})
}

// sessions are when cars were plugged in at an asset.
func (s *scene) sessions(asset int) (from []time.Time) {
	s.Helper()
	id := s.assets[asset]
	err := s.db.Read(s.Context(), s.Org, func(tx *store.Tx) error {
		spans, err := tx.SessionSpans(s.Context(), []flex.AssetID{id}, flex.Span{From: at("2026-01-01T00:00:00Z"), To: at("2026-02-01T00:00:00Z")})
		for _, span := range spans[id] {
			from = append(from, span.From)
		}
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	return from
}
