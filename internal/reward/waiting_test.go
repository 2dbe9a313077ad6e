package reward_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"flexd/internal/pricing"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestSettleEvents_WaitsForAPrice has an event whose readings are there and whose price is not: it is
// looked at ever more seldom, and at once when the price comes.
func TestSettleEvents_WaitsForAPrice(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday, v := pausedMonday(t, url)
		y.set(t, "user_share=1")
		y.kwh(t, monday, v.Metered)

		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			choice := pricing.Choice{Role: pricing.Settlement, Source: "agreed", From: time.UnixMicro(0), SetAt: tx.Now()}
			return tx.ChoosePriceSource(ctx, choice)
		})

		// each look says when the next one is
		end := monday.Period(36).End()
		var planned []time.Time
		for minutes := 0; minutes <= 12*60; minutes += 15 {
			y.now = end.Add(time.Duration(minutes) * time.Minute)
			y.events(t)

			events, _, err := y.service.FlexEvents(t.Context(), y.org, y.site)
			if err != nil || len(events) != 1 {
				t.Fatalf("%d events, %v", len(events), err)
			}
			if next := events[0].LookAt; !slices.ContainsFunc(planned, next.Equal) {
				planned = append(planned, next)
			}
		}

		if len(planned) < 2 || len(planned) > 6 {
			t.Errorf("looks were planned for %v, want two to six in twelve hours", planned)
		}
		if got := y.history(t); got != "" {
			t.Errorf("without a price: %s", got)
		}

		y.now = y.now.Add(time.Minute)
		y.publishAs(t, "agreed", monday, 250)
		y.events(t)
		if got := y.history(t); got != "flex event 41p" {
			t.Errorf("when the price came: %q", got)
		}
	})
}
