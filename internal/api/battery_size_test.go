package api_test

import (
	"fmt"
	"strings"
	"testing"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/wire"
)

// TestBatterySizes: a power and a capacity that belong to no battery are refused in each way in, with what would be
// right; one that fits is taken, and what is not of a battery is not asked.
func TestBatterySizes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		site := h.newSite(halfHourly, "SW1A 2AA", "")
		post := func(id, kind, body string, status int) reply {
			t.Helper()
			return h.want("POST", "/entities/asset", fmt.Sprintf(`{"external_id":%q,"type":%q,"site_id":%q,"properties":%s}`, id, kind, site, body), status, "")
		}
		b := read[wire.AssetResponse](t, post("b", "battery", `{"power_kw":5,"capacity_kwh":10}`, 200))
		post("c", "charger", `{"power_kw":7.4,"capacity_kwh":0.01}`, 200)

		for _, c := range []struct{ sent, field, why string }{
			{`{"power_kw":5000}`, "power_kw", "5000 kW is more than a battery has"},
			{`{"capacity_kwh":10000}`, "capacity_kwh", "10000 kWh is more than a battery holds"},
			{`{"capacity_kwh":0.01}`, "capacity_kwh", "0.01 kWh is less than any battery holds"},
			{`{"power_kw":5,"capacity_kwh":0.2}`, "capacity_kwh", "5 kW would fill 0.2 kWh in less than 3 minutes"},
			{`{"capacity_kwh":1000}`, "capacity_kwh", "5 kW would take more than 100 hours to fill 1000 kWh"},
			{`{"power_kw":500}`, "power_kw", "500 kW would fill 10 kWh in less than 3 minutes"},
		} {
			r := h.want("PATCH", "/entities/asset/"+b.ID.String(), `{"properties":`+c.sent+`}`, 422, "")
			for _, want := range []string{`"body","properties","` + c.field + `"`, c.why, "a power_kw of 5 and a capacity_kwh of 10"} {
				if !strings.Contains(r.body, want) {
					t.Errorf("%s is answered by %s, without %s", c.sent, r.body, want)
				}
			}
		}

		post("d", "battery", `{"power_kw":5000,"capacity_kwh":10000}`, 422)
		h.want("POST", "/entities/site/initialise", fmt.Sprintf(`{"site":{"mpan":%q,"postcode":"SW1A 2AA",%s},"assets":[{"external_id":"e","type":"battery","properties":{"power_kw":5,"capacity_kwh":10000}}]}`, halfHourly, consent), 422, "")

		// A fault of an onboarding names the asset that has it.
		for path, c := range map[string]struct{ assets, loc string }{
			"initialise": {
				`"assets":[{"external_id":"f","type":"charger"},{"external_id":"g","type":"battery","properties":{"capacity_kwh":10000}}]`,
				`"loc":["body","assets","1","properties","capacity_kwh"]`,
			},
			"onboard-site-and-asset": {
				`"asset":{"external_id":"g","type":"battery","properties":{"capacity_kwh":10000}},"dispatch_consent":{"dispatch_methods":[]}`,
				`"loc":["body","asset","properties","capacity_kwh"]`,
			},
		} {
			body := fmt.Sprintf(`{"site":{"mpan":%q,"postcode":"SW1A 2AB",%s},%s}`, notListed, consent, c.assets)
			if r := h.want("POST", "/entities/site/"+path, body, 422, ""); !strings.Contains(r.body, c.loc) {
				t.Errorf("%s is answered by %s, without %s", path, r.body, c.loc)
			}
		}

		h.want("PATCH", "/entities/asset/"+b.ID.String(), `{"properties":{"power_kw":0.1,"capacity_kwh":10}}`, 200, "")
	})
}
