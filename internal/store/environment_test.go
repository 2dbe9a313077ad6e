package store_test

import (
	"sync"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestKeepEnvironment_TwoProcesses: of two processes that begin at once, each for another environment, one is refused.
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
