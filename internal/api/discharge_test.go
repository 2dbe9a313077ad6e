package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/wire"
)

// TestDischargeProperties tells how a car may be discharged, in each way in, changes it and takes it away.
func TestDischargeProperties(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		site := h.newSite(halfHourly, "SW1A 2AA", "")
		told := func(status int, body string) reply {
			t.Helper()
			return h.want("POST", "/entities/asset", fmt.Sprintf(`{"external_id":"car","type":"charger","site_id":%q,"properties":%s}`, site, body), status, "")
		}

		for _, wrong := range []string{
			`{"discharge_power_kw":-0.1}`,
			`{"discharge_power_kw":1000.1}`,
			`{"reserve_pct":100.1}`,
			`{"reserve_pct":-1}`,
			`{"reserve_kwh":-1}`,
			`{"wear_p_per_kwh":1000.1}`,
			`{"wear_p_per_kwh":-1}`,
			`{"reserve_pct":20,"reserve_kwh":10}`,
			`{"capacity_kwh":60,"discharge_power_kw":0.49}`,
			`{"discharge_power_kw":5}`,
			`{"capacity_kwh":0,"discharge_power_kw":5}`,
			`{"capacity_kwh":60,"discharge_power_kw":5,"reserve_kwh":60.1}`,
		} {
			told(422, wrong)
		}

		car := read[wire.AssetResponse](t, told(200, `{"power_kw":7.4,"capacity_kwh":60,"discharge_power_kw":1000,"reserve_pct":100,"wear_p_per_kwh":0}`))
		at := "/entities/asset/" + car.ID.String()
		shows := func(want string) {
			t.Helper()
			r := h.want("GET", at, "", 200, "")
			if !strings.Contains(r.body, want) {
				t.Errorf("%s, not %s", r.body, want)
			}
		}

		shows(`"discharge_power_kw":1000,"reserve_pct":100,"wear_p_per_kwh":0`)
		h.want("PATCH", at, `{"properties":{"reserve_kwh":12.5,"discharge_power_kw":5}}`, 200, "")
		shows(`"discharge_power_kw":5,"reserve_kwh":12.5,"wear_p_per_kwh":0`)

		for wrong, want := range map[string][2]string{
			`"discharge_power_kw":0.4`: {"discharge_power_kw", "give 0.5 kW at least, or 0"},
			`"reserve_kwh":60.5`:       {"reserve_kwh", "60.5 kWh do not stay in a battery of 60: give 60 at most"},
			`"capacity_kwh":12`:        {"capacity_kwh", "its reserve_kwh is 12.5: give 12.5 kWh at least"},
			`"capacity_kwh":0`:         {"capacity_kwh", "what its battery holds when it is full"},
		} {
			r := h.want("PATCH", at, `{"properties":{`+wrong+`}}`, 422, "")
			if !strings.Contains(r.body, `"body","properties","`+want[0]+`"`) || !strings.Contains(r.body, want[1]) {
				t.Errorf("%s is answered by %s", wrong, r.body)
			}
		}

		h.want("PATCH", at, `{"properties":{"reserve_kwh":60,"discharge_power_kw":0.5}}`, 200, "")
		h.want("PATCH", at, `{"properties":{"reserve_kwh":12.5,"discharge_power_kw":5}}`, 200, "")
		r := h.want("POST", "/entities/site/initialise", fmt.Sprintf(`{"site":{"mpan":%q,"postcode":"SW1A 2AA",%s},"assets":[{"external_id":"car","type":"charger","properties":{"discharge_power_kw":5,"wear_p_per_kwh":4}}]}`, halfHourly, consent), 200, "")
		if !strings.Contains(r.body, `"fields_updated":["properties"]`) {
			t.Error(r.body)
		}
		shows(`"discharge_power_kw":5,"reserve_kwh":12.5,"wear_p_per_kwh":4`)
		h.want("PATCH", at, `{"properties":{"discharge_power_kw":0}}`, 200, "")
		if r := h.want("GET", at, "", 200, ""); strings.Contains(r.body, "discharge_power_kw") {
			t.Error(r.body)
		}

		h.want("POST", "/entities/asset", fmt.Sprintf(`{"external_id":"b","type":"battery","site_id":%q,"properties":{"discharge_power_kw":5}}`, site), 422, "")
	})
}

