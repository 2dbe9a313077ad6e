package delivery_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// A dispatch that ends within a half-hour is sent again, as its asset goes on with it, before it is settled. It counts from when it was
// first accepted, whatever the client answers then.
func TestDispatch_AgainBeforeSettled(t *testing.T) {
	for _, answer := range []int{200, 400} {
		each(t, func(h *fixture) {
			ctx := context.Background()
			asset := h.chargers(1)[0]
			e := h.dispatchEndpoint(false)
			defer h.work(h.service)()

			from := time.Now().Truncate(flex.HalfHour).Add(flex.HalfHour)
			order := store.Dispatch{
				Market: "dfs",
				Span:   flex.Span{From: from, To: from.Add(10 * time.Minute)},
				Assets: []store.DispatchedAsset{{ID: asset, Power: -2000}},
			}
			sent, err := h.service.Dispatch(ctx, h.Org, order)
			if err != nil {
				h.Fatal(err)
			}

			at := order.To.Add(14 * time.Minute)
			time.Sleep(time.Until(at))
			e.say(status(answer))
			h.write(func(ctx context.Context, tx *store.Tx) error {
				return tx.PutReadings(ctx, []flex.Reading{{AssetID: asset, Span: flex.Span{From: at, To: at}, Label: flex.BatteryInverterPower, Value: -2e6}})
			})

			time.Sleep(time.Minute)
			if _, err := h.service.CheckReleases(ctx); err != nil {
				h.Fatal(err)
			}
			time.Sleep(time.Minute)
			if n := len(e.all()); n != 2 {
				h.Errorf("it is sent %d times", n)
			}

			time.Sleep(time.Until(from.Add(flex.HalfHour + store.DetectAfter)))
			h.write(func(ctx context.Context, tx *store.Tx) error {
				parts, err := tx.DueDispatches(ctx, 10)
				if err != nil {
					return err
				}

				ended, err := tx.EndedDispatches(ctx, parts)
				if len(ended) != 1 || ended[0].TakenAt.IsZero() || !ended[0].TakenAt.Before(from) {
					h.Errorf("answered %d: dispatch %v is settled as %+v", answer, sent[0].ID, ended)
				}

				return err
			})
		})
	}
}

// A newer dispatch takes the place of one until the client reports that its asset does not follow the newer one: the first may be sent
// again then.
func TestDispatch_NotReplacedByRefused(t *testing.T) {
	each(t, func(h *fixture) {
		ctx := context.Background()
		asset := h.chargers(1)[0]
		h.dispatchEndpoint(false)

		from := time.Now().Truncate(flex.HalfHour).Add(flex.HalfHour)
		order := store.Dispatch{
			Market: "dfs",
			Span:   flex.Span{From: from, To: from.Add(flex.HalfHour)},
			Assets: []store.DispatchedAsset{{ID: asset, Power: -2000}},
		}
		var ids []flex.EventID
		for range 2 {
			sent, err := h.service.Dispatch(ctx, h.Org, order)
			if err != nil {
				h.Fatal(err)
			}

			ids = append(ids, sent[0].ID)
			time.Sleep(time.Second)
		}

		replaced := func(want int, replay flex.Kind) {
			h.Helper()
			d, err := h.service.Delivery(ctx, h.Org, ids[0])
			if err != nil || len(d.Replaced) != want {
				h.Errorf("it is replaced %d times, want %d: %v", len(d.Replaced), want, err)
			}

			err = h.service.Replay(ctx, h.Org, ids[0])
			if want > 0 && flex.KindOf(err) != replay || want == 0 && err != nil {
				h.Errorf("sent again: %v", err)
			}
		}

		replaced(1, flex.Conflict)
		report := delivery.Callback{Asset: asset.String(), Event: ids[1].String(), Status: flex.Failed, ReportedAt: time.Now()}
		if err := h.service.Callback(ctx, h.Org, report); err != nil {
			h.Fatal(err)
		}
		replaced(0, 0)
	})
}
