package api_test

import (
	"slices"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/operations"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/wire"
)

// TestExceptions_Kinds holds the interface's words against the service's.
func TestExceptions_Kinds(t *testing.T) {
	var kinds []string
	for _, k := range operations.Kinds {
		kinds = append(kinds, string(k))
	}

	if want := wire.Enum("ExceptionKind"); !slices.Equal(kinds, want) {
		t.Errorf("the service has %v, the interface %v", kinds, want)
	}
}

// TestExceptions lists what is wrong of the caller's organisation, and nothing of another's.
func TestExceptions(t *testing.T) {
	h := onSQLite(t)
	h.want("GET", "/operations/exceptions", "", 200, `{"exceptions":[]}`)
}

// A halt of one organisation is not listed to another. One that was made a moment ago is answered too.
func TestExceptions_Another(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.want("GET", "/operations/exceptions", "", 200, `{"exceptions":[]}`)

		other, token := h.newOrg("Other", "other")
		theirs := "Authorization: Bearer " + token
		h.want("GET", "/operations/exceptions", "", 200, `{"exceptions":[]}`, theirs)

		err := db.WriteAll(t.Context(), func(all *store.All) error {
			return all.Halt(t.Context(), store.Halt{
				Scope:  store.HaltScope{Kind: store.HaltOrg, Org: other.ID},
				Who:    "ada",
				Reason: "a fault of theirs",
			})
		})
		if err != nil {
			t.Fatal(err)
		}

		h.want("GET", "/operations/exceptions", "", 200, `{"exceptions":[]}`)
		if r := h.ask("GET", "/operations/exceptions", "", theirs); !strings.Contains(r.body, "a fault of theirs") {
			t.Errorf("their own halt: %s", r.body)
		}
	})
}

// TestAlerts lists the caller's alerts by pages, and none of another organisation's, nor one that
// has not lasted long enough to fire.
func TestAlerts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		other, _ := h.newOrg("Other", "other")

		err := db.WriteAll(t.Context(), func(all *store.All) error {
			for _, a := range []flex.Alert{
				{Kind: "refused", Org: h.org.ID, Level: "critical", Count: 1, Title: "first"},
				{Kind: "waiting", Org: h.org.ID, Level: "warning", Count: 2, Title: "second"},
				{Kind: "refused", Org: other.ID, Level: "critical", Count: 3, Title: "another's"},
				{Kind: "short", Org: h.org.ID, Level: "warning", Count: 4, Title: "too new"},
			} {
				noted, err := all.NoteAlert(t.Context(), a)
				if err != nil {
					return err
				}

				if a.Kind == "short" {
					continue
				}
				if _, err := all.FireAlert(t.Context(), noted); err != nil {
					return err
				}
			}

			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		page := h.want("GET", "/operations/alerts?firing=true&limit=1", "", 200, "").body
		if text(t, page, "alerts", 0, "title") != "second" || text(t, page, "alerts", 0, "fired_at") == "" {
			t.Errorf("the first page is %s", page)
		}
		page = h.want("GET", "/operations/alerts?firing=true&limit=1&before="+text(t, page, "next"), "", 200, "").body
		if text(t, page, "alerts", 0, "title") != "first" || strings.Contains(page, "next") {
			t.Errorf("the last page is %s", page)
		}

		all := h.want("GET", "/operations/alerts", "", 200, "").body
		if strings.Count(all, `"title"`) != 2 || strings.Contains(all, "resolved_at") {
			t.Errorf("all of them are %s", all)
		}
		h.want("GET", "/operations/alerts?limit=0", "", 422, "")
		h.want("GET", "/operations/alerts?before=soon", "", 422, "")
	})
}

// TestViews answers what the console shows of the caller's fleet, of a site and of an asset, and
// nothing of another organisation's.
func TestViews(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		asset := h.charger()
		h.want("POST", "/entities/asset/"+asset+"/event/plug-in", `{"tariff":{"off_peak_times":"00:00-05:30","timezone":"Europe/London"}}`, 200, "null")
		site := text(t, h.want("GET", "/entities/asset/"+asset, "", 200, "").body, "site_id")

		fleet := h.want("GET", "/operations/fleet", "", 200, "").body
		if text(t, fleet, "plugged_in") != "1" || len(get(t, fleet, "half_hours").([]any)) != 48 {
			t.Errorf("the fleet is %s", fleet)
		}

		shown := h.want("GET", "/operations/asset/"+asset, "", 200, "").body
		if text(t, shown, "why", "summary") == "" || text(t, shown, "schedules", 0, "generation") != "1" || strings.Contains(shown, `"battery_note"`) {
			t.Errorf("the asset is %s", shown)
		}

		shown = h.want("GET", "/operations/site/"+site, "", 200, "").body
		if text(t, shown, "assets", 0, "asset_id") != asset {
			t.Errorf("the site is %s", shown)
		}

		h.want("GET", "/operations/asset/"+asset+"?from=2026-01-02&to=2026-01-01", "", 400, "")
		h.want("GET", "/operations/asset/"+asset+"?from=soon", "", 422, "")
		h.want("GET", "/operations/site/here", "", 422, "")

		_, other := h.newOrg("Other", "other")
		theirs := "Authorization: Bearer " + other
		h.want("GET", "/operations/asset/"+asset, "", 404, `{"detail":"asset not found or not authorized"}`, theirs)
		h.want("GET", "/operations/site/"+site, "", 404, `{"detail":"site not found or not authorized"}`, theirs)
		if fleet := h.want("GET", "/operations/fleet", "", 200, "", theirs).body; text(t, fleet, "assets") != "0" {
			t.Errorf("another organisation's fleet is %s", fleet)
		}
	})
}
