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

// TestKnownHeat shows what is known of heat pumps and tanks: assumed, learned, and of one asset beside another; nothing of a charger, and
// nothing of another organisation's.
func TestKnownHeat(t *testing.T) {
	withCharger(t, func(h *fixture, charger string) {
		t := h.T
		site := text(t, h.want("POST", "/entities/site", fmt.Sprintf(`{"mpan":%q,"postcode":"SW1A 2AA",%s}`, halfHourly, consent), 200, "").body, "id")
		at := map[string]string{}
		for name, kind := range map[string]string{"pump": "heat pump", "second": "heat pump", "tank": "hot water tank"} {
			b := fmt.Sprintf(`{"external_id":%q,"type":%q,"site_id":%q,"properties":{"power_kw":3}}`, name, kind, site)
			at[name] = "/entities/asset/" + text(t, h.want("POST", "/entities/asset", b, 200, "").body, "id")
		}

		var id flex.AssetID
		if err := id.UnmarshalText([]byte(strings.TrimPrefix(at["pump"], "/entities/asset/"))); err != nil {
			t.Fatal(err)
		}
		rooms := store.BuildingRecord{Loss: 160, Capacity: 7500, Gain: 420, Miss: 0.25, Days: 14, Since: "2026-01-02", Error: 0.05}
		learned := store.HeatModel{Day: flex.DayAt(time.Now()), Rooms: &rooms, As: store.HeatedAs{Power: 3000}}
		err := h.server.Control.DB.Write(t.Context(), h.org.ID, func(tx *store.Tx) error {
			return tx.PutHeatModel(t.Context(), id, &learned)
		})
		if err != nil {
			t.Fatal(err)
		}

		pump := read[wire.KnownHeatResponse](t, h.ask("GET", at["pump"]+"/heat", ""))
		b := pump.Building
		if b == nil || pump.Tank != nil || b.LossWPerK != 160 || b.CapacityKWhPerK != 7.5 || b.GainW != 420 || *b.ForecastErrorC != 0.25 ||
			pump.LearnedDays != 14 || pump.Certainty != "high" || !pump.ResetAt.IsZero() || !strings.Contains(pump.Summary, "14 days of readings since 2026-01-02") {
			t.Errorf("%+v, %+v", pump, b)
		}

		other := read[wire.KnownHeatResponse](t, h.ask("GET", at["second"]+"/heat", ""))
		if b := other.Building; b == nil || other.LearnedDays != 0 || other.Certainty != "none" || other.Since != nil || b.LossWPerK <= 0 || b.ForecastErrorC != nil {
			t.Errorf("%+v, %+v", other, b)
		}
		tank := read[wire.KnownHeatResponse](t, h.ask("GET", at["tank"]+"/heat", ""))
		if tank.Building != nil || tank.Tank == nil || tank.Tank.UsedInADayKWh <= 0 || tank.Tank.KeptForMoreKWh < 0 {
			t.Errorf("%+v", tank)
		}

		h.want("GET", "/entities/asset/"+charger+"/heat", "", 404, `{"detail":"asset `+charger+` is a charger, of which nothing is learned of heat"}`)
		h.want("GET", strings.Replace(at["tank"], "/asset/", "/asset/x", 1)+"/heat", "", 422, "")
		_, token := h.newOrg("Other", "other")
		h.want("GET", at["pump"]+"/heat", "", 404, `{"detail":"asset not found or not authorized"}`, "Authorization: Bearer "+token)
	})
}
