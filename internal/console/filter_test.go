package console_test

import (
	"testing"
	"time"
)

// A filter with an impossible value gives status 422 on every list, as an unknown filter does,
// and as in the interface.
func TestFilters_Value(t *testing.T) {
	s := testScene(t)
	for _, path := range []string{
		"deliveries?status=five", "deliveries?state=lost", "deliveries?colour=red", "deliveries?endpoint=order", "deliveries.csv?endpoint=order", "readings?to=yesterday", "readings?days=0", "readings?days=32",
		"ahead?kind=sideways", "ahead?day=tomorrow", "prices?day=today", "assets?state=broken", "assets?sort=colour",
		"fleet?organisation=x", "fleet.json?organisation=x", "prices.csv?date=2026-01-14", "ahead.csv?date=2026-01-14", "limits.csv?feeder=a", "engine?asset=a",
		"alerts.json?kind=refused", "developer?name=x", "settlement/terms?name=x",
	} {
		if a := s.service.get("/console/" + path); a.status != 422 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}

// The list of pushes to an endpoint names that endpoint in its form, so that another filter
// does not lose it.
func TestFilters_Endpoint(t *testing.T) {
	s := testScene(t)
	for _, name := range []string{"schedule", "dispatch", "invitation"} {
		s.service.wants(s.service.page("/console/deliveries?endpoint="+name), "<option selected>"+name+"</option>")
	}
}

// The failures of the last 24 hours are counted by the real clock, as pushes are, even if the
// organisation's clock is days ahead.
func TestDeliveries_FailuresTurned(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		s.serve()
		if err := (turner{d}).Advance(t.Context(), d.Org, d.db.Now().Add(72*time.Hour)); err != nil {
			t.Fatal(err)
		}
		d.wants(d.page("/console/deliveries"), "Failures of the last 24 hours", `<a href="/console/deliveries?status=503">HTTP 503</a>`)
	})
}

// A slider accepts a need in tenths of a kWh. Otherwise the browser would round it to a step,
// and the question would be about another need.
func TestAsset_WhatIfSteps(t *testing.T) {
	s := testScene(t)
	s.service.wants(s.service.page("/console/assets/"+s.assets[plain].String()), `name="need_kwh" type="range" min="0" max="100" step="0.1"`)
}
