package api_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestFeederLimits gives limits as a list and as CSV, for two feeders of two organisations, and takes them away.
func TestFeederLimits(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		var clock atomic.Int64
		clock.Store(time.Now().UnixMicro())
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return time.UnixMicro(clock.Load()) }})
		h := open(t, db)
		h.stock()

		mine, lone := h.newSite(halfHourly, "SW1A 2AA", ""), h.newSite(notListed, "SW1A 2AA", "")
		const feeder = "feeder 7"
		h.want("PUT", "/caps", fmt.Sprintf(`{"groups":[{"name":%q,"site_ids":[%q]},{"name":"other","site_ids":[]}]}`, feeder, mine), 200, "")
		from, to := db.Now().Truncate(time.Minute).Add(-time.Hour), db.Now().Truncate(time.Minute).Add(time.Hour)
		limit := func(group, direction string, kw float64) string {
			return fmt.Sprintf(`{"group":%q,"direction":%q,"start_timestamp":%q,"end_timestamp":%q,"limit_kw":%g}`,
				group, direction, from.Format(time.RFC3339), to.Format(time.RFC3339), kw)
		}

		row := func(group, direction, kw string) string {
			return fmt.Sprintf("%s,%s,%s,%s,%s\n", group, from.Format(time.RFC3339), to.Format(time.RFC3339), kw, direction)
		}
		const head = `group,start_timestamp,end_timestamp,limit_kw,direction` + "\n"
		asCSV := func(rows string) string { return fmt.Sprintf(`{"csv":%q}`, head+rows) }

		kept := func(step, q string, want ...string) {
			h.Helper()
			r := h.want("GET", "/grid/limits"+q, "", 200, "")
			var got []string
			for _, l := range get(t, r.body, "limits").([]any) {
				l := l.(map[string]any)
				got = append(got, fmt.Sprint(l["group"], " ", l["direction"], " ", l["limit_kw"], " ", l["source"], " ", l["is_lowest"], " ", l["num_sites"]))
			}

			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", step, got, want)
			}
		}

		kept("nothing", "")
		h.want("PUT", "/grid/limits", `{"limits":[`+limit(feeder, "export", 5)+`,`+limit(feeder, "import", 20)+`,`+limit("other", "import", 7)+`]}`, 200, "")
		kept("a list", "", "feeder 7 export 5 import true 1", "feeder 7 import 20 import true 1", "other import 7 import true 0")
		h.want("PUT", "/grid/limits", asCSV(row(feeder, "", "30")+row(feeder, "", "25.5")), 200, "")
		kept("CSV of one direction", "?group="+"feeder%207", "feeder 7 export 5 import true 1", "feeder 7 import 25.5 import true 1", "feeder 7 import 30 import false 1")
		kept("of a site", "?site_id="+mine, "feeder 7 export 5 import true 1", "feeder 7 import 25.5 import true 1", "feeder 7 import 30 import false 1")
		kept("of a site in no group", "?site_id="+lone)

		for body, status := range map[string]int{
			`{}`:                          400,
			`{"csv":"group\n"}`:           400,
			asCSV(row(feeder, "up", "1")): 400,
			asCSV(row(feeder, "", "x")):   400,
			`{"csv":"x","limits":[` + limit(feeder, "import", 1) + `]}`:                             400,
			`{"limits":[` + limit(feeder, "up", 1) + `]}`:                                           422,
			`{"limits":[` + limit(feeder, "import", -1) + `]}`:                                      422,
			`{"limits":[` + limit(feeder, "import", 1) + `,` + limit("nowhere", "import", 1) + `]}`: 404,
		} {
			h.want("PUT", "/grid/limits", body, status, "")
		}
		h.want("PUT", "/grid/limits", strings.Repeat(" ", 2<<20+1), 413, "", "Content-Type: application/json")
		h.want("GET", "/grid/limits?site_id="+nobodys, "", 404, "")
		h.want("GET", "/grid/limits?site_id=x", "", 422, "")
		kept("all or nothing", "?group=other", "other import 7 import true 0")

		link := `{"group":"feeder 7","export_fallback_kw":0,"silence_seconds":60}`
		h.want("PUT", "/grid/limit-links", link, 200, "")
		h.want("PUT", "/grid/limit-links", `{"group":"feeder 7","silence_seconds":60}`, 400, "")
		h.want("PUT", "/grid/limit-links", `{"group":"feeder 7","fallback_kw":1,"silence_seconds":9}`, 422, "")
		h.want("PUT", "/grid/limit-links", `{"group":"nowhere","fallback_kw":1,"silence_seconds":60}`, 404, "")
		clock.Add((61 * time.Second).Microseconds())
		if _, err := h.server.Control.WatchLinks(h.Context()); err != nil {
			t.Fatal(err)
		}

		kept("lost", "?group="+"feeder%207", "feeder 7 export 0 fallback true 1", "feeder 7 export 5 import false 1", "feeder 7 import 25.5 import true 1", "feeder 7 import 30 import false 1")
		h.want("DELETE", "/caps", "", 409, "")
		h.want("POST", "/grid/limit-links/heard", `{"group":"nowhere"}`, 404, "")
		h.want("POST", "/grid/limit-links/heard", `{"group":"feeder 7"}`, 204, "")
		h.want("DELETE", "/grid/limits?group=nowhere", "", 404, "")
		h.want("DELETE", "/grid/limits?group="+"feeder%207", "", 204, "")
		kept("cleared", "", "other import 7 import true 0")
		h.want("DELETE", "/grid/limit-links?group="+"feeder%207", "", 204, "")
		h.want("DELETE", "/grid/limit-links?group="+"feeder%207", "", 404, "")

		// Another organisation has a feeder of the same name, and sees and changes its own alone.
		own := h.token
		_, h.token = h.newOrg("Bolt", "bolt")
		kept("another's", "")
		h.want("PUT", "/grid/limits", `{"limits":[`+limit("other", "import", 1)+`]}`, 404, "")
		h.want("GET", "/grid/limits?site_id="+mine, "", 404, "")

		h.token = own
		kept("mine stays", "", "other import 7 import true 0")

		var acts []flex.AuditEntry
		err := db.ReadAll(t.Context(), func(all *store.All) (err error) {
			acts, err = all.Acts(t.Context(), store.ActFilter{Limit: 100})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"import limits", "clear limits", "set limit link", "end limit link"} {
			if !slices.ContainsFunc(acts, func(a flex.AuditEntry) bool { return a.Act == want && a.Who == "credential acme" && a.Org == h.org.ID }) {
				t.Errorf("%q is not in the audit log", want)
			}
		}
	})
}

// TestRanges: a range of days that is too long, or said in two ways, is refused as the document says.
func TestRanges(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		site := h.newSite(halfHourly, "SW1A 2AA", "")
		h.want("GET", "/data/gaps?from=2026-01-01&to=2026-12-31&site_id="+site, "", 400, "")
		h.want("GET", "/rewards/"+site+"/statement?from=2026-01-01&to=2026-01-31&month=2026-01", "", 400, "")
	})
}
