package store_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A release before migration 655 looks for the flex event of a pause that was put off, and leaves the pause's mark: it is put off no
// longer.
func TestPutOff_PauseDoneByOlderRelease(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		pause := store.PauseID{15: 7}
		begin := time.Now().Add(-2 * time.Hour)
		seed.Exec(`INSERT INTO pause (id, asset_id, site_id, org_id, from_at, to_at, saved, made_at) VALUES ($1, $2, $3, $4, $5, $6, 0, $5)`,
			pause.Bytes(), flex.AssetID{1}.Bytes(), flex.SiteID{1}.Bytes(), seed.Org.Bytes(), begin.UnixMicro(), begin.Add(time.Hour).UnixMicro())

		left := func() (n int) {
			t.Helper()
			err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) (err error) {
				_, n, err = tx.LeftPutOff(t.Context(), store.PutOffPause, 5)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}

			return n
		}

		err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
			item := store.PutOffItem{
				Kind:  store.PutOffPause,
				ID:    pause,
				Until: tx.Now().Add(time.Hour),
				Error: "planted",
			}
			is, err := tx.PutOff(context.Background(), item)
			if !is {
				t.Error("the pause is not put off")
			}

			return err
		})
		if n := left(); err != nil || n != 1 {
			t.Errorf("%d are put off: %v", n, err)
		}

		seed.Exec(`UPDATE pause SET detected = TRUE`) // as TakePauses was
		if n := left(); n != 0 {
			t.Errorf("once it is looked for, %d are put off", n)
		}
	})
}
