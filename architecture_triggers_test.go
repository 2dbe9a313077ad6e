package flexd_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// allowedTriggers are all that a fresh database has, with what they keep. A rule is Go; a
// trigger keeps only what must hold whatever a program does: what was booked or known is never
// changed and never lost.
var allowedTriggers = map[string]string{
	"ledger_stays":          "a transaction is never changed",
	"ledger_kept":           "a transaction is never removed",
	"posting_stays":         "a posting is never changed",
	"posting_kept":          "a posting is never removed",
	"withdrawal_move_stays": "a step of a withdrawal is never changed",
	"withdrawal_move_kept":  "a step of a withdrawal is never removed",
	"books_month_stays":     "a closed month is never changed",
	"books_month_kept":      "a closed month is never removed",
	"reading_corrected":     "a reading that is corrected keeps what it was",
}

// TestTriggers compares the triggers of a fresh database with the list.
func TestTriggers(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		query := `SELECT name FROM sqlite_master WHERE type = 'trigger' ORDER BY name`
		if db.Engine() == "postgres" {
			query = `SELECT DISTINCT tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
				WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace ORDER BY tgname`
		}

		want := slices.Sorted(maps.Keys(allowedTriggers))
		if got := seed.Strings(query); !slices.Equal(got, want) {
			t.Errorf("triggers %v, want %v: a rule belongs into Go", got, want)
		}

		// The comparison sees a trigger that is not on the list.
		planted := `CREATE TRIGGER planted AFTER UPDATE ON org BEGIN SELECT 1; END`
		if db.Engine() == "postgres" {
			planted = `CREATE TRIGGER planted AFTER UPDATE ON org FOR EACH ROW EXECUTE FUNCTION books_stay()`
		}
		seed.Exec(planted)
		if slices.Equal(seed.Strings(query), want) {
			t.Error("a planted trigger is not found")
		}
	})
}

// TestMigrationNumbers shows that each migration has a number of its own: with two of one number no
// database is opened.
func TestMigrationNumbers(t *testing.T) {
	files, err := filepath.Glob("internal/store/migration/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal("no migrations: ", err)
	}
	if twice := sameNumber(files); twice != "" {
		t.Errorf("%s has the number of another", twice)
	}
	if sameNumber([]string{"a/00001_x.sql", "a/00002_x.sql", "a/00002_y.sql"}) != "a/00002_y.sql" {
		t.Error("a planted number is not found")
	}
}

// sameNumber names a migration that has the number of another, "" if none has.
func sameNumber(files []string) string {
	known := map[string]bool{}
	for _, file := range files {
		number, _, _ := strings.Cut(filepath.Base(file), "_")
		if known[number] {
			return file
		}
		known[number] = true
	}
	return ""
}
