package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// What runs later is read in its own transaction, is undone with it, and fails it.
func TestWrite_Later(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox})
		seed := storetest.NewSeed(t, db, url)
		asset := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Charger, 7400)
		write := func(fn func(ctx context.Context, tx *store.Tx) error) error {
			return db.Write(t.Context(), seed.Org, func(tx *store.Tx) error { return fn(t.Context(), tx) })
		}
		events := func() int { return seed.Count(`SELECT count(*) FROM asset_event`) }

		const many = 40 // more than are held back at a time
		err := write(func(ctx context.Context, tx *store.Tx) error {
			for range many {
				if err := tx.AddEvent(ctx, asset, "plug_in", store.AssetEvent{}); err != nil {
					return err
				}
			}

			told, err := tx.PastEvents(ctx, asset, flex.Span{From: tx.Now(), To: tx.Now().Add(time.Hour)}, 2*many)
			if len(told) != many {
				t.Errorf("the transaction reads %d of %d events that it wrote", len(told), many)
			}
			return err
		})
		if err != nil || events() != many {
			t.Errorf("%d events committed, want %d; %v", events(), many, err)
		}

		stop := errors.New("stop")
		err = write(func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.AddEvent(ctx, asset, "plug_out", store.AssetEvent{}), stop)
		})
		if !errors.Is(err, stop) || events() != many {
			t.Errorf("%d events after a write that failed, want %d; %v", events(), many, err)
		}

		err = write(func(ctx context.Context, tx *store.Tx) error {
			if err := tx.LockAsset(ctx, asset); err != nil {
				return err
			}
			c, err := tx.PlanningState(ctx, asset)
			if err != nil {
				return err
			}

			second := c
			return errors.Join(tx.AddEvent(ctx, asset, "plug_in", store.AssetEvent{}), tx.OpenSession(ctx, &c, 0), tx.OpenSession(ctx, &second, 0))
		})
		if err == nil || events() != many || seed.Count(`SELECT count(*) FROM session`) != 0 {
			t.Errorf("two open sessions of one asset: %v", err)
		}

		if err := write(func(ctx context.Context, tx *store.Tx) error { return tx.LockAsset(ctx, flex.AssetID{1}) }); flex.KindOf(err) != flex.NotFound {
			t.Errorf("an asset that is none: %v", err)
		}
	})
}
