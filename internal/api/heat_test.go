package api_test

import (
	"fmt"
	"strings"
	"testing"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestHeatProperties has the comfort band of heat pumps and tanks registered, changed, shown, taken away and refused.
func TestHeatProperties(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		site := text(t, h.want("POST", "/entities/site", fmt.Sprintf(`{"mpan":%q,"postcode":"SW1A 2AA",%s}`, halfHourly, consent), 200, "").body, "id")
		register := func(name, kind, heat string) string {
			b := fmt.Sprintf(`{"external_id":%q,"type":%q,"site_id":%q,"properties":{"power_kw":3,"heat":%s}}`, name, kind, site, heat)
			return h.want("POST", "/entities/asset", b, 200, "").body
		}

		const room = `{"comfort_low_c":19.5,"comfort_high_c":22,"night_low_c":17,"night_high_c":19,"setpoint_c":20.5,"steering":"sg_ready"}`
		pump := register("pump", "heat pump", room)
		if !strings.Contains(pump, `"properties":{"power_kw":3,"heat":`+room+`}`) {
			t.Error(pump)
		}

		const water = `{"comfort_low_c":48,"comfort_high_c":62.5,"volume_l":180}`
		tank := register("tank", "hot water tank", water)
		at := "/entities/asset/" + text(t, tank, "id")
		h.want("PATCH", at, `{"properties":{"power_kw":2.5}}`, 200, "")
		if shown := h.want("GET", at, "", 200, "").body; !strings.Contains(shown, `"power_kw":2.5,"heat":`+water) {
			t.Errorf("what was not sent did not stay: %s", shown)
		}

		again := fmt.Sprintf(`{"site":{"mpan":%q,"postcode":"SW1A 2AA",%s},"assets":[{"external_id":"tank","type":"hot water tank","properties":{"heat":{"comfort_low_c":30,"comfort_high_c":75,"volume_l":1000}}}]}`, halfHourly, consent)
		h.want("POST", "/entities/site/initialise", again, 200, "")
		if shown := h.want("GET", at, "", 200, "").body; !strings.Contains(shown, `"heat":{"comfort_low_c":30,"comfort_high_c":75,"volume_l":1000}`) {
			t.Errorf("registered again: %s", shown)
		}

		for _, none := range []string{"null", "{}"} {
			h.want("PATCH", at, `{"properties":{"heat":`+water+`}}`, 200, "")
			h.want("PATCH", at, `{"properties":{"heat":`+none+`}}`, 200, "")
			if shown := h.want("GET", at, "", 200, "").body; strings.Contains(shown, "heat") {
				t.Errorf("%s: %s", none, shown)
			}
		}

		h.heatRefused(t, site, text(t, pump, "id"), at)
	})
}

// heatRefused has what no such asset has refused, with the member and the limit.
func (h *fixture) heatRefused(t *testing.T, site, pump, tank string) {
	t.Helper()
	for heat, why := range map[string]string{
		`{"comfort_low_c":20}`:                                           `"comfort_low_c"],"msg":"give comfort_low_c and comfort_high_c together"`,
		`{"comfort_low_c":20,"comfort_high_c":20.4}`:                     `"comfort_high_c"],"msg":"a band is at least 0.5 degrees wide"`,
		`{"comfort_low_c":20,"comfort_high_c":30.5}`:                     `"comfort_high_c"],"msg":"ensure this value is from 5 to 30 degrees"`,
		`{"night_low_c":17,"night_high_c":19}`:                           `"night_low_c"],"msg":"the band by day is missing`,
		`{"comfort_low_c":19,"comfort_high_c":21,"night_low_c":18}`:      `"night_low_c"],"msg":"give night_low_c and night_high_c together"`,
		`{"volume_l":200}`:                                               `"volume_l"],"msg":"a heat pump has no volume"`,
		`{"steering":"by_hand"}`:                                         `"steering"]`,
		`{"setpoint_c":31}`:                                              `"setpoint_c"]`,
		`{"comfort_low_c":4.9,"comfort_high_c":20}`:                      `"comfort_low_c"]`,
		`{"comfort_low_c":19,"comfort_high_c":21,"comfort_low_f":[1,2]}`: "",
	} {
		status := 422
		if why == "" {
			status = 200
		}

		got := h.want("PATCH", "/entities/asset/"+pump, `{"properties":{"heat":`+heat+`}}`, status, "").body
		if !strings.Contains(got, why) {
			t.Errorf("%s: %s", heat, got)
		}
	}

	for heat, why := range map[string]string{
		`{"comfort_low_c":29.9,"comfort_high_c":60}`: "ensure this value is from 30 to 75 degrees",
		`{"comfort_low_c":45,"comfort_high_c":49.9}`: "a band is at least 5 degrees wide",
		`{"setpoint_c":20}`:                          `"properties","heat"],"msg":"a tank has one band`,
		`{"steering":"sg_ready"}`:                    "a tank is steered by windows",
		`{"volume_l":1000.1}`:                        `"volume_l"]`,
		`{"volume_l":19.9}`:                          `"volume_l"]`,
	} {
		if got := h.want("PATCH", tank, `{"properties":{"heat":`+heat+`}}`, 422, "").body; !strings.Contains(got, why) {
			t.Errorf("%s: %s", heat, got)
		}
	}

	charger := h.newAsset(site, "no heat")
	h.want("PATCH", "/entities/asset/"+charger, `{"properties":{"heat":{"setpoint_c":20}}}`, 422,
		`{"detail":[{"loc":["body","properties","heat"],"msg":"a charger keeps no heat: only a heat pump and a hot water tank do","type":"value_error"}]}`)
	h.want("PATCH", "/entities/asset/"+charger, `{"properties":{"heat":null}}`, 200, "")
}
