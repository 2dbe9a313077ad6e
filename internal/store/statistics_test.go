package store_test

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A statement on one site, asset or metering point reads what is stored of it, and not all that its
// organisation has: SQLite has the statistics to choose the index by.
func TestPlans_OfOneSite(t *testing.T) {
	db, err := sql.Open("sqlite", strings.TrimPrefix(storetest.SQLite(t), "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}

	defer db.Close()

	tests := map[string]struct {
		statement, index string
		statistics       bool // without them another index is taken
	}{
		"a session's settlement": {
			`UPDATE reckoning SET look_at = ?1 WHERE org_id = ?2 AND asset_id = ?3 AND to_at > ?4`,
			"reckoning_asset (asset_id=? AND to_at>?)",
			true,
		},
		"sessions that have just ended": {
			`SELECT session_id FROM reckoning r WHERE r.org_id = ?1 AND r.to_at > ?2 AND (r.look_at > ?2) IS TRUE`,
			"reckoning_time (org_id=? AND to_at>?)",
			false,
		},
		"sessions settled": {
			`SELECT MAX(from_at) FROM reckoning WHERE org_id = ?1 AND site_id = ?2 AND posted > 0`,
			"reckoning_posted (site_id=?)",
			true,
		},
		"a day of some meters": {
			`SELECT at, value FROM reading WHERE at / 86400000000 IN (?1, ?2) AND asset_id IN (?3, ?4) AND label = 12 AND label >= 10`,
			"reading_day (<expr>=? AND asset_id=? AND label=?)",
			false,
		},
		"an address": {
			`SELECT id FROM site WHERE org_id = ?1 AND address_key = ?2`,
			"site_address (org_id=? AND address_key=?)",
			false,
		},
		"a metering point": {
			`UPDATE registration SET site_id = ?3 WHERE org_id = ?1 AND mpan = ?2 AND to_at IS NULL`,
			"registration_mpan (mpan=?)",
			false,
		},
		"a statement": {
			`SELECT id FROM ledger WHERE org_id = ?1 AND site_id = ?2 AND recorded_at < ?3 ORDER BY id`,
			"ledger_site (org_id=? AND site_id=?)",
			false,
		},
		"pauses": {
			`DELETE FROM pause WHERE org_id = ?1 AND site_id = ?2 AND from_at > ?3`,
			"pause_site (site_id=? AND from_at>?)",
			false,
		},
		"tokens": {
			`DELETE FROM token WHERE org_id = ?1 AND site_id = ?2`,
			"token_site (site_id=?)",
			false,
		},
	}

	check := func(t *testing.T, known bool) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				plan := planOf(t, db, test.statement)
				chosen := strings.HasSuffix(plan, test.index)

				if want := known || !test.statistics; chosen != want {
					t.Errorf("%s; by %s: %t, want %t", plan, test.index, chosen, want)
				}
			})
		}
	}

	t.Run("with statistics", func(t *testing.T) { check(t, true) })

	// Planted: none, as SQLite is by itself.
	forgetStatistics(t, db)
	t.Run("without", func(t *testing.T) { check(t, false) })
}

