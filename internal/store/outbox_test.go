package store_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

func TestEnqueue_ManyAndTwice(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox})
		seed, ctx := storetest.NewSeed(t, db, url), t.Context()
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
		if err := db.Write(ctx, seed.Org, func(tx *store.Tx) error { return tx.Enqueue(ctx, ps...) }); err != nil {
			t.Fatal(err)
		}

		if n := seed.Count(`SELECT count(*) FROM outbox WHERE generation = 2 AND turn_at IS NOT NULL`); n != len(assets) {
			t.Errorf(
				"%d pushes of the newer generation are queued, want %d",
				n,
				len(assets),
			)
		}
		select {
		case <-wake:
		default:
			t.Error("no wake-up")
		}

		if err := db.Write(ctx, seed.Org, func(tx *store.Tx) error { return tx.Retract(ctx, assets...) }); err != nil {
			t.Fatal(err)
		}
		if n := seed.Count(`SELECT count(*) FROM outbox WHERE turn_at IS NOT NULL`); n != 0 {
			t.Errorf("%d pushes are queued after all were retracted", n)
		}
	})
}

// TestClaimPushes_ClockSetBack: pushes were sent while the clock was an hour ahead. Once it is
// right, the rate holds nothing back for that hour.
func TestClaimPushes_ClockSetBack(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(
			t,
			url,
			store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }},
		)
		seed, ctx := storetest.NewSeed(t, db, url), t.Context()
		err := db.Write(ctx, seed.Org, func(tx *store.Tx) error {
			_, err := tx.PutEndpoint(ctx, flex.Endpoint{
				Name: flex.ScheduleEndpoint, URL: "https://client.example/", Secret: "secret", Enabled: true, Rate: 1, Concurrency: 1,
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		for holder := range int64(2) {
			err := db.Write(ctx, seed.Org, func(tx *store.Tx) error {
				return tx.Enqueue(ctx, store.Push{
					EventID:    tx.NewEventID(),
					Kind:       store.TestPush,
					To:         flex.ScheduleEndpoint,
					Generation: 1,
					ExpiresAt:  now.Add(24 * time.Hour),
				})
			})
			if err != nil {
				t.Fatal(err)
			}

			c, err := db.ClaimPushes(ctx, seed.Org, store.ClaimOrder{
				Name:   flex.ScheduleEndpoint,
				Holder: holder + 1,
				Most:   1,
				Lease:  time.Minute,
			})
			if err != nil || len(c.Pushes) != 1 {
				t.Errorf("at %s %d pushes are claimed: %v", now, len(c.Pushes), err)
			}

			now = now.Add(-time.Hour)
		}
	})
}
