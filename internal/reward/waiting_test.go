package reward_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestSettleEvents_WaitsForAPrice has an event whose readings are there and whose price is
// not: it is looked at ever more seldom, and at once when the price comes.
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

// An event that waits for a half-hour is settled when the powers are there that cover it, also
// where these begin before it: the hour's, or pieces of twenty minutes.
func TestSettleEvents_WaitsForPowersThatBeginBefore(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pieces [][2]time.Duration // from the beginning of the hour
	}{
		{"of an hour", [][2]time.Duration{{0, time.Hour}}},
		{"of twenty minutes", [][2]time.Duration{{20 * time.Minute, 40 * time.Minute}, {40 * time.Minute, time.Hour}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				h := newHome(t, url, 1, 100)
				power := func(back int, piece [2]time.Duration, kw float64) {
					hour := h.monday.Add(-back).Period(homeSlot - 1).Start()
					span := flex.Span{From: hour.Add(piece[0]), To: hour.Add(piece[1])}
					h.put = append(h.put, flex.Reading{AssetID: h.asset, Span: span, Label: flex.BoundaryImportPower, Value: flex.Micro(kw * 1e6)})
				}

				for back := range homeDays {
					power(back+1, [2]time.Duration{0, time.Hour}, 8)
				}
				if got := h.pause(h.asset); got != "missing 1: " {
					t.Fatalf("without readings: %q", got)
				}

				for _, piece := range tt.pieces {
					power(0, piece, 4)
					h.flush()
					h.now = h.now.Add(time.Minute)
					h.fixture.events(t)
				}
				if got := h.said(); got != "-2000 Wh: 20p" {
					t.Errorf("with readings: %q", got)
				}
			})
		})
	}
}
