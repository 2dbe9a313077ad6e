package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/wire"
)

// selected asks for something of assets, and reads what became of each.
func (h *fixture) selected(path, more string, assets ...flex.AssetID) wire.SelectionResult {
	h.Helper()
	return read[wire.SelectionResult](h.T, h.want("POST", "/operations/assets/"+path, selectionBody(more, assets...), 200, ""))
}

func selectionBody(more string, assets ...flex.AssetID) string {
	ids, _ := json.Marshal(assets)
	return fmt.Sprintf(`{%s"asset_ids":%s}`, more, ids)
}

// What is done to a selection by API goes by the rules of the console's: shown first, each asset for itself, one's own
// alone, what cannot be undone confirmed, and all of it in the audit log.
func TestSelection(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox})
		h := open(t, db)
		seed := storetest.NewSeed(t, db, url)
		other := seed.Org
		seed = seed.As(h.org.ID)
		car, idle := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Charger, 7400), seed.Asset(
			seed.Site(flex.FullScheduleMethod),
			flex.Charger,
			7400,
		)
		stranger := seed.As(other)
		theirs := stranger.Asset(
			stranger.Site(flex.FullScheduleMethod),
			flex.Charger,
			7400,
		)
		h.want(
			"POST",
			"/entities/asset/"+car.String()+"/event/plug-in",
			`{"intent":{"energy_required_kwh":10,"ready_by":"2026-01-01T07:00:00Z"}}`,
			200,
			"",
		)

		// A dry run says what the same call does, and changes nothing.
		made := seed.Count(`SELECT COUNT(*) FROM schedule`)
		dry := h.selected(
			"act?dry_run=true",
			`"action":"replan",`,
			car,
			idle,
			theirs,
			car,
		)
		if dry.Done || dry.NumPossible != 1 || len(dry.Assets) != 3 || dry.Confirm != "" || seed.Count(`SELECT COUNT(*) FROM schedule`) != made {
			t.Errorf("a dry run: %+v", dry)
		}

		done := h.selected("act", `"action":"replan",`, car, idle, theirs)
		if !done.Done || done.NumPossible != 1 || done.Assets[0].Outcome == "" || done.Assets[1].Fault == "" || seed.Count(`SELECT COUNT(*) FROM schedule`) != made+1 {
			t.Errorf("planned anew: %+v", done)
		}
		if s := done.Assets[2]; s.Fault != "there is no asset of that id" || s.ExternalID != "" || s.Type != "" {
			t.Errorf("another organisation's asset: %+v", s)
		}

		for _, more := range []string{
			`"action":"resend",`, `"action":"charge-now","minutes":1440,`, `"action":"ready-by","ready_by_local_time":"06:30:00",`, `"action":"release",`,
			`"action":"exclude",`, `"action":"include",`,
		} {
			if r := h.selected("act", more, car, theirs); r.NumPossible != 1 || r.Assets[1].Fault == "" {
				t.Errorf("%s: %+v", more, r)
			}
		}

		for more, status := range map[string]int{
			`"action":"charge-now",`: 400, `"action":"charge-now","minutes":1441,`: 422, `"action":"ready-by",`: 400, `"action":"offboard",`: 422, `"action":"dance",`: 422, ``: 422,
		} {
			h.want("POST", "/operations/assets/act", selectionBody(more, car), status, "")
		}
		h.want(
			"POST",
			"/operations/assets/act",
			`{"action":"replan","asset_ids":[]}`,
			422,
			"",
		)
		h.want(
			"POST",
			"/operations/assets/act",
			selectionBody(`"action":"replan",`, make([]flex.AssetID, 501)...),
			422,
			"",
		)

		// It is confirmed by what its dry run says, and not without it.
		h.want(
			"POST",
			"/operations/assets/offboard",
			selectionBody("", car, idle),
			409,
			"",
		)
		dry = h.selected("offboard?dry_run=true", "", car, idle, theirs)
		if dry.Done || dry.NumPossible != 2 || dry.Confirm != "offboard 2" {
			t.Errorf("a dry run of offboard: %+v", dry)
		}

		h.want(
			"POST",
			"/operations/assets/offboard",
			selectionBody(`"confirm":"offboard 3",`, car, idle, theirs),
			409,
			"",
		)
		if done := h.selected("offboard", `"confirm":"offboard 2",`, car, idle, theirs); !done.Done || done.NumPossible != 2 || done.Confirm != "" {
			t.Errorf("offboard: %+v", done)
		}
		if seed.Count(`SELECT COUNT(*) FROM asset`) != 1 {
			t.Error("what was offboarded is there, or another organisation's is not")
		}
		h.audited(
			db,
			theirs.String()+": there is no asset of that id",
			"charge-now assets",
			"offboard assets",
			"exclude assets",
		)
	})
}

// A selection that is sent again under its key, as its process ended midway, is done to those that were not reached, though one that was is
// refused by now.
func TestSelection_Repeated(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox})
		h := open(t, db)
		seed := storetest.NewSeed(t, db, url).As(h.org.ID)
		first, second := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Charger, 7400), seed.Asset(
			seed.Site(flex.FullScheduleMethod),
			flex.Charger,
			7400,
		)
		const path, key = "/operations/assets/act", "Idempotency-Key: exclude"
		body := selectionBody(`"action":"exclude",`, first, second)
		h.want("POST", path, body, 200, "", key)

		// The process ended after the first of the two.
		h.selected("act", `"action":"include",`, second)
		seed.Exec(`UPDATE idempotency SET status = 0, answer = NULL, sealed = NULL, holder = 0, committed = 1`)

		again := read[wire.SelectionResult](t, h.want("POST", path, body, 200, "", key))
		if again.NumPossible != 1 || again.Assets[0].Fault != "it is excluded already" || again.Assets[1].Fault != "" {
			t.Errorf("the repeat: %+v", again)
		}
		if n := seed.Count(`SELECT COUNT(*) FROM asset WHERE excluded_at IS NOT NULL`); n != 2 {
			t.Errorf("%d of 2 assets are excluded", n)
		}
	})
}

// audited wants acts of the organisation's credential in the audit log, each with what became of an asset.
func (h *fixture) audited(db *store.DB, outcome string, names ...string) {
	h.Helper()
	err := db.ReadAll(h.Context(), func(all *store.All) error {
		acts, err := all.Acts(h.Context(), store.ActFilter{Limit: 100})
		for _, name := range names {
			found := false
			for _, a := range acts {
				found = found || a.Act == name && a.Who == "credential acme" && strings.Contains(fmt.Sprint(a), "; "+outcome)
			}
			if !found {
				h.Errorf("the audit log has no %q: %+v", name, acts)
			}
		}

		return err
	})
	if err != nil {
		h.Fatal(err)
	}
}
