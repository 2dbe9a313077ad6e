package store_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestHeatTaken_WhilePlanned has the client take a car's schedule while a heater of its site
// is planned, which has not seen that and asks for headroom: the heater is planned again,
// whether it asked before or does for the first time. One at another site is not.
func TestHeatTaken_WhilePlanned(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox})
		seed, ctx := storetest.NewSeed(t, db, url), t.Context()
		locks := storetest.At(t, db, url)
		other := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.HeatPump, 3000)

		for _, asked := range []bool{true, false} {
			site := seed.Site(flex.FullScheduleMethod)
			car, pump := seed.Asset(site, flex.Charger, 7400), seed.Asset(site, flex.HeatPump, 3000)
			put := func(tx *store.Tx, id flex.AssetID, asks bool) error {
				a, err := tx.Asset(ctx, id)
				if err != nil {
					return err
				}

				from := tx.Now().Truncate(time.Second)
				steps := []flex.Step{{Span: flex.Span{From: from, To: from.Add(10 * time.Hour)}, Limit: 3000}}
				p := store.TankPlan{AssetID: id, SiteID: a.SiteID, MadeAt: from, Power: 3000, Steps: steps, May: steps, Basis: store.TankRead, StoredAt: from}
				if asks {
					p.Asks = steps
				}

				return tx.PutTankPlan(ctx, &p)
			}

			err := db.Write(ctx, seed.Org, func(tx *store.Tx) error { return errors.Join(put(tx, pump, asked), put(tx, other, true)) })
			if err != nil {
				t.Fatal(err)
			}

			done := make(chan error, 1)
			taken := func() {
				push := store.ClaimedPush{Push: store.Push{AssetID: car, Generation: 1, Kind: store.SchedulePush}, Subject: car, Holder: 1, QueuedAt: db.Now()}
				outs := []store.Outcome{{Push: push, State: store.PushAccepted, Attempt: store.Attempt{At: db.Now(), Status: 200}}}
				done <- db.Write(context.Background(), seed.Org, func(tx *store.Tx) error { return tx.FinishPushes(context.Background(), outs) })
			}

			err = db.Write(ctx, seed.Org, func(tx *store.Tx) error {
				if err := tx.LockTankPlan(ctx, pump); err != nil {
					return err
				}
				if _, err := tx.Accepted(ctx, car); err != nil {
					return err
				}

				go taken()
				for db.Engine() == "postgres" && len(done) == 0 {
					if locks.Count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
						break
					}
					runtime.Gosched()
				}

				return put(tx, pump, true)
			})
			if err = errors.Join(err, <-done); err != nil {
				t.Fatal(err)
			}

			for id, want := range map[flex.AssetID]int{pump: 1, other: 0} {
				if n := seed.Count(`SELECT count(*) FROM tank_plan WHERE planned_at = 0 AND asset_id = $1`, id.Bytes()); n != want {
					t.Errorf("asked before: %v: %d are planned again, want %d", asked, n, want)
				}
			}
		}
	})
}
