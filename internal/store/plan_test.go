package store_test

import (
	"database/sql"
	"log/slog"
	"strings"
	"testing"
	"time"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// SQLite finds who is plugged in, and what began in a span, without reading all that an
// organisation ever did: of two indexes that seem as good it takes the newer one.
func TestPlans_Sessions(t *testing.T) {
	db, err := sql.Open("sqlite", strings.TrimPrefix(storetest.SQLite(t), "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}

	defer db.Close()
	planned := func(where string) string {
		var id, parent, unused int
		var plan string
		row := db.QueryRow(`EXPLAIN QUERY PLAN SELECT s.id FROM session s WHERE s.org_id = ? AND `+where, 1)
		if err := row.Scan(&id, &parent, &unused, &plan); err != nil {
			t.Fatal(err)
		}
		return plan
	}

	for where, index := range map[string]string{
		`s.plugged_out_at IS NULL`: "session_open (org_id=?)",
		`s.plugged_in_at >= 2 AND s.plugged_in_at > 0 AND s.plugged_in_at < 3`: "session_began (org_id=? AND plugged_in_at>? AND plugged_in_at<?)",
	} {
		if plan := planned(where); !strings.HasSuffix(plan, index) {
			t.Errorf("%s: %s, want %s", where, plan, index)
		}
	}

	// Planted: the index as it was.
	for _, change := range []string{`DROP INDEX session_began`, `CREATE INDEX session_began ON session (org_id, plugged_in_at)`} {
		if _, err := db.Exec(change); err != nil {
			t.Fatal(err)
		}
	}
	if plan := planned(`s.plugged_out_at IS NULL`); strings.Contains(plan, "session_open") {
		t.Errorf("an index without a condition is not taken: %s", plan)
	}
}

// TestPlans_Publications: what every organisation asks of prices each time that its fleet, its
// batteries and its tanks are looked at does not read all publications that there ever were.
func TestPlans_Publications(t *testing.T) {
	var log lines
	db := storetest.Open(
		t,
		storetest.SQLite(t),
		store.Options{SlowAfter: time.Nanosecond, Log: slog.New(slog.NewTextHandler(&log, nil))},
	)
	org, err := db.AddOrg(t.Context(), "Acme")
	if err != nil {
		t.Fatal(err)
	}

	ask := func() {
		err := db.Read(t.Context(), org.ID, func(tx *store.Tx) error {
			_, _, err := tx.WaveDue(t.Context())
			if err == nil {
				_, err = tx.BatteriesDue(t.Context(), 1)
			}

			if err == nil {
				_, err = tx.TanksDue(t.Context(), 1)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	for statement, index := range map[string]string{
		"SELECT EXISTS (SELECT 1 FROM publication p": "publication_ends (to_at>?)",
		"FROM asset a LEFT JOIN battery_plan p":      "publication_fetched",
		"FROM asset a LEFT JOIN tank_plan p":         "publication_fetched",
	} {
		until(
			t,
			"the statement is logged with its plan",
			ask,
			func() bool { return len(planned(log.with(statement))) > 0 },
		)
		if plan := planned(log.with(statement))[0]; !strings.Contains(plan, index) {
			t.Errorf("not by %s: %s", index, plan)
		}
	}
}

// TestPlans_FusedCars: of what is plugged in only the organisation's own is read, which every
// organisation asks for each time that the fleet is looked at.
func TestPlans_FusedCars(t *testing.T) {
	var log lines
	db := storetest.Open(
		t,
		storetest.SQLite(t),
		store.Options{SlowAfter: time.Nanosecond, Log: slog.New(slog.NewTextHandler(&log, nil))},
	)
	org, err := db.AddOrg(t.Context(), "Acme")
	if err != nil {
		t.Fatal(err)
	}

	ask := func() {
		err := db.Read(t.Context(), org.ID, func(tx *store.Tx) error {
			_, err := tx.FusedCars(t.Context())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	const statement = "SELECT a.id, t.id, t.import_w"
	until(
		t,
		"the statement is logged with its plan",
		ask,
		func() bool { return len(planned(log.with(statement))) > 0 },
	)
	if plan := planned(log.with(statement))[0]; !strings.Contains(plan, "session_open (org_id=?") {
		t.Error(plan)
	}
}
