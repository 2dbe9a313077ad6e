package api_test

import (
	"strings"
	"testing"
)

// TestSkipNight has a car charge nothing tonight, and takes that back. What is another
// organisation's is answered as what never was, and a plan that is over is not skipped.
func TestSkipNight(t *testing.T) {
	h := settleIn(t)
	asset := "/entities/asset/" + h.place()["ASSET"]
	household := func(when string, want bool) {
		t.Helper()
		r := h.want("GET", asset+"/schedule/explanation", "", 200, "")
		if got := strings.Contains(r.body, `"household"`); got != want {
			t.Errorf("%s the household is away: %v, not %v: %s", when, got, want, r.body)
		}
	}

	household("before", false)
	h.want("POST", asset+"/event/skip-night", "", 200, "null")
	household("skipped", true)

	_, other := h.newOrg("Other", "other")
	for _, event := range []string{"/event/skip-night", "/event/skip-night-deleted"} {
		nobodysAsset := h.ask("POST", "/entities/asset/"+nobodys+event, "", "Authorization: Bearer "+other)
		theirs := h.ask("POST", asset+event, "", "Authorization: Bearer "+other)
		if theirs.StatusCode != 404 || theirs.body != nobodysAsset.body {
			t.Errorf("%s: %d %s, and of nobody's %s", event, theirs.StatusCode, theirs.body, nobodysAsset.body)
		}
	}
	household("still", true)

	for range 2 {
		h.want("POST", asset+"/event/skip-night-deleted", "", 200, "null")
		household("again", false)
	}

	h.want("POST", "/sandbox/clock", `{"advance":"P2D"}`, 200, "")
	h.want("POST", asset+"/event/skip-night", "", 400, "")
}
