package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"flexd/internal/store"
	"flexd/internal/wire"
)

func read[T any](t *testing.T, r reply) (v T) {
	t.Helper()
	if r.StatusCode != 200 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		t.Fatalf("%s: %v", r.body, err)
	}
	return v
}

// atSix turns the sandbox's clock to the next 18:00 UTC, so that a night lies ahead whenever the
// tests run.
func atSix(h *fixture) {
	now := time.Now().UTC()
	six := time.Date(now.Year(), now.Month(), now.Day(), 18, 0, 0, 0, time.UTC)
	if six.Before(now) {
		six = six.AddDate(0, 0, 1)
	}

	err := h.server.Control.DB.Write(h.T.Context(), h.org.ID, func(tx *store.Tx) error { return tx.SetClock(h.T.Context(), six.Sub(now)) })
	if err != nil {
		h.T.Fatal(err)
	}
}

func TestSchedules(t *testing.T) {
	withCharger(t, func(h *fixture, asset string) {
		t := h.T
		atSix(h)
		at := "/entities/asset/" + asset
		h.want("GET", at+"/schedule", "", 404, `{"detail":"asset `+asset+` has no schedule: nothing is plugged in"}`)
		h.want("POST", at+"/event/plug-in", `{"intent":{"energy_required_kwh":10,"ready_by":"2026-04-15T07:00:00Z","ready_by_local_time":"07:00:00",
			"charging_mode":"minimise_charging_time"},"tariff":{"off_peak_times":"00:00-05:30","timezone":"Europe/London"},"vehicle":{"charging_rate_kw":3.6}}`, 200, "null")

		s := read[wire.ScheduleResponse](t, h.ask("GET", at+"/schedule", ""))
		if s.Generation != 1 || s.AcceptedGeneration != nil || len(s.Periods) == 0 || s.EventID.IsZero() || s.SessionID.IsZero() ||
			!s.Periods[len(s.Periods)-1].EndTimestamp.Equal(s.ReadyBy.Time) {
			t.Errorf("%+v", s)
		}
		x := read[wire.ScheduleExplanation](t, h.ask("GET", at+"/schedule/explanation", ""))
		if !strings.HasPrefix(x.Summary, "10 kWh are needed by 07:00") || len(x.Inputs) < 6 || len(x.Periods) == 0 || x.Plan.EnergyKWh < 10 || x.BindingLimits == nil {
			t.Errorf("%+v", x)
		}

		r := h.want("GET", at+"/schedule/explanation", "", 200, "", "Accept: text/plain")
		if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/plain") || !strings.HasPrefix(r.body, "Schedule 1 of asset "+asset) {
			t.Errorf("%s\n%s", r.Header.Get("Content-Type"), r.body)
		}
		list := read[wire.SessionResponsePage](t, h.ask("GET", at+"/sessions", ""))
		if list.TotalNumSessions != 1 || list.PageNumber != 1 || list.Sessions[0].SessionID != s.SessionID || *list.Sessions[0].ChargingRateKW != 3.6 || !list.Sessions[0].PluggedOutAt.IsZero() {
			t.Errorf("%+v", list)
		}
		w := read[wire.WhatIfResponse](t, h.ask("POST", "/what-if", `{"asset_ids":["`+asset+`","01890000-0000-7000-8000-000000000000"],"intent":{"energy_required_kwh":5}}`))
		if len(w.Results) != 2 || *w.Results[0].EnergyDifferenceKWh > -4.9 || w.Results[1].Error != "asset not found or not authorized" || w.Results[1].Current != nil {
			t.Errorf("%+v", w)
		}

		h.want("POST", "/what-if", `{"asset_ids":["`+asset+`"],"tariff":{"off_peak_times":"x","timezone":"UTC"}}`, 400, "")
		h.want("POST", "/what-if", `{"asset_ids":[]}`, 422, "")
		const half, another = `{"start_timestamp":"2026-01-15T22:00:00Z","price_gbp_per_mwh":-5}`, `{"start_timestamp":"2026-01-15T23:30:00+01:00","price_gbp_per_mwh":null}`
		for _, c := range []struct {
			prices string
			status int
		}{
			{half + "," + another, 200}, {half + "," + half, 400}, {strings.Replace(half, "22:00", "22:10", 1), 400},
		} {
			h.want("POST", "/what-if", `{"asset_ids":["`+asset+`"],"prices":[`+c.prices+`]}`, c.status, "")
		}

		known := read[wire.ChargingRateResponse](t, h.ask("GET", at+"/charging-rate", ""))
		if known.PlannedKW != 3.6 || known.Origin != "event" || known.Certainty != "none" || known.Sessions == nil {
			t.Errorf("%+v", known)
		}

		h.want("GET", at+"/schedule?as_of=2026-04-01T00:00:00Z", "", 404, `{"detail":"asset `+asset+` had no schedule at 2026-04-01T00:00:00Z"}`)
		h.want("GET", at+"/schedule?as_of=2126-04-01T00:00:00Z", "", 400, "")
		h.want("GET", at+"/schedule?as_of=yesterday", "", 422, "")
		h.want("POST", at+"/event/plug-out", ``, 200, "null")
		h.want("GET", at+"/schedule", "", 404, "")
		_, other := h.newOrg("Other", "other")
		for _, path := range []string{"/schedule", "/schedule/explanation", "/schedule?as_of=2026-04-01T00:00:00Z", "/charging-rate", "/sessions"} {
			h.want("GET", at+path, "", 404, `{"detail":"asset not found or not authorized"}`, "Authorization: Bearer "+other)
		}
	})
}
