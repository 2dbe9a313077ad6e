package reward_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A battery's dispatch is found while another process finds an event of it that ends in the
// same half-hour: the half-hour is in one of them.
func TestSettleEvents_DispatchFoundAtOnce(t *testing.T) {
	day := flex.Day{Year: 2026, Month: time.January, Dom: 14}
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.now = day.Period(34).Start()
		id := y.battery(t, day)
		y.prices(t, day.Span(), 200)
		var d store.Dispatch
		y.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
			d, err = tx.AddDispatch(ctx, store.Dispatch{Market: "wholesale", Span: flex.Span{From: day.Period(36).Start(), To: day.Period(37).End()},
				Assets: []store.DispatchedAsset{{ID: id, Power: -3000, Without: []flex.Watts{0, 0}}}})
			return err
		})
		y.accepted(t, d.ID, 0)
		y.now = day.Period(40).Start()

		done := make(chan error, 1)
		locks := storetest.At(t, y.db, url)
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			first := store.FlexEvent{
				SiteID: y.site, AssetID: id, Day: day, First: 35, Last: 36, Span: flex.Span{From: day.Period(35).Start(), To: day.Period(36).End()},
				Meant: []flex.WattHours{-1500, -1500}, Nominated: []flex.WattHours{0, 0},
			}
			if _, err := tx.EventSpans(ctx, id, first.Span); err != nil {
				return err
			}

			if _, err := tx.AddFlexEvent(ctx, &first); err != nil {
				return err
			}
			go func() {
				_, err := y.service.SettleEvents(context.Background())
				done <- err
			}()

			for y.db.Engine() == "postgres" && len(done) == 0 {
				if locks.Count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
					break
				}
				runtime.Gosched()
			}
			return nil
		})

		if err := <-done; err != nil {
			t.Fatal(err)
		}
		found := locks.Strings(`SELECT CAST(first AS TEXT) || '-' || CAST(last AS TEXT) FROM flex_event ORDER BY first`)
		if got := strings.Join(found, " "); got != "35-36 37-37" {
			t.Errorf("events %s, want 35-36 37-37", got)
		}
	})
}