// TestDischargeProperties_Older changes cars that were said to discharge before there were rules: what is sent again as it is
// kept is taken, and one can always be charged alone; what is made wrong anew is refused.
func TestDischargeProperties_Older(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox})
		h := open(t, db)
		seed := storetest.NewSeed(t, db, url)
		h.stock()
		site := h.newSite(halfHourly, "SW1A 2AA", "")
		car := read[wire.AssetResponse](t, h.want("POST", "/entities/asset", fmt.Sprintf(`{"external_id":"car","type":"charger","site_id":%q,"properties":{"power_kw":7.4}}`, site), 200, ""))
		patch := func(status int, properties string) {
			t.Helper()
			h.want("PATCH", "/entities/asset/"+car.ID.String(), `{"properties":`+properties+`}`, status, "")
		}

		for name, c := range map[string]struct {
			capacity        any
			kept            string
			again, off, bad string
		}{
			"a reserve above the capacity": {60_000, `{"power_w":5000,"reserve_wh":80000}`,
				`{"capacity_kwh":60,"discharge_power_kw":5,"reserve_kwh":80,"wear_p_per_kwh":4}`, `{"discharge_power_kw":0,"capacity_kwh":50}`, `{"reserve_kwh":81}`},
			"a weak one": {60_000, `{"power_w":300}`,
				`{"capacity_kwh":60,"discharge_power_kw":0.3,"reserve_pct":20}`, `{"discharge_power_kw":0}`, `{"discharge_power_kw":0.4}`},
			"no capacity": {nil, `{"power_w":5000}`,
				`{"discharge_power_kw":5,"reserve_pct":20}`, `{"discharge_power_kw":0}`, `{"discharge_power_kw":6}`},
		} {
			t.Log(name)

			seed.Exec(`UPDATE asset SET capacity_wh = $2, discharge = $3 WHERE id = $1`, car.ID.Bytes(), c.capacity, c.kept)
			patch(422, c.bad)
			patch(200, c.again)
			h.want("POST", "/entities/site/initialise", fmt.Sprintf(`{"site":{"mpan":%q,"postcode":"SW1A 2AA",%s},"assets":[{"external_id":"car","type":"charger","properties":%s}]}`, halfHourly, consent, c.again), 200, "")
			patch(200, c.off)
			patch(422, c.bad)
		}
	})
}

// TestDischargeProperties_Model has the capacity that a car must have to discharge come from its model.
func TestDischargeProperties_Model(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox})
		h := open(t, db)
		seed := storetest.NewSeed(t, db, url)
		h.stock()
		site := h.newSite(halfHourly, "SW1A 2AA", "")
		seed.Exec(`UPDATE model SET capacity_wh = 40000 WHERE name = 'zappi'`)
		register := func(status int, name, properties string) {
			t.Helper()
			h.want("POST", "/entities/asset", fmt.Sprintf(`{"external_id":%q,"type":"charger","site_id":%q,"asset_model":"zappi","properties":%s}`, name, site, properties), status, "")
		}

		register(200, "a", `{"discharge_power_kw":5,"reserve_kwh":40}`)
		register(422, "b", `{"discharge_power_kw":5,"reserve_kwh":41}`)

		onboard := func(status int, name, properties string) {
			t.Helper()
			h.want("POST", "/entities/site/initialise", fmt.Sprintf(`{"site":{"mpan":%q,"postcode":"SW1A 2AA",%s},"assets":[{"external_id":%q,"type":"charger","asset_model":"zappi","properties":%s}]}`, halfHourly, consent, name, properties), status, "")
		}

		onboard(200, "c", `{"discharge_power_kw":5}`)
		onboard(422, "c", `{"reserve_kwh":41}`)
		onboard(422, "d", `{"discharge_power_kw":5,"capacity_kwh":30,"reserve_kwh":40}`)
	})
}

// TestDischargeConsent gives the consent to discharge, withdraws it and gives it again: no consent of before the
// withdrawal counts, nor one of the future, and what was is kept.
func TestDischargeConsent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		at := "/entities/site/" + h.newSite(halfHourly, "SW1A 2AA", "")
		way := at + "/discharge-consent"
		given := func(at time.Time) string {
			return fmt.Sprintf(`{"gave_discharge_consent_at":%q}`, at.UTC().Format(time.RFC3339))
		}

		h.want("GET", way, "", 200, `{"history":[]}`)
		before := h.want("GET", at, "", 200, "")
		h.want("DELETE", way, "", 200, before.body)
		h.want("POST", way, given(time.Now().Add(time.Hour)), 400, "")
		h.want("POST", way, `{"gave_discharge_consent_at":"2026-01-15T10:30:00"}`, 422, "")

		const first = `"gave_discharge_consent_at":"2026-01-15T10:30:00Z"`
		for range 2 {
			r := h.want("POST", way, "{"+first+"}", 200, "")
			if !strings.Contains(r.body, first) {
				t.Error(r.body)
			}
		}

		h.want("DELETE", way, "", 200, before.body)
		h.want("POST", way, "{"+first+"}", 400, "")
		h.want("POST", way, given(time.Now().Add(4*time.Minute)), 200, "")
		c := read[wire.DischargeConsentResponse](t, h.ask("GET", way, ""))
		if len(c.History) != 3 || !c.History[0].Given || c.History[1].Given || c.GaveDischargeConsentAt.IsZero() {
			t.Errorf("%+v", c)
		}

		for _, method := range []string{"GET", "POST", "DELETE"} {
			h.want(method, "/entities/site/b2c3d4e5-f6a7-8901-bcde-f23456789012/discharge-consent", map[string]string{"POST": given(time.Now())}[method], 404, "")
		}
		if findings, err := db.Verify(t.Context()); err != nil || len(findings) > 0 {
			t.Errorf("%v, %v", findings, err)
		}
	})
}