// What waits, or is past its retention, is found without reading all that is kept.
func TestPlans_OfWhatWaits(t *testing.T) {
	db, err := sql.Open("sqlite", strings.TrimPrefix(storetest.SQLite(t), "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}

	defer db.Close()

	for statement, index := range map[string]string{
		`SELECT asset_id, at, label, replaced_at FROM reading_history WHERE at < ?1 LIMIT ?2`: "reading_history_at (at<?)",

		`DELETE FROM held_reading WHERE held_at < ?1`: "held_reading_at (held_at<?)",

		`SELECT id FROM withdrawal WHERE org_id = ?1 AND status = ?2 AND id > ?3 ORDER BY id LIMIT ?4`: "withdrawal_status (org_id=? AND status=? AND id>?)",

		`SELECT id FROM withdrawal WHERE status = 'pending_approval' AND status IN ('pending_approval', 'approved', 'processing')`: "withdrawal_open",

		`SELECT a.id FROM asset a WHERE a.org_id = ?1 AND a.type = 'battery' ORDER BY a.id LIMIT ?2`: "asset_batteries (org_id=?)",

		`SELECT a.id FROM asset a WHERE a.org_id = ?1 AND a.type IN ('hot water tank', 'heat pump') ORDER BY a.id LIMIT ?2`: "asset_heat (org_id=?)",

		`SELECT p.asset_id FROM tank_plan p WHERE p.lack_wh >= ?1 AND p.lack_wh > 0`: "tank_plan_cold",

		`SELECT MAX(from_at) FROM reckoning WHERE org_id = ?1 AND posted > 0`: "reckoning_posted_last (org_id=?)",

		`SELECT p.asset_id FROM dispatch_asset p WHERE p.org_id = ?1 AND p.release = 'missing' AND p.over_at > ?2`: "dispatch_asset_missing (org_id=? AND over_at>?)",

		`SELECT d.event_id FROM delivery d WHERE d.org_id = ?1 AND d.state = 'rejected' AND d.state <> 'accepted' ORDER BY d.event_id DESC LIMIT ?2`: "delivery_not_taken (org_id=? AND state=?)",

		`SELECT o.id FROM adr_order o WHERE o.to_at < ?1 LIMIT ?2`: "adr_order_over (to_at<?)",
	} {
		if plan := planOf(t, db, statement); !strings.Contains(plan, index) {
			t.Errorf("%s: %s, want %s", statement, plan, index)
		}
	}
}

// Statistics are of indexes that exist, and each index has some.
func TestStatistics_Whole(t *testing.T) {
	db, err := sql.Open("sqlite", strings.TrimPrefix(storetest.SQLite(t), "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}

	defer db.Close()
	var missing, astray string

	err = db.QueryRow(`
		SELECT COALESCE(group_concat(t.name || '.' || l.name), '')
		FROM pragma_table_list t JOIN pragma_index_list(t.name) l
		WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite_%' AND NOT EXISTS (SELECT 1 FROM sqlite_stat1 s
			WHERE s.tbl = t.name AND s.idx IN (l.name, CASE WHEN t.wr AND l.origin = 'pk' THEN t.name END))`).Scan(&missing)
	if err != nil {
		t.Fatal(err)
	}

	err = db.QueryRow(`
		SELECT COALESCE(group_concat(s.idx), '') FROM sqlite_stat1 s
		WHERE NOT EXISTS (SELECT 1 FROM sqlite_master m WHERE m.name = s.idx)`).Scan(&astray)
	if err != nil {
		t.Fatal(err)
	}

	if missing+astray != "" {
		t.Errorf("without statistics: %s; statistics of nothing: %s", missing, astray)
	}
}

// growing are the tables that name no site and no asset, and grow with the fleet or with time
// all the same.
var growing = []string{
	"account_key", "adr_binding", "adr_mirror", "adr_notice", "adr_object", "adr_order", "adr_target", "adr_telemetry", "adr_upstream",
	"alert_message", "audit", "audit_link", "books_month", "carbon", "curve", "dispatch", "fleet_half_hour", "goose_lock",
	"attempt", "job", "meter", "msid_pair", "offer", "price", "publication", "settlement", "site", "withdrawal_approval",
	"withdrawal_move",
}

// Of every table it is known whether it grows: of a new one that names no site and no asset,
// somebody has to say so.
func TestStatistics_EveryTableIsPlaced(t *testing.T) {
	db, err := sql.Open("sqlite", strings.TrimPrefix(storetest.SQLite(t), "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}

	defer db.Close()
	var names string
	err = db.QueryRow(`
		SELECT group_concat(t.name) FROM pragma_table_list t
		WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND NOT EXISTS (
			SELECT 1 FROM pragma_table_info(t.name) p WHERE p.name IN ('site_id', 'asset_id'))`).Scan(&names)
	if err != nil {
		t.Fatal(err)
	}

	placed := append(store.RowsPlaced(), growing...)
	for name := range strings.SplitSeq(names, ",") {
		if !slices.Contains(placed, name) {
			t.Errorf("does %s grow with the fleet or with time? If not, it belongs to fewRows, else to growing above", name)
		}
	}
}

// planOf is the step by which SQLite reads a statement's table.
func planOf(t *testing.T, db *sql.DB, statement string) (plan string) {
	t.Helper()
	var id, parent, unused int
	args := []any{1, 2, 3, 4}[:strings.Count(statement, "?")]

	row := db.QueryRow("EXPLAIN QUERY PLAN "+statement, args...)
	if err := row.Scan(&id, &parent, &unused, &plan); err != nil {
		t.Fatal(err)
	}

	return plan
}

// forgetStatistics takes the statistics away, and closes the connections that have read them.
func forgetStatistics(t *testing.T, db *sql.DB) {
	t.Helper()
	if _, err := db.Exec(`DELETE FROM sqlite_stat1`); err != nil {
		t.Fatal(err)
	}

	db.SetMaxIdleConns(-1)
}
