package reward_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A revised price comes in by a process whose clock is ahead of that of the one which settles
// next: the event is settled on it once that clock gets there, too. At £250 it earned 41 p, at
// £300 it earns 49 p.
func TestSettleEvents_RevisedPriceByAClockAhead(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday := settledMonday(t, url, "user_share=1")
		y.now = y.now.Add(time.Hour)

		span := flex.Span{From: monday.Period(35).Start(), To: monday.Period(36).End()}
		prices := []flex.PricedPeriod{
			{Period: monday.Period(35), Price: flex.FromGBPPerMWh(300), Known: true},
			{Period: monday.Period(36), Price: flex.FromGBPPerMWh(300), Known: true},
		}

		err := y.db.WriteAll(t.Context(), func(all *store.All) error {
			p := store.Publication{Source: "test", PublishedAt: y.now.Add(-time.Minute), Span: span}
			_, err := all.AddPublication(t.Context(), p, prices)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		y.now = y.now.Add(-500 * time.Millisecond)
		y.events(t)
		y.now = y.now.Add(time.Second)
		y.events(t)
		if got := y.history(t); got != "flex event 41p, flex period top-up 8p" {
			t.Errorf("revised: %s", got)
		}
	})
}