// TestDischargeEndpoint has an endpoint say that it takes limits below zero, and that it does no more.
func TestDischargeEndpoint(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		set := func(discharge string, status int, want string) {
			t.Helper()
			r := h.want("PUT", "/endpoints/schedule", `{"url":"https://client.example/x"`+discharge+`}`, status, "")
			if !strings.Contains(r.body, want) {
				t.Error(r.body)
			}
		}

		set(`,"discharge":"negative_limits"`, 200, `"discharge":"negative_limits"`)
		set(`,"discharge":"below"`, 422, "negative_limits")
		set(`,"discharge":"none"`, 200, `"batch":false,"enabled"`)
		set(`,"discharge":"negative_limits"`, 200, `"discharge"`)
		set(``, 200, `"batch":false,"enabled"`)
	})
}

// TestDischargeProperties_Battery: of how a car discharges a home battery has the wear alone, within its limits, and each battery its own.
func TestDischargeProperties_Battery(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		site := h.newSite(halfHourly, "SW1A 2AA", "")
		answered := func(name, kind string, status int, body string) reply {
			t.Helper()
			return h.want("POST", "/entities/asset", fmt.Sprintf(`{"external_id":%q,"type":%q,"site_id":%q,"properties":%s}`, name, kind, site, body), status, "")
		}

		for _, wrong := range []string{`{"wear_p_per_kwh":1000.1}`, `{"wear_p_per_kwh":-0.1}`} {
			answered("one", "battery", 422, wrong)
		}
		for wrong, field := range map[string]string{
			`{"wear_p_per_kwh":2,"discharge_power_kw":3}`: "discharge_power_kw",
			`{"reserve_pct":20}`:                          "reserve_pct",
			`{"reserve_kwh":2}`:                           "reserve_kwh",
		} {
			r := answered("one", "battery", 422, wrong)
			if !strings.Contains(r.body, "has wear_p_per_kwh alone") || !strings.Contains(r.body, `["body","properties","`+field+`"]`) {
				t.Errorf("%s", r.body)
			}
		}
		answered("tank", "hot_water_tank", 422, `{"wear_p_per_kwh":2}`)

		for name, wear := range map[string]string{"one": "0", "two": "1000"} {
			b := read[wire.AssetResponse](t, answered(name, "battery", 200, `{"power_kw":3,"capacity_kwh":10,"wear_p_per_kwh":`+wear+`}`))
			at := "/entities/asset/" + b.ID.String()
			shows := func(want string) {
				t.Helper()
				if r := h.want("GET", at, "", 200, ""); !strings.Contains(r.body, want) {
					t.Errorf("%s, not %s", r.body, want)
				}
			}

			shows(`"wear_p_per_kwh":` + wear)
			h.want("PATCH", at, `{"properties":{"power_kw":3.6}}`, 200, "")
			shows(`"wear_p_per_kwh":` + wear)
			h.want("PATCH", at, `{"properties":{"wear_p_per_kwh":2.5}}`, 200, "")
			shows(`"wear_p_per_kwh":2.5`)
		}
	})
}

// TestDischargeConsent_List finds the consent to discharge, and its end, on a page of sites that was asked for before.
func TestDischargeConsent_List(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		way := "/entities/site/" + h.newSite(halfHourly, "SW1A 2AA", "") + "/discharge-consent"
		const first = `"gave_discharge_consent_at":"2026-01-15T10:30:00Z"`
		shown := func() bool {
			t.Helper()
			return strings.Contains(h.want("GET", "/entities/site", "", 200, "").body, first)
		}

		if shown() {
			t.Error("a consent that nobody gave")
		}

		h.want("POST", way, "{"+first+"}", 200, "")
		if !shown() {
			t.Error("the consent is not on the page")
		}

		h.want("DELETE", way, "", 200, "")
		if shown() {
			t.Error("the consent that was withdrawn is still on the page")
		}
	})
}
