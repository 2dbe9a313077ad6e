package api_test

import (
	"fmt"
	"strings"
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// withCharger opens a fixture with a charger at a site that consented to the methods.
func withCharger(t *testing.T, test func(h *fixture, asset string)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox})
		h := open(t, db)
		h.server.Control = &control.Service{DB: db}
		seed := storetest.NewSeed(t, db, url)
		seed.Org = h.org.ID
		test(h, seed.Asset(seed.Site(flex.FullScheduleMethod, flex.LimitedPauseMethod), flex.Charger, 7400).String())
	})
}

func TestEvents(t *testing.T) {
	const (
		tariff = `"tariff":{"off_peak_times":"00:00-05:30, 23:30-24:00","timezone":"Europe/London"}`
		intent = `"intent":{"energy_required_kwh":30,"ready_by":"2026-04-15T07:00:00Z"}`
		block  = `{"start_timestamp":"2025-06-27T22:00:00Z","end_timestamp":"2025-06-28T06:00:00Z"}`
	)

	withCharger(t, func(h *fixture, asset string) {
		for _, c := range []struct {
			path, body string
			status     int
			says       string
		}{
			{"/tariff-update", `{` + tariff + `}`, 200, "null"},
			{"/tariff-update", `{"off_peak_times":"00:00-05:30, 23:30-24:00","timezone":"Europe/London","tariff":null}`, 200, "null"},
			{"/tariff-update", `{"off_peak_times":"Mo 00:00-05:00","timezone":"Europe/London"}`, 400, "HH:MM-HH:MM"},
			{"/tariff", `{"off_peak_times":"Mo 00:00-05:00","timezone":"Europe/London"}`, 400, "HH:MM-HH:MM"},
			{"/tariff", `{` + tariff + `}`, 200, "null"},
			{"/tariff-update", `{"off_peak_times":"00:00-05:00"}`, 422, `"loc":["body","timezone"],"msg":"field required"`},
			{"/tariff-update", `{"off_peak_times":"00:00-05:00","timezone":"Europe/London","tariff_type":"economy"}`, 422, `"loc":["body","tariff_type"]`},
			{"/tariff-update", `{"timezone":"Europe/London"}`, 422, `"loc":["body","tariff"],"msg":"field required"`},
			{"/tariff-update", `{"off_peak_times":"00:00-05:00","timezone":"Europe/London","tariff":{}}`, 422, `"loc":["body","tariff","timezone"]`},
			{"/intent", `{` + intent + `}`, 200, "null"},
			{"/plug-in", ``, 200, "null"},
			{"/plug-in", `{}`, 200, "null"},
			{"/plug-in", `{` + intent + `,` + tariff + `,"vehicle":{"charging_rate_kw":7.4}}`, 200, "null"},
			{"/charge-now", `{"end_at":"2100-01-01T00:00:00Z"}`, 422, "7 days"},
			{"/charge-now", `{"end_at":"2026-01-01T00:00:00Z"}`, 422, "is past"},
			{"/charge-now", `{}`, 422, `"loc":["body","end_at"]`},
			{"/charge-now-deleted", `{}`, 200, "null"},
			{"/plug-out", `{}`, 200, "null"},
			{"", `{"event_type":"plug_in",` + intent + `}`, 200, "null"},
			{"", `{"event_type":"intent_update"}`, 400, "must carry intent"},
			{"", `{"event_type":"plug_out",` + intent + `}`, 400, "carries no intent"},
			{"", `{"event_type":"drive_off"}`, 422, `"loc":["body","event_type"]`},
			{"/tariff-update", `{"tariff":{"off_peak_times":"25:00-26:00","timezone":"Europe/London"}}`, 400, "HH:MM-HH:MM"},
			{"/tariff-update", `{"tariff":{"off_peak_times":"00:00-05:00","timezone":"GMT+1"}}`, 400, "IANA"},
			{"/intent", `{"intent":{"energy_required_kwh":-1}}`, 422, `ready_by`},
			{"/intent", `{"intent":{"energy_required_kwh":30,"ready_by":"9999-12-31T23:59:59-01:00"}}`, 422, `"loc":["body","intent","ready_by"]`},
			{"/plug-in-schedule", `{"charging_schedule":[{"start_timestamp":"2025-06-27T22:00:00Z","end_timestamp":"2025-06-28T06:00:00Z"}]}`, 200,
				`{"modified_charging_schedule":[{"start_timestamp":"2025-06-27T22:00:00Z","end_timestamp":"2025-06-28T06:00:00Z"}]}`},
			{"/plug-in-schedule", `{"charging_schedule":[{"start_timestamp":"2025-06-28T22:00:00Z","end_timestamp":"2025-06-28T06:00:00Z"}]}`, 422, "not after its start"},
			{"/plug-in-schedule", `{"charging_schedule":[` + strings.Repeat(block+",", control.BlocksMax-1) + block + `]}`, 422, "overlap"},
			{"/plug-in-schedule", `{"charging_schedule":[` + strings.Repeat(block+",", control.BlocksMax) + block + `]}`, 422, `"loc":["body","charging_schedule"]`},
		} {
			r := h.ask("POST", "/entities/asset/"+asset+"/event"+c.path, c.body)
			if r.StatusCode != c.status || !strings.Contains(r.body, c.says) {
				t.Errorf("%s %s: %d %s", c.path, c.body, r.StatusCode, r.body)
			}
		}

		r := h.ask("GET", "/entities/asset/"+asset+"/intent", "")
		if want := `{"intent":{"energy_required_kwh":30,"ready_by":"2026-04-15T07:00:00Z","ready_by_local_time":"08:00:00",` +
			`"may_charge_peak":false,"charging_mode":"maximise_charging_time"},"received_at":"`; !strings.HasPrefix(r.body, want) {
			t.Errorf("intent: %d %s", r.StatusCode, r.body)
		}

		for _, id := range []string{"01890000-0000-7000-8000-000000000000", "x"} {
			want := map[bool]int{true: 404, false: 422}[id != "x"]
			for _, path := range []string{"/event/plug-in", "/event/plug-out", "/event/charge-now-deleted"} {
				h.want("POST", "/entities/asset/"+id+path, `{}`, want, "")
			}
			h.want("GET", "/entities/asset/"+id+"/intent", "", want, "")
		}

		// Another organisation's asset answers as one that never was.
		_, other := h.newOrg("Other", "other")
		gone := h.ask("POST", "/entities/asset/01890000-0000-7000-8000-000000000000/event/plug-in", "", "Authorization: Bearer "+other)
		theirs := h.ask("POST", "/entities/asset/"+asset+"/event/plug-in", "", "Authorization: Bearer "+other)
		if fmt.Sprint(gone.StatusCode, gone.body) != fmt.Sprint(theirs.StatusCode, theirs.body) || gone.StatusCode != 404 {
			t.Errorf("absent: %d %s; another's: %d %s", gone.StatusCode, gone.body, theirs.StatusCode, theirs.body)
		}
	})
}
