package console_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"flexd/internal/flex"
)

// assetPages follows a list of assets from page to page, and returns its rows.
func (d *service) assetPages(path string) (rows []map[string]any) {
	d.Helper()
	for path != "" {
		var page struct {
			Rows []map[string]any `json:"rows"`
			Next string           `json:"next"`
		}
		a := d.do("GET", path, nil, asJSON)
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.status != 200 {
			d.Fatal(a.status, a.body, err)
		}

		rows, path = append(rows, page.Rows...), page.Next
	}
	return rows
}

// In each order, pages and file have each asset once, even if many are equal in what they are
// sorted by.
func TestAssets_Order(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		d.many(s.sites[0], 0, 120)
		s.Exec(`UPDATE asset SET model = CASE WHEN external_id < '5' THEN 'Zap: B' ELSE 'zap, a' END, power_w = CASE WHEN external_id LIKE '%7' THEN NULL ELSE 7400 END WHERE external_id NOT LIKE 'CP%'`)
		all := d.assetPages("/console/assets")
		columns := map[string]string{"asset": "external_id", "type": "type", "model": "model", "firmware": "firmware", "power": "power_kw", "plugged_in": "plugged_in_at", "ready_by": "ready_by", "organisation": "organisation"}

		for by, column := range columns {
			for _, sort := range []string{by, "-" + by} {
				rows := d.assetPages("/console/assets?sort=" + sort)
				key := func(row map[string]any) string {
					if v, ok := row[column].(float64); ok {
						return fmt.Sprintf("%09.3f", v)
					}
					if row[column] == nil {
						return ""
					}
					return strings.ToLower(row[column].(string))
				}

				ids := map[any]bool{}
				for i, row := range rows {
					ids[row["asset_id"]] = true
					if i == 0 {
						continue
					}
					if a, b := key(rows[i-1]), key(row); a != b && a < b != (sort == by) {
						t.Errorf("%s: %q before %q", sort, a, b)
					}
				}

				if len(rows) != len(all) || len(ids) != len(all) {
					t.Errorf("%s: %d rows of %d assets, there are %d", sort, len(rows), len(ids), len(all))
				}

				lines := strings.Split(strings.TrimSpace(d.page("/console/assets.csv?sort="+sort)), "\n")[1:]
				if len(lines) != len(rows) {
					t.Fatalf("%s: the file has %d rows of %d", sort, len(lines), len(rows))
				}
				for i, row := range rows {
					if !strings.HasPrefix(lines[i], row["asset_id"].(string)) {
						t.Errorf("%s: row %d of the file is %s, of the pages %s", sort, i, lines[i], row["asset_id"])
					}
				}
			}
		}

		for query, says := range map[string]string{
			"sort=colour": "is not sorted by", "cause=rust": "short_of_off_peak", "sort=power&before=" + s.assets[0].String() + ":many": "is no number",
			"colour=red": "cause, sort",
		} {
			if a := d.do("GET", "/console/assets?"+query, nil); a.status != 422 || !strings.Contains(a.body, says) {
				t.Errorf("%s: %d", query, a.status)
			}
		}
	})
}

// The list of a cause has as many assets as the exception counts.
func TestAssets_Cause(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		for _, refused := range []bool{true, false, true} {
			battery := d.Asset(d.Site(flex.FullScheduleMethod), flex.Battery, 5000)
			d.Exec(`INSERT INTO battery_plan (asset_id, org_id, from_at, modes, planned_at, changed_at, stored_at, stored_wh, guess_at, guess, seen_at, refused)
				VALUES ($1, $2, 0, '', 0, 0, 0, 0, 0, '', 0, $3)`, battery.Bytes(), d.Org.Bytes(), refused)
		}

		for _, kind := range []flex.AssetType{flex.Charger, flex.Battery} {
			asset := d.Asset(d.Site(flex.FullScheduleMethod), kind, 7400)
			d.Exec(`UPDATE asset SET excluded_at = 1 WHERE id = $1`, asset.Bytes())
		}

		counted := map[string]int{}
		found, _, err := d.server.Operations.Exceptions(t.Context(), flex.OrgID{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			counted[string(e.Kind)] = e.Count
		}
		counted["short"] = counted["short_of_time"] + counted["short_of_off_peak"] + counted["short_of_headroom"]
		if counted["short"] != 1 || counted["unplanned"] != 1 || counted["waiting"] != 12 || counted["plan_refused"] != 2 || counted["excluded"] != 2 {
			t.Fatal(counted)
		}

		for _, cause := range []string{"refused", "dispatch_refused", "waiting", "offline", "short", "short_of_time", "short_of_off_peak", "short_of_headroom",
			"not_released", "plan_refused", "unplanned", "excluded", "tank_cold", "room_cold", "site_cut_short", "readings_missing", "charge_missing"} {
			for _, more := range []string{"", "&sort=-power", "&org=" + d.Org.String()} {
				if n := len(d.assetPages("/console/assets?cause=" + cause + more)); n != counted[cause] {
					t.Errorf("%s%s: %d assets, the exception counts %d", cause, more, n, counted[cause])
				}
			}
			if n := strings.Count(d.page("/console/assets.csv?cause="+cause), "\n") - 1; n != counted[cause] {
				t.Errorf("%s: %d rows of the file", cause, n)
			}
		}

		short := d.assetPages("/console/assets?cause=short")
		if short[0]["external_id"] != "CP-2058" {
			t.Error(short)
		}
		d.wants(d.page("/console/fleet"), `href="/console/assets?cause=short"`, `href="/console/assets?cause=unplanned"`)
		form := url.Values{"action": {"replan"}, "all": {"on"}, "cause": {"short"}}
		page := d.do("POST", "/console/assets/selection/preview", form).body
		if !strings.Contains(page, s.assets[shortfall].String()) || slices.ContainsFunc(s.assets[others:], func(id flex.AssetID) bool { return strings.Contains(page, id.String()) }) {
			t.Error("the selection is not the list's")
		}
	})
}
