package store_test

import (
	"path/filepath"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A database whose schema is older is opened only to be migrated, and one whose schema is newer
// is not opened at all.
func TestOpen_SchemaVersions(t *testing.T) {
	engines := map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.Postgres}
	for engine, database := range engines {
		t.Run(engine, func(t *testing.T) {
			url := database(t)

			refused := func(mode store.SchemaMode, kind flex.Kind, words string) {
				t.Helper()
				db, err := store.Open(t.Context(), url, store.Options{Schema: mode})
				if err == nil {
					db.Close()
				}
				if flex.KindOf(err) != kind || !strings.Contains(err.Error(), words) {
					t.Errorf("mode %d: %v, want kind %v with %q", mode, err, kind, words)
				}
			}

			opened := func(mode store.SchemaMode) *store.DB {
				t.Helper()
				db, err := store.Open(t.Context(), url, store.Options{Schema: mode})
				if err != nil {
					t.Fatalf("mode %d: %v", mode, err)
				}
				return db
			}

			db := opened(store.SchemaAsIs)
			seed := storetest.NewSeed(t, db, url)
			db.Close()

			status, err := store.ReadSchemaStatus(t.Context(), url)
			if err != nil || status.Version != status.Needed || len(status.Pending) > 0 {
				t.Fatalf("the database: %+v, %v", status, err)
			}

			// A migration that is missing is what an older flexd left.
			newest := status.Needed
			seed.Exec(`DELETE FROM goose_db_version WHERE version_id = $1`, newest)
			refused(store.SchemaAsIs, flex.Conflict, "run flexd migrate")
			refused(store.SchemaCreate, flex.Conflict, "run flexd migrate")
			status, err = store.ReadSchemaStatus(t.Context(), url)
			if err != nil || status.Newer() || len(status.Pending) != 1 {
				t.Errorf("the older database: %+v, %v", status, err)
			}
			seed.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, TRUE)`, newest)
			opened(store.SchemaAsIs).Close()

			seed.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, TRUE)`, newest+1)
			for _, mode := range []store.SchemaMode{store.SchemaMigrate, store.SchemaCreate, store.SchemaAsIs} {
				refused(mode, flex.Conflict, "run the newer flexd")
			}

			// An empty database is not filled by a command that only reads.
			if engine == "postgres" {
				seed.Exec(`DROP SCHEMA public CASCADE`)
				seed.Exec(`CREATE SCHEMA public`)
			} else {
				url = "sqlite:" + filepath.Join(t.TempDir(), "empty.db")
			}

			refused(store.SchemaAsIs, flex.NotFound, "flexd migrate makes its tables")
			status, err = store.ReadSchemaStatus(t.Context(), url)
			if err != nil || status.Version != 0 || len(status.Pending) < 20 {
				t.Errorf("the empty database: %+v, %v", status, err)
			}
			opened(store.SchemaCreate).Close()
			opened(store.SchemaAsIs).Close()
		})
	}
}
