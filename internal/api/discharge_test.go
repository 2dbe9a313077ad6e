package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
