package store_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

func TestEnqueue_ManyAndTwice(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		org, err := db.AddOrg(ctx, "acme")
		if err != nil {
			t.Fatal(err)
		}
		var ps []store.Push
		var assets []flex.AssetID
		for i := range 1200 {
			a := flex.AssetID{1, byte(i >> 8), byte(i)}
			assets = append(assets, a)
			for g := range int64(2) { // twice in one call: the newer holds
				ps = append(ps, store.Push{AssetID: a, EventID: flex.EventID{2, byte(i >> 8), byte(i), byte(g)}, Kind: store.SchedulePush,
					Generation: g + 1, ExpiresAt: db.Now().Add(time.Hour)})
			}
		}
		wake := db.Waker(store.WakePush)
		if err := db.Write(ctx, org.ID, func(tx *store.Tx) error { return tx.Enqueue(ctx, ps...) }); err != nil {
			t.Fatal(err)
		}
		select {
		case <-wake:
		default:
			t.Error("no wake-up")
		}
		if err := db.Write(ctx, org.ID, func(tx *store.Tx) error { return tx.Retract(ctx, assets...) }); err != nil {
			t.Fatal(err)
		}
	})
}
