package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// Deliveries that were tried often have more attempts than one transaction deletes of
// deliveries: what is left after each has every attempt beside its delivery, and in the end
// nothing is left.
func TestDropDeliveries_Attempts(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		seedDeliveries(seed, 5100)
		for number := range 2 {
			seed.Exec(`INSERT INTO attempt (org_id, event_id, number, at, took, status, error, answer)
				SELECT org_id, event_id, CAST($1 AS INTEGER), 1, 1, 500, '', '' FROM delivery`, number)
		}

		for dropped := int64(1); dropped > 0; {
			err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
				var err error
				dropped, err = tx.DropDeliveries(t.Context(), db.Now())
				return err
			})
			if err != nil {
				t.Fatal(err)
			}

			if n := seed.Count(`SELECT count(*) FROM attempt a WHERE NOT EXISTS (SELECT 1 FROM delivery d WHERE d.event_id = a.event_id)`); n > 0 {
				t.Fatalf("%d attempts are without their delivery", n)
			}
		}

		if n := seed.Count(`SELECT count(*) FROM delivery`); n != 0 {
			t.Errorf("%d deliveries are left", n)
		}
	})
}

// seedDeliveries adds deliveries that were refused at the third try.
func seedDeliveries(seed *storetest.Seed, n int) {
	ids := make([]any, n)
	for i := range ids {
		id := flex.MakeID[struct{}](time.UnixMilli(int64(i)+1), [10]byte{})
		ids[i] = id.Bytes()
	}

	for chunk := range slices.Chunk(ids, 500) {
		values := make([]string, len(chunk))
		for i := range values {
			values[i] = fmt.Sprintf(`($1, $%d, 'e', 'test', 1, 1, 'rejected', 3, 1, 1, 500, '', '')`, i+2)
		}

		seed.Exec(
			`INSERT INTO delivery (org_id, event_id, endpoint, kind, generation, queued_at, state, tries, at, took, status, error, answer) VALUES `+
				strings.Join(values, ", "),
			slices.Concat([]any{seed.Org.Bytes()}, chunk)...,
		)
	}
}
