package console_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/store"
)

// If there is another organisation, each reading shows whose it is; the list has those of all.
func TestHeldReadings_Owner(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		half := flex.PeriodAt(at("2026-01-14T12:00:00Z")).Span()
		batch := []reading.Input{{AssetID: s.assets[plain], Span: half, Label: flex.ChargerEnergy, Value: 510}}
		if _, err := (&reading.Service{DB: s.db}).Store(s.Context(), s.Org, batch); err != nil {
			s.Fatal(err)
		}
		if _, err := d.db.AddOrg(t.Context(), "Fen Power"); err != nil {
			t.Fatal(err)
		}
		d.wants(d.page("/console/fleet"), "1 reading held back", "Of Moorland Energy. Their values are more", `href="/console/readings/held"`)
	})
}

// TestHeldReadings finds readings that wait for a decision by filters, and decides on them
// with a reason and a tick. The audit log has both.
func TestHeldReadings(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		d.wants(d.page("/console/readings/held"), "No held readings match these filters.")

		half := flex.PeriodAt(at("2026-01-14T12:00:00Z")).Span()
		batch := []reading.Input{
			{AssetID: s.assets[plain], Span: half, Label: flex.ChargerEnergy, Value: 510},
			{AssetID: s.assets[plain], Span: half, Label: flex.BoundaryImportPower, Value: 99},
		}
		if _, err := (&reading.Service{DB: s.db}).Store(s.Context(), s.Org, batch); err != nil {
			s.Fatal(err)
		}

		d.wants(d.page("/console/fleet"), "2 readings held back", `href="/console/readings/held"`)
		d.wants(d.page("/console/readings"), `href="/console/readings/held"`)
		d.wants(d.page("/console/readings/held"), "2 readings", ">510</td>", ">99</td>", "power_kw of the asset")
		for query, want := range map[string]int{
			"": 2, "?label=" + string(flex.ChargerEnergy): 1, "?state=released": 0, "?state=": 2, "?from=2026-01-15": 0, "?to=2026-01-13": 0,
			"?from=2026-01-14&to=2026-01-14": 2, "?asset=" + s.assets[plain].String(): 2, "?asset=" + s.assets[shortfall].String(): 0,
		} {
			if n := strings.Count(d.page("/console/readings/held.csv"+query), "\n") - 1; n != want {
				t.Errorf("%q: %d readings, want %d", query, n, want)
			}
		}

		for query, want := range map[string]int{"?state=lost": 422, "?label=charger_power": 422, "?from=yesterday": 422, "?to=x": 422} {
			if a := d.get("/console/readings/held" + query); a.status != want {
				t.Errorf("%s: %d, want %d", query, a.status, want)
			}
		}

		held := func(label flex.Label) string {
			found, _, err := (&reading.Service{DB: s.db}).Held(s.Context(), reading.HeldQuery{Org: s.Org, Label: label, Limit: 1})
			if err != nil || len(found) != 1 {
				t.Fatalf("%d of %s, %v", len(found), label, err)
			}
			return "/console/readings/held/" + found[0].ID.String()
		}

		one, other := held(flex.ChargerEnergy), held(flex.BoundaryImportPower)
		d.wants(d.page(one), "Release", "Discard", "type “release”", "type “discard”")
		form := url.Values{"reason": {"read on the spot"}, "typed": {"release"}}
		for _, bad := range []url.Values{{}, {"reason": {"x"}}, {"typed": {"release"}}, {"reason": {"x"}, "typed": {"discard"}}, {"reason": {strings.Repeat("x", 501)}, "typed": {"release"}}} {
			if a := d.do("POST", one+"/release", bad); a.status != 400 {
				t.Errorf("%v: %d", bad, a.status)
			}
		}
		if a := d.do("POST", one+"/keep", form); a.status != 404 {
			t.Errorf("another decision: %d", a.status)
		}

		d.wants(d.post(one+"/release", form), "The reading counts from now on.", "1 reading<")
		form.Set("typed", "discard")
		d.wants(d.post(other+"/discard", form), "The reading never counts.", "No held readings match these filters.")
		if a := d.do("POST", one+"/discard", form); a.status != 409 {
			t.Errorf("decided twice: %d", a.status)
		}
		if page := d.page(one); strings.Contains(page, "type “discard”") {
			t.Error("a reading that was decided on has forms")
		}
		d.wants(d.page("/console/audit"), "release reading", "discard reading", "read on the spot")

		err := s.db.Read(s.Context(), s.Org, func(tx *store.Tx) error {
			rs, err := tx.Readings(s.Context(), store.ReadingQuery{
				Assets: []flex.AssetID{s.assets[plain]}, Labels: []flex.Label{flex.ChargerEnergy, flex.BoundaryImportPower}, Days: []flex.Day{flex.DayAt(half.From.Add(time.Hour))},
			})
			if len(rs) != 1 || rs[0].Value != 510_000_000 {
				t.Errorf("of the two %v counts", rs)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
