package access_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/flex"
)

func TestRedact(t *testing.T) {
	for body, want := range map[string]string{
		`{"email": "jo@home.example", "power_kw": 7.4, "intent": {"charging_mode": "minimise_charging_time", "name": "Jo"}}`: `{"email":"[redacted]","intent":{"charging_mode":"minimise_charging_time","name":"[redacted]"},"power_kw":7.4}`,
		`[{"asset_id": "a"}, "b", null, true]`:                                                             `[{"asset_id":"a"},"[redacted]",null,true]`,
		`{"model": "` + strings.Repeat("x", 65) + `"}`:                                                     `{"model":"[redacted]"}`,
		`{"phone": 447700900123, "mpan": 1099000010005, "power_w": 7400, "value": -999999, "n": -1000000}`: `{"mpan":"[redacted]","n":"[redacted]","phone":"[redacted]","power_w":7400,"value":-999999}`,
		`not json`: ``,
		``:         ``,
		`{"a": "` + strings.Repeat("x", 4<<10) + `"}`:                ``,
		strings.Repeat("[", 18) + `"deep"` + strings.Repeat("]", 18): strings.Repeat("[", 17) + `"…"` + strings.Repeat("]", 17),
	} {
		if got := access.Redact([]byte(body)); got != want {
			t.Errorf("%.80s: %s, want %s", body, got, want)
		}
	}
}

func TestRecentRequests(t *testing.T) {
	d := &access.Service{}
	org, at := flex.OrgID{1}, time.Unix(1_000_000, 0)
	for i := range access.RequestsMax + 30 {
		d.RecordRequest(org, access.LoggedRequest{At: at.Add(time.Duration(i) * time.Second), ID: fmt.Sprint(i)}, nil)
	}

	got := d.RecentRequests(org)
	if len(got) != access.RequestsMax || got[0].ID != "129" || got[len(got)-1].ID != "30" {
		t.Errorf("%d requests, from %s to %s", len(got), got[0].ID, got[len(got)-1].ID)
	}

	for range 50 { // in one second
		d.RecordRequest(flex.OrgID{2}, access.LoggedRequest{At: at}, nil)
	}

	if n := len(d.RecentRequests(flex.OrgID{2})); n != 20 {
		t.Errorf("%d requests of one second are remembered", n)
	}

	if len(d.RecentRequests(flex.OrgID{3})) != 0 {
		t.Error("requests of nobody")
	}
}
