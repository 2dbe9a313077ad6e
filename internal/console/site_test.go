package console_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
)

// meterPoint puts the site's meter on the list, settled half-hourly.
func (s *scene) meterPoint(site int) {
	s.Helper()
	err := s.db.WriteAll(s.Context(), func(all *store.All) error {
		tx, err := all.For(s.Context(), s.Org)
		if err != nil {
			return err
		}

		at, err := tx.Site(s.Context(), s.sites[site])
		if err != nil {
			return err
		}
		return all.PutMeters(s.Context(), []flex.Meter{{
			MPAN: at.MPAN.Reveal(), Address: at.Address.Reveal(), Postcode: at.Postcode.Reveal(), Import: true, Energised: true, HalfHourly: true, Domestic: true,
			SupplierMPID: "MOOR", SupplierName: "Moorland Supply", GSPGroup: "_M",
		}})
	})
	if err != nil {
		s.Fatal(err)
	}
}

// earn has the car at the asset finish its night, its half-hours metered and credited.
func (s *scene) earn(asset int) {
	s.Helper()
	s.goTo("2026-01-15T07:20:00Z")
	s.event(asset, control.Event{Kind: control.PlugOut})
	var kwh []float64
	for i := range 48 {
		kwh = append(kwh, map[bool]float64{true: 3.7, false: 0}[i >= 16 && i < 23]) // from 01:30
	}
	s.meter(asset, "2026-01-14T17:30:00Z", kwh...)
	s.wait(time.Hour)
	if _, err := s.reward.SettleSessions(s.Context()); err != nil {
		s.Fatal(err)
	}
}

func TestSite(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		service := &registry.Service{DB: d.db}
		path := "/console/sites/" + s.sites[plain].String()
		d.wants(d.page(path), "<h1>4 Elm Row</h1>", "MPAN not found.", "never enrolled",
			"CP-2041: the model is not in the catalogue. <span class=\"hint\">Check its spelling, or import it: flexd models import FILE.</span>",
			"Missing readings", "<td class=\"num\">48 of 48</td>", "Nothing was earned or withdrawn in these days.")

		s.meterPoint(plain)
		if _, err := service.Enrol(t.Context(), d.Org, s.sites[plain], registry.Enrolment{Proposition: flex.FullAssetSchedule}); err != nil {
			t.Fatal(err)
		}
		s.earn(plain)
		page := d.page(path)
		d.wants(page, `<span class="tag good">settled half-hourly</span>`, "Moorland Supply MOOR", "Enrolled in full asset schedule control.",
			`<span class="tag on">enrolled</span>`, "Charged 25.9 kWh, which earns you 2 p a kWh,", "£0.52", "metered 3.7 kWh")

		csv := d.page(path + "/statement.csv")
		if strings.Count(csv, "\nline,") != 1 || !strings.Contains(csv, ",52,52,25.9,") || !strings.Contains(csv, "\ntotal,") {
			t.Errorf("statement: %s", csv)
		}
		d.wants(d.page(path+"/statement?month=2026-01"), "Statement number", "25.9 kWh times 2 p is 52 p, in whole pence.", "3.700 kWh")
		d.wants(d.page(path+"/statement.json?tax_year=2025"), `"earned_pence": 52`, `"from": "2025-04-06"`)
		d.wants(d.page(path+"?from=2025-12-01&to=2025-12-31"), "Nothing was earned or withdrawn in these days.")

		for bad, status := range map[string]int{"?from=x": 400, "?from=2026-01-02&to=2026-01-01": 400} {
			if a := d.get(path + bad); a.status != status {
				t.Errorf("GET %s: %d", bad, a.status)
			}
		}
		if a := d.get("/console/sites/" + s.assets[0].String()); a.status != 404 {
			t.Errorf("no site of that id: %d", a.status)
		}
	})
}

