package storetest_test

import (
	"testing"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A database is used by one test after the other. None finds what an earlier one left there, and one whose schema, settings
// or statistics were changed is used no more.
func TestPostgres_UsedAgain(t *testing.T) {
	last := ""
	t.Run("first", func(t *testing.T) { last = storetest.Postgres(t) })

	for _, c := range []struct {
		name  string
		leave string // what the test does to its database
		again bool   // the next test has it
	}{
		{"nothing", `SELECT 1`, true},
		{"records", `INSERT INTO org (id, name, created_at) VALUES (gen_random_uuid(), 'left', 0)`, true},
		{"no row of the migrations", `DELETE FROM audit_head`, true},
		{"a column", `ALTER TABLE site ADD COLUMN more text`, false},
		{"another column", `ALTER TABLE site RENAME COLUMN rates TO more`, false},
		{"a table", `CREATE TABLE more (n int)`, false},
		{"another table", `ALTER TABLE site RENAME TO more`, false},
		{"a trigger", `ALTER TABLE site DISABLE TRIGGER ALL`, false},
		{"an index", `DROP INDEX site_postcode`, false},
		{"a constraint", `ALTER TABLE org DROP CONSTRAINT org_name_key`, false},
		{"a default", `ALTER TABLE org ALTER settings SET DEFAULT '{"more": 1}'`, false},
		{"a schema", `CREATE SCHEMA more`, false},
		{"statistics", `ANALYZE org`, false},
		{"a setting", `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = 99999', current_database()); END $$`, false},
		{"another version of the schema", `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`, false},
		{"a large table", `INSERT INTO org (id, name, created_at) SELECT gen_random_uuid(), n, 0 FROM generate_series(1, 5000) n`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := storetest.Postgres(t)
			if is != last {
				t.Errorf("another database, and the one before was as it was made")
			}

			if err := storetest.Exec(t, is, c.leave); err != nil {
				t.Fatal(err)
			}
		})

		t.Run(c.name+", then", func(t *testing.T) {
			is := storetest.Postgres(t)
			if (is == last) != c.again {
				t.Errorf("the same database: %v", is == last)
			}

			last = is
			db := storetest.Open(t, is, store.Options{})
			seed := storetest.At(t, db, is)
			orgs, heads := seed.Count(`SELECT count(*) FROM org`), seed.Count(`SELECT count(*) FROM audit_head`)
			if orgs != 0 || heads != 1 {
				t.Errorf("%d organisations, %d heads of the audit log", orgs, heads)
			}
		})
	}
}
