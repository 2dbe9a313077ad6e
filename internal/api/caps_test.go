package api_test

import (
	"fmt"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestCaps_Parents puts a feeder into a substation, reads that, has limits of the substation shown for the feeder's site, and
// refuses what cannot lie in what.
func TestCaps_Parents(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := open(t, storetest.Open(t, url, store.Options{Environment: flex.Sandbox}))
		h.stock()
		site := h.newSite(halfHourly, "SW1A 2AA", "")
		put := func(feederIn, stationIn string) string {
			body := fmt.Sprintf(`{"groups":[{"name":"feeder","parent":%q,"cap_kw":5,"site_ids":[%q]},{"name":"station","parent":%q,"site_ids":[]}]}`, feederIn, site, stationIn)
			return strings.ReplaceAll(body, `"parent":"",`, "")
		}

		h.want("PUT", "/caps", put("station", ""), 200, "")
		r := h.want("GET", "/caps", "", 200, "")
		groups := get(t, r.body, "groups").([]any)
		feeder, station := groups[0].(map[string]any), groups[1].(map[string]any)
		if _, given := station["parent"]; feeder["parent"] != "station" || given {
			t.Errorf("%v", groups)
		}

		for _, body := range []string{put("nowhere", ""), put("station", "feeder"), put("feeder", "")} {
			if r := h.want("PUT", "/caps", body, 400, ""); !strings.Contains(r.body, "group") {
				t.Errorf("%s: %s", body, r.body)
			}
		}
		h.want("PUT", "/caps", `{"groups":[{"name":"feeder","parent":"","site_ids":[]}]}`, 422, "")

		h.want("PUT", "/grid/limits", `{"csv":"group,start_timestamp,end_timestamp,limit_kw\nstation,2020-01-15T18:00:00Z,2100-01-15T18:00:00Z,7\n"}`, 200, "")
		r = h.want("GET", "/grid/limits?site_id="+site, "", 200, "")
		limits := get(t, r.body, "limits").([]any)
		if len(limits) != 1 || limits[0].(map[string]any)["group"] != "station" || limits[0].(map[string]any)["num_sites"] != 1.0 {
			t.Errorf("%v", limits)
		}

		r = h.want("GET", "/grid/limits?group=feeder", "", 200, "")
		if limits := get(t, r.body, "limits").([]any); len(limits) != 1 || limits[0].(map[string]any)["group"] != "station" {
			t.Errorf("what binds the feeder is %v", limits)
		}
		h.want("GET", "/grid/limits?group=feede", "", 404, "")

		h.want("PUT", "/caps", put("", ""), 200, "")
		r = h.want("GET", "/grid/limits?site_id="+site, "", 200, "")
		if limits := get(t, r.body, "limits").([]any); len(limits) != 0 {
			t.Errorf("a site that lies in no substation any more is limited by %v", limits)
		}
	})
}