func TestPrices(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		d.wants(d.page("/console/prices?day=2026-01-14"), "No half-hour of this day has both yet")
		d.publishOff(-6.5, "system-price", flex.Day{Year: 2026, Month: 1, Dom: 14}, at("2026-01-14T20:00:00Z"))
		// The prices of 40 half-hours were known the day before, and are known after them.
		d.wants(d.page("/console/prices?day=2026-01-14"), "<dt>Half-hours with both</dt><dd>40</dd><dd class=\"note\">market-index against system-price</dd>",
			"<dd>£6.50</dd>", "<dt>Outturn less forecast</dt><dd>−£6.50</dd>")

		page := d.page("/console/prices?day=2026-01-15")
		d.wants(page, "Thursday 15 January 2026", `<dt>Missing</dt><dd>2</dd>`, "−£", "market-index", `<span class="tag warn">missing</span>`, `<span class="tag good">current</span>`)

		var v struct {
			Day   string
			Curve []struct {
				Start string
				Price *float64 `json:"price_gbp_per_mwh"`
			}
			Publications []struct {
				Source string
				Prices []*float64 `json:"prices_gbp_per_mwh"`
			}
		}

		if err := json.Unmarshal([]byte(d.page("/console/prices.json?day=2026-01-14")), &v); err != nil {
			t.Fatal(err)
		}

		if v.Day != "2026-01-14" || len(v.Curve) != 48 || len(v.Publications) != 2 || v.Publications[0].Source != "system-price" || len(v.Publications[1].Prices) != 48 {
			t.Errorf("%d half-hours, publications %v", len(v.Curve), v.Publications)
		}
		if n := strings.Count(d.page("/console/prices.csv?day=2026-01-15&source=market-index"), "\n"); n != 49 {
			t.Errorf("%d lines", n)
		}

		d.wants(d.page("/console/prices?day=2026-03-29"), "No prices are known for this day.")
		if n := strings.Count(d.page("/console/prices.csv?day=2026-03-29"), "\n"); n != 47 {
			t.Errorf("the day on which the clocks go forward has %d lines", n)
		}
		if a := d.get("/console/prices?day=" + url.QueryEscape("14 January")); a.status != 422 {
			t.Errorf("no day: %d", a.status)
		}
	})
}

func TestBrowser_Site(t *testing.T) {
	s := testScene(t)
	d := s.service
	s.meterPoint(plain)
	if _, err := (&registry.Service{DB: d.db}).Enrol(t.Context(), d.Org, s.sites[plain], registry.Enrolment{Proposition: flex.FullAssetSchedule}); err != nil {
		t.Fatal(err)
	}

	d.publish("system-price", flex.Day{Year: 2026, Month: 1, Dom: 15}, at("2026-01-14T20:00:00Z"), 40, 41)
	d.login()
	b := browse(d)
	b.screen("prices", "/console/prices?day=2026-01-15")
	d.publishOff(9, "system-price", flex.Day{Year: 2026, Month: 1, Dom: 14}, at("2026-01-14T20:00:00Z"))
	b.screen("prices-outturn", "/console/prices?day=2026-01-14")
	s.earn(plain)
	b.screen("site", "/console/sites/"+s.sites[plain].String())
	b.screen("site-bare", "/console/sites/"+s.sites[shortfall].String())
}

// TestSitePlan shows the common plan of a site's devices, as a table and as numbers.
func TestSitePlan(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		path := "/console/sites/" + s.sites[plain].String()
		s.Exec(`UPDATE site SET supply_set = TRUE, import_w = 9000, export_w = 3680 WHERE id = $1`, s.sites[plain].Bytes())
		d.wants(d.page(path), "The next 24 hours", `data-plot="site"`, "Planned under a main fuse of 9 kW and an export limit of 3.7 kW.")

		var plan struct {
			Devices []string
			Fuse    *float64 `json:"fuse_kw"`
			Periods []struct {
				Devices []float64 `json:"devices_kw"`
			}
		}
		if err := json.Unmarshal([]byte(d.page(path+"/plan.json")), &plan); err != nil || len(plan.Devices) != 1 || len(plan.Periods) != 48 || *plan.Fuse != 9 {
			t.Fatalf("%v: %+v", err, plan)
		}

		if a := d.get("/console/sites/" + s.assets[0].String() + "/plan.json"); a.status != 404 {
			t.Errorf("no site of that id: %d", a.status)
		}
	})
}
