package store_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// What was answered under an idempotency key comes again to the byte, and is not in the
// database: not in its file, nor in its journal.
func TestIdempotency_Sealed(t *testing.T) {
	const canary = "CANARY-91be"
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{Keys: storetest.Keys(t)})
		org, err := db.AddOrg(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		request := [32]byte{1}
		k, claim, err := db.ClaimKey(t.Context(), org.ID, "k", request)
		if k != nil || err != nil {
			t.Fatal(k, err)
		}

		if err := db.StoreAnswer(t.Context(), claim, flex.StoredAnswer{Status: 201, Answer: []byte(canary)}); err != nil {
			t.Fatal(err)
		}
		k, _, err = db.ClaimKey(t.Context(), org.ID, "k", request)
		if err != nil || k.Status != 201 || string(k.Answer) != canary {
			t.Errorf("the answer comes again as %+v, %v", k, err)
		}
		if _, _, err := db.ClaimKey(t.Context(), org.ID, "k", [32]byte{2}); flex.KindOf(err) != flex.Conflict {
			t.Errorf("another request: %v", err)
		}

		path, embedded := strings.CutPrefix(url, "sqlite:")
		if !embedded {
			return
		}
		for _, file := range []string{path, path + "-wal"} {
			if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(canary)) {
				t.Errorf("%s has the answer in plain text", file)
			}
		}
	})
}
