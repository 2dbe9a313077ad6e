package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/wire"
)

// steps writes a battery schedule as the time, the action and whether it may deviate.
func steps(t *testing.T, body string) string {
	var answer wire.BatteryScheduleResponse
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range answer.ScheduleSteps {
		out = append(out, fmt.Sprintf("%s %s %t", s.StartTimestamp.Format("15:04"), s.Action, s.AllowDeviation))
	}
	return strings.Join(out, ", ")
}

func TestBatteries(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 7, 1, 10, 10, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		h := open(t, db)
		h.server.Control = &control.Service{DB: db}
		seed := storetest.NewSeed(t, db, url)
		site, free := seed.Site(flex.FullScheduleMethod), seed.Site()
		battery, charger, other := seed.Asset(site, flex.Battery, 3000), seed.Asset(site, flex.Charger, 7400), seed.Asset(free, flex.Battery, 3000)

		for _, table := range []string{"site", "asset", "dispatch_method"} {
			seed.Exec(`UPDATE ` + table + ` SET org_id = ` + "(SELECT id FROM org WHERE name = 'Acme')")
		}
		seed.Exec(`UPDATE asset SET capacity_wh = 10000, model = 'Box 10'`)
		seed.Consent(time.UnixMicro(1))
		schedule := func(a flex.AssetID) string { return "/entities/asset/" + a.String() + "/battery-schedule" }
		today := func(a flex.AssetID) string { return "/entities/asset/" + a.String() + "/todays-dispatch-schedule" }

		h.want("GET", schedule(battery), "", 200, `{"schedule_steps":[],"schedule_last_updated":"2026-07-01T10:10:00Z"}`)
		if r, err := h.server.Control.PlanBatteries(t.Context()); err != nil || r.Count != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		h.want("GET", schedule(battery), "", 200, `{"schedule_steps":[{"start_timestamp":"2026-07-01T10:00:00Z","end_timestamp":"2026-07-02T23:00:00Z",`+
			`"action":"avoid_import","allow_deviation":true}],"schedule_last_updated":"2026-07-01T10:10:00Z"}`)
		h.want("GET", schedule(charger), "", 404, "")
		h.want("GET", schedule(flex.AssetID{1}), "", 404, "")
		h.want("GET", schedule(other), "", 403, `{"detail":"the site has not consented to full_asset_schedule_control"}`)
		seed.Exec(`UPDATE asset SET excluded_at = 1 WHERE id = $1`, battery.Bytes())
		h.want("GET", schedule(battery), "", 403, `{"detail":"an operator excluded the battery from control"}`)
		seed.Exec(`UPDATE asset SET excluded_at = NULL WHERE id = $1`, battery.Bytes())

		h.want("GET", today(battery), "", 200, `{"periods":[]}`)
		db.Environment = flex.Production
		h.want("GET", today(battery), "", 200, `{"periods":[{"start_timestamp":"2026-07-01T11:00:00+01:00","end_timestamp":"2026-07-02T00:00:00+01:00","action":"SELF_USE"}]}`)
		h.want("GET", today(other), "", 200, `{"periods":[]}`)
		h.want("GET", today(charger), "", 404, "")
		if a, b := h.ask("GET", today(charger), ""), h.ask("GET", today(flex.AssetID{1}), ""); a.body != b.body || strings.Contains(a.body, "charger") {
			t.Errorf("%s and %s look different", a.body, b.body)
		}
		db.Environment = flex.Sandbox

		// A mode is said by what is to be avoided, which the home's load and roof decide.
		from := flex.PeriodAt(now)
		err := db.Write(t.Context(), h.org.ID, func(tx *store.Tx) error {
			b, err := tx.Battery(t.Context(), battery)
			b.Plan.From, b.Plan.Modes = from, "CDLLFFSSS"
			b.Plan.ForecastFrom, b.Plan.Forecast = from, "200/0 200/0 200/0 200/500 200/0 200/500 200/0 200/500 200/200"
			return errors.Join(err, tx.PutBatteryPlan(t.Context(), battery, b.Plan))
		})
		if err != nil {
			t.Fatal(err)
		}

		if got, want := steps(t, h.ask("GET", schedule(battery), "").body), "10:00 charge_max false, 10:30 discharge_max false, "+
			"11:00 avoid_export false, 11:30 avoid_import false, 13:00 avoid_import true, 13:30 avoid_export true"; got != want {
			t.Errorf("told %s\nwant %s", got, want)
		}
	})
}
