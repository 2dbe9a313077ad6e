package store_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestFinishPushes_Moved: of an attempt that ends once its organisation has moved to another
// cell, nothing is written in the old one. A row that was left there was never deleted, and
// the organisation could not move back.
func TestFinishPushes_Moved(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx, db := t.Context(), storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)

		finish := func(org flex.OrgID) int {
			t.Helper()
			car := flex.AssetID{2}
			push := store.ClaimedPush{
				Push:    store.Push{AssetID: car, EventID: flex.EventID{3}, Kind: store.SchedulePush, Generation: 1},
				Subject: car, Holder: 1, QueuedAt: db.Now(), LeasedTo: db.Now().Add(time.Minute),
			}
			outs := []store.Outcome{{Push: push, State: store.PushAccepted, Attempt: store.Attempt{At: db.Now(), Status: 200}}}
			err := db.Write(ctx, org, func(tx *store.Tx) error { return tx.FinishPushes(ctx, outs) })
			if err != nil {
				t.Fatal(err)
			}
			return seed.Count(`SELECT count(*) FROM delivery WHERE org_id = $1`, org.Bytes())
		}

		if n := finish(seed.Org); n != 1 {
			t.Errorf("%d deliveries of an organisation that is here, want 1", n)
		}
		if n := finish(flex.OrgID{1}); n != 0 {
			t.Errorf("%d deliveries of an organisation that is elsewhere", n)
		}
	})
}
