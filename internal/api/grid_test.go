package api_test

import (
	"strings"
	"testing"
)

// TestEnvelope shows the envelope as JSON and as CSV, and refuses what there is not.
func TestEnvelope(t *testing.T) {
	h := onSQLite(t)
	r := h.ask("GET", "/grid/envelope", "")
	if r.StatusCode != 200 || strings.Count(string(r.body), `"least_kwh":0`) != 48 || strings.Contains(string(r.body), "windows") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	r = h.ask("GET", "/grid/envelope?windows=true&gsp_group=_C", "")
	if r.StatusCode != 200 || strings.Count(string(r.body), `"least_kwh":0`) != 48+1176 || !strings.Contains(string(r.body), `"gsp_group":"_C"`) {
		t.Errorf("%d %.300s", r.StatusCode, r.body)
	}
	r = h.ask("GET", "/grid/envelope?format=csv", "")
	head, _, _ := strings.Cut(string(r.body), "\n")
	if strings.TrimSpace(head) != "start_timestamp,end_timestamp,planned_kwh,least_kwh,most_kwh" || strings.Count(string(r.body), "\n") != 49 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if got := r.Header.Get("Content-Type"); got != "text/csv; charset=utf-8" {
		t.Errorf("the media type is %q", got)
	}
	h.want("GET", "/grid/envelope?group=feeder", "", 404, "")
	h.want("GET", "/grid/envelope?format=xml", "", 422, "")
	h.want("GET", "/grid/envelope?windows=perhaps", "", 422, "")
}
