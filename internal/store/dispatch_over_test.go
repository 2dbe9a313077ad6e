package store_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestDispatches_UpgradedWhileMoving upgrades a database that an organisation is leaving: its
// records are fenced, so that its dispatches are left as if they were not over, and those of
// others get their end.
func TestDispatches_UpgradedWhileMoving(t *testing.T) {
	url := storetest.Postgres(t)
	id := func(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }
	stays, leaves := id(8), id(9)

	err := store.Earlier(t.Context(), url, 574, func(to *sql.DB) error {
		var statements []string // no organisation, no site: only dispatches
		for n, org := range []string{stays, leaves} {
			statements = append(
				statements,
				fmt.Sprintf(`INSERT INTO dispatch (event_id, org_id, market, issued_at, from_at, to_at, batch) VALUES ('%s', '%s', 'dfs', 0, 1000, 2000, FALSE)`, id(n), org),
				fmt.Sprintf(`INSERT INTO dispatch_asset (event_id, asset_id, org_id, power_w) VALUES ('%s', '%s', '%s', 1000)`, id(n), id(n), org),
			)
		}

		statements = append(
			statements,
			fmt.Sprintf(`INSERT INTO cell_move (org_id, state, other, number, at) VALUES ('%s', 'leaving', 'north', 1, 0)`, leaves),
			fmt.Sprintf(`CREATE TRIGGER leaving BEFORE UPDATE ON dispatch_asset FOR EACH ROW WHEN (OLD.org_id = '%s') EXECUTE FUNCTION cell_fence('%s', 'org_id')`, leaves, leaves),
		)

		for _, s := range statements {
			if _, err := to.ExecContext(t.Context(), s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	s := storetest.NewSeed(t, storetest.Open(t, url, store.Options{}), url)
	got := strings.Join(s.Strings(`SELECT over_at::text FROM dispatch_asset ORDER BY event_id`), " ")
	if want := "2000 9000000000000000"; got != want {
		t.Errorf("%s, not %s", got, want)
	}

	s.Exec(`DROP TRIGGER leaving ON dispatch_asset`)
	for _, table := range []string{"dispatch_asset", "dispatch", "cell_move"} {
		s.Exec(`DELETE FROM ` + table)
	}
}
