package store_test

import (
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestOpen_ExecModes: each way of sending statements that a URL can name either works or is
// refused at the start.
func TestOpen_ExecModes(t *testing.T) {
	base := storetest.Postgres(t)
	for mode, works := range map[string]bool{
		"cache_statement": true, "cache_describe": true, "describe_exec": true,
		"exec": false, "simple_protocol": false,
	} {
		t.Run(mode, func(t *testing.T) {
			url := base + "&default_query_exec_mode=" + mode
			if !strings.Contains(base, "?") {
				url = base + "?default_query_exec_mode=" + mode
			}

			db, err := store.Open(t.Context(), url, store.Options{Keys: storetest.Keys(t), Environment: flex.Sandbox})
			if !works {
				if flex.KindOf(err) != flex.Invalid || !strings.Contains(err.Error(), "default_query_exec_mode") {
					t.Errorf("it is not refused: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()

			if _, err := db.AddOrg(t.Context(), "of "+mode); err != nil {
				t.Error(err)
			}
			if findings, err := db.Verify(t.Context()); err != nil || len(findings) > 0 {
				t.Errorf("%v %v", findings, err)
			}
		})
	}
}
