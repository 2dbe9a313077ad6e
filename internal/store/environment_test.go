package store_test

import (
	"sync"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestKeepEnvironment_TwoProcesses: of two processes that begin at once, each for another
// environment, one is refused.
func TestKeepEnvironment_TwoProcesses(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		processes := []*store.DB{
			storetest.Open(t, url, store.Options{Environment: flex.Sandbox}),
			storetest.Open(t, url, store.Options{Environment: flex.Production}),
		}

		for range 20 {
			if err := storetest.Exec(t, url, `DELETE FROM environment`); err != nil {
				t.Fatal(err)
			}

			kept := make([]error, len(processes))
			var both sync.WaitGroup
			for i, db := range processes {
				both.Go(func() { kept[i] = db.KeepEnvironment(t.Context()) })
			}
			both.Wait()

			if (kept[0] == nil) == (kept[1] == nil) {
				t.Fatalf("the sandbox's: %v; production's: %v", kept[0], kept[1])
			}
			for _, err := range kept {
				if err != nil && flex.KindOf(err) != flex.Conflict {
					t.Error(err)
				}
			}
		}
	})
}

// TestOpen_OtherEnvironment: a database that waits for migrations is refused to the other
// environment before any of them, whether an environment is kept in it or a clock was turned
// before any was.
func TestOpen_OtherEnvironment(t *testing.T) {
	refused := func(t *testing.T, url string) {
		t.Helper()
		before, err := store.ReadSchemaStatus(t.Context(), url)
		if err != nil || len(before.Pending) == 0 {
			t.Fatal(before, err)
		}
		if err := store.CheckEnvironmentAt(t.Context(), url, flex.Production); flex.KindOf(err) != flex.Conflict {
			t.Errorf("checked as production: %v", err)
		}
		if err := store.CheckEnvironmentAt(t.Context(), url, flex.Sandbox); err != nil {
			t.Errorf("checked as the sandbox: %v", err)
		}

		db, err := store.Open(t.Context(), url, store.Options{Environment: flex.Production, Schema: store.SchemaMigrate})
		if flex.KindOf(err) != flex.Conflict {
			t.Errorf("opened: %v", err)
		}
		if err == nil {
			db.Close()
		}
		after, err := store.ReadSchemaStatus(t.Context(), url)
		if err != nil || len(after.Pending) != len(before.Pending) {
			t.Errorf("%d migrations are left of %d: %v", len(after.Pending), len(before.Pending), err)
		}
	}

	t.Run("golden", func(t *testing.T) {
		url := "sqlite:" + goldenFile(t)
		exec(t, url, `UPDATE org SET clock_held = TRUE`)
		refused(t, url)
		exec(t, url, `UPDATE org SET clock_held = FALSE, clock_offset = 0`)
		db, err := store.Open(t.Context(), url, store.Options{Environment: flex.Production, Schema: store.SchemaMigrate})
		if err != nil {
			t.Fatal(err)
		}
		db.Close()
	})

	storetest.EachURL(t, func(t *testing.T, url string) {
		if err := storetest.Open(t, url, store.Options{Environment: flex.Sandbox}).KeepEnvironment(t.Context()); err != nil {
			t.Fatal(err)
		}
		exec(t, url, `DELETE FROM goose_db_version WHERE version_id = 340`)
		refused(t, url)
		exec(t, url, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (340, TRUE)`)
	})
}

func exec(t *testing.T, url, query string) {
	t.Helper()
	if err := storetest.Exec(t, url, query); err != nil {
		t.Fatal(err)
	}
}
