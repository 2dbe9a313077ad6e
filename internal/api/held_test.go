package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestHeldReadings lists what is held back by each filter, page by page, and releases one: it
// counts, once, and the audit log says who did so and why.
func TestHeldReadings(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		asset := h.charger()
		reading := func(label, from, to string, value float64) string {
			return fmt.Sprintf(`{"asset_id":%q,"start_timestamp":%q,"end_timestamp":%q,"value":%v,"label":%q}`, asset, from, to, value, label)
		}
		h.want("GET", "/data/readings/held", "", 200, `{"readings":[],"num_total":0}`)
		now := db.Now().Truncate(flex.HalfHour)
		at := func(n int) string { return now.Add(time.Duration(n-10) * flex.HalfHour).UTC().Format(time.RFC3339) }
		h.want("POST", "/data/readings", `{"readings":[`+strings.Join([]string{
			reading("charger_consumption_energy_kwh", at(0), at(1), 510),
			reading("charger_consumption_energy_kwh", at(1), at(2), 3.7),
			reading("charger_consumption_energy_kwh", at(2), at(3), 4.1),
			reading("boundary_import_kw", at(3), at(4), 99),
		}, ",")+`]}`, 200, "")

		count := func(query string, want int) string {
			t.Helper()
			r := h.want("GET", "/data/readings/held"+query, "", 200, "")
			if n := get(t, r.body, "num_total"); n != float64(want) {
				t.Errorf("%q: %v, want %d", query, n, want)
			}
			return r.body
		}

		count("?state=waiting", 3)
		count("?label=boundary_import_kw", 1)
		count("?from="+at(2), 2)
		count("?to="+at(2), 1)
		count("?asset_id="+nobodys, 0)
		h.want("GET", "/data/readings/held?state=lost", "", 422, "")

		// Page by page each of them comes once.
		seen, before := map[string]bool{}, ""
		for range 3 {
			body := count("?limit=1"+before, 3)
			seen[text(t, body, "readings", 0, "id")] = true
			if len(seen) < 3 {
				before = "&before=" + text(t, body, "next")
			} else if strings.Contains(body, `"next"`) {
				t.Errorf("the last page has another: %s", body)
			}
		}

		if len(seen) != 3 {
			t.Errorf("%d readings in three pages", len(seen))
		}

		id := text(t, count("?to="+at(1), 1), "readings", 0, "id")
		release := "/data/readings/held/" + id + "/release"
		h.want("POST", release, `{}`, 422, "")
		h.want("POST", release, `{"reason":""}`, 422, "")
		h.want("POST", release, `{"reason":"`+strings.Repeat("x", 501)+`"}`, 422, "")
		h.want("POST", release, `{"reason":"read on the spot","meter_replaced":true}`, 400, "")
		h.want("POST", "/data/readings/held/"+nobodys+"/release", `{"reason":"read on the spot"}`, 404, "")
		_, token := h.newOrg("Other", "other")
		h.want("POST", release, `{"reason":"not theirs"}`, 404, "", "Authorization: Bearer "+token)
		h.want("GET", "/data/readings/held", "", 200, `{"readings":[],"num_total":0}`, "Authorization: Bearer "+token)

		r := h.want("POST", release, `{"reason":"read on the spot"}`, 200, "")
		if get(t, r.body, "state") != "released" || get(t, r.body, "decided_at") == nil {
			t.Errorf("released: %s", r.body)
		}
		h.want("POST", release, `{"reason":"again"}`, 409, "")
		count("?state=waiting", 2)
		count("?state=released", 1)
		count("", 3)

		err := db.ReadAll(t.Context(), func(all *store.All) error {
			acts, err := all.Acts(t.Context(), store.ActFilter{Act: "release reading", Limit: 10})
			done := 0
			for _, a := range acts {
				if a.Outcome == flex.ActDone {
					done++
					if a.Who != "credential acme" || a.Detail != "read on the spot" || a.Subject != id {
						t.Errorf("audit: %+v", a)
					}
				}
			}

			if done != 1 {
				t.Errorf("%d of %d acts were done, want 1", done, len(acts))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
