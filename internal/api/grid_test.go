package api_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/wire"
)

// TestEnvelope shows the envelope as JSON and as CSV, and refuses what there is not.
func TestEnvelope(t *testing.T) {
	h := onSQLite(t)
	r := h.ask("GET", "/grid/envelope", "")
	if r.StatusCode != 200 || strings.Count(r.body, `"least_kwh":0`) != 48 || strings.Contains(r.body, "windows") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}

	r = h.ask("GET", "/grid/envelope?windows=true&gsp_group=_C", "")
	if r.StatusCode != 200 || strings.Count(r.body, `"least_kwh":0`) != 48+1176 || !strings.Contains(r.body, `"gsp_group":"_C"`) {
		t.Errorf("%d %.300s", r.StatusCode, r.body)
	}

	r = h.ask("GET", "/grid/envelope?format=csv", "")
	head, _, _ := strings.Cut(r.body, "\n")
	if strings.TrimSpace(head) != "start_timestamp,end_timestamp,planned_kwh,least_kwh,most_kwh" || strings.Count(r.body, "\n") != 49 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}

	if got := r.Header.Get("Content-Type"); got != "text/csv; charset=utf-8" {
		t.Errorf("the media type is %q", got)
	}

	h.want("GET", "/grid/envelope?group=feeder", "", 404, "")
	h.want("GET", "/grid/envelope?format=xml", "", 422, "")
	h.want("GET", "/grid/envelope?windows=perhaps", "", 422, "")
}

// TestProfile asks for profiles that can be drawn and that cannot, and for what there is not.
func TestProfile(t *testing.T) {
	h := onSQLite(t)
	at := time.Now().Add(3 * time.Hour).UTC().Truncate(flex.HalfHour)
	body := func(at time.Time, kwh string) string {
		return `{"start_timestamp":"` + at.Format(time.RFC3339) + `","energy_kwh":` + kwh + `}`
	}

	yes := read[wire.ProfileResponse](t, h.ask("POST", "/grid/profile?parts=true", `{"half_hours":[`+body(at, "0")+`]}`))
	if !yes.Follows || yes.Certificate != nil || len(yes.HalfHours) != 1 || !yes.HalfHours[0].StartTimestamp.Time.Equal(at) {
		t.Errorf("nothing of nobody: %+v", yes)
	}

	no := read[wire.ProfileResponse](t, h.ask("POST", "/grid/profile", `{"half_hours":[`+body(at, "0")+`,`+body(at.Add(flex.HalfHour), "2.5")+`]}`))
	if c := no.Certificate; no.Follows || c == nil || !c.TooMuch || c.AskedKWh != 2.5 || c.BoundKWh != 0 {
		t.Errorf("2.5 kWh of nobody: %+v", no)
	}

	for wrong, status := range map[string]int{
		`{"half_hours":[` + body(at, "0") + `,` + body(at, "0") + `]}`: 400,
		`{"half_hours":[` + body(at.Add(time.Minute), "0") + `]}`:      400,
		`{"half_hours":[` + body(at.Add(-4*time.Hour), "0") + `]}`:     400,
		`{"half_hours":[` + body(at.Add(48*time.Hour), "0") + `]}`:     400,
		`{"half_hours":[` + body(at, "-1") + `]}`:                      422,
		`{"half_hours":[]}`: 422,
		`{"group":"feeder","half_hours":[` + body(at, "0") + `]}`: 404,
		`{"half_hours":[` + body(at, "0") + `],"gsp_group":7}`:    422,
	} {
		h.want("POST", "/grid/profile", wrong, status, "")
	}
}
