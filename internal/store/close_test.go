package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A store is closed while others write. Each write that was answered for is there afterwards,
// and the first that comes too late fails with that reason.
func TestClose_WhileWriting(t *testing.T) {
	const writers = 8
	url, keys := storetest.SQLite(t), storetest.Keys(t)
	db, err := store.Open(t.Context(), url, store.Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}

	var all sync.WaitGroup
	begun, written, failed := make(chan bool, writers), [writers]int{}, [writers]error{}
	for w := range writers {
		all.Go(func() {
			for failed[w] == nil {
				_, failed[w] = db.AddOrg(context.WithoutCancel(t.Context()), fmt.Sprint(w, "-", written[w]))
				if failed[w] != nil {
					return
				}

				written[w]++
				if written[w] == 1 {
					begun <- true
				}
			}
		})
	}

	for range writers {
		<-begun
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()

	want := 0
	for w, err := range failed {
		want += written[w]
		if !strings.Contains(err.Error(), "the store is closed") {
			t.Errorf("writer %d ended with %v", w, err)
		}
	}

	db = storetest.Open(t, url, store.Options{Keys: keys})
	if n := storetest.NewSeed(t, db, url).Count(`SELECT COUNT(*) FROM org`); n != want+1 { // the seed's own
		t.Errorf("%d organisations are there, want %d", n, want+1)
	}
}
