package store_test

import (
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/test/postgres"
)

// A pooler that gives a connection to others between two transactions is refused when the store is opened, each time, and
// is not noticed first by requests that fail. One that leaves it to its client is as good as none.
func TestOpen_Pooler(t *testing.T) {
	direct, err := url.Parse(storetest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}

	storetest.Open(t, direct.String(), store.Options{Environment: flex.Sandbox}) // makes the schema

	for mode, refused := range map[string]bool{"transaction": true, "session": false} {
		p, err := postgres.StartPooler(t.Context(), mode, direct)
		if errors.Is(err, postgres.ErrNoPooler) && os.Getenv("FLEXD_TEST_STRICT") == "" {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Stop)

		for range 5 {
			db, err := store.Open(t.Context(), p.URL, store.Options{
				Environment: flex.Sandbox,
				Keys:        storetest.Keys(t),
				Schema:      store.SchemaAsIs,
			})
			if err == nil {
				db.Close()
			}
			if (err != nil) != refused || refused && !strings.Contains(err.Error(), "pool_mode = session") {
				t.Errorf("%s: %v", mode, err)
			}
		}
	}
}
