package store_test

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// rerun counts the writes that lost to another.
type rerun struct {
	slog.Handler
	n atomic.Int64
}

func (r *rerun) Enabled(context.Context, slog.Level) bool { return true }

func (r *rerun) Handle(_ context.Context, record slog.Record) error {
	if strings.HasPrefix(record.Message, "a write lost to another") {
		r.n.Add(1)
	}
	return nil
}

// lockStep is what a transaction writes.
type lockStep func(context.Context, *store.Tx, flex.AssetID) error

// inTurn has a transaction write first, wait until another waits for it that writes both, and
// then write second: none is run again. What is written before is committed.
func inTurn(t *testing.T, before, first, second, both lockStep) {
	t.Helper()
	const locked = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	storetest.EachURL(t, func(t *testing.T, url string) {
		r := &rerun{Handler: slog.DiscardHandler}
		db := storetest.Open(t, url, store.Options{Log: slog.New(r)})
		seed := storetest.NewSeed(t, db, url)
		asset := seed.Asset(seed.Site(), flex.Charger, 7400)
		ctx, done := context.Background(), make(chan error, 1)

		write := func(step lockStep) error {
			return db.Write(ctx, seed.Org, func(tx *store.Tx) error { return step(ctx, tx, asset) })
		}
		if err := write(before); err != nil {
			t.Fatal(err)
		}

		begun := false
		err := db.Write(ctx, seed.Org, func(tx *store.Tx) error {
			if err := first(ctx, tx, asset); err != nil {
				return err
			}
			if _, err := tx.Asset(ctx, asset); err != nil { // what runs later comes before what is read
				return err
			}

			if !begun { // this runs again where it loses
				begun = true
				go func() { done <- write(both) }()
			}
			for db.Engine() == "postgres" && len(done) == 0 && seed.Count(locked) == 0 {
				runtime.Gosched()
			}

			return second(ctx, tx, asset)
		})
		if err != nil {
			t.Fatal(err)
		}

		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if n := r.n.Load(); n > 0 {
			t.Errorf("%d writes lost to another one and were run again", n)
		}

		seed.Exec(`DELETE FROM outbox`) // it is of no schedule
	})
}

// Two batches have readings refused for the same two reasons, the second in the other order.
func TestCountRefused_Beside(t *testing.T) {
	count := func(reasons ...string) lockStep {
		return func(ctx context.Context, tx *store.Tx, asset flex.AssetID) error {
			var rs []store.RefusedReading
			for _, reason := range reasons {
				rs = append(rs, store.RefusedReading{Label: "x", Reason: reason, Count: 1, Example: reason, AssetID: asset})
			}

			return tx.CountRefused(ctx, rs)
		}
	}

	inTurn(t, count(), count("a"), count("b"), count("b", "a"))
}

// Two batches have the same two readings held back, the second in the other order.
func TestHoldReadings_Beside(t *testing.T) {
	hold := func(hours ...int) lockStep {
		return func(ctx context.Context, tx *store.Tx, asset flex.AssetID) error {
			var hs []flex.HeldReading
			for _, hour := range hours {
				from := time.Date(2026, 1, 14, hour, 0, 0, 0, time.UTC)
				h := flex.HeldReading{Reason: "rate", Detail: "too much"}
				h.AssetID, h.Label = asset, flex.ChargerEnergy
				h.From, h.To = from, from.Add(flex.HalfHour)
				hs = append(hs, h)
			}

			return tx.HoldReadings(ctx, hs)
		}
	}

	inTurn(t, hold(), hold(1), hold(2), hold(2, 1))
}

// Two pushes failed, and it is recorded in the other order than that in which a wave replaces
// them meanwhile.
func TestFinishPushes_Beside(t *testing.T) {
	cars := []flex.AssetID{{1}, {2}}
	push := func(i int, generation int64, until time.Time) store.Push {
		return store.Push{
			AssetID:    cars[i],
			EventID:    flex.EventID{byte(i + 1), byte(generation)},
			Kind:       store.SchedulePush,
			Generation: generation,
			ExpiresAt:  until,
		}
	}

	queue := func(generation int64, places ...int) lockStep {
		return func(ctx context.Context, tx *store.Tx, _ flex.AssetID) error {
			var ps []store.Push
			for _, i := range places {
				ps = append(ps, push(i, generation, tx.Now().Add(time.Hour)))
			}

			return tx.Enqueue(ctx, ps...)
		}
	}

	finish := func(ctx context.Context, tx *store.Tx, _ flex.AssetID) error {
		var outs []store.Outcome
		for _, i := range []int{1, 0} {
			claimed := store.ClaimedPush{
				Push:     push(i, 1, tx.Now().Add(time.Hour)),
				Subject:  cars[i],
				QueuedAt: tx.Now(),
				LeasedTo: tx.Now().Add(time.Hour),
			}
			outs = append(outs, store.Outcome{Push: claimed, State: store.PushPending, Again: tx.Now(), Attempt: store.Attempt{At: tx.Now(), Status: 500}})
		}

		return tx.FinishPushes(ctx, outs)
	}

	inTurn(t, queue(1, 0, 1), queue(2, 0), queue(2, 1), finish)
}
