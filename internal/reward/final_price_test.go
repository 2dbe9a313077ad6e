package reward_test

import (
	"testing"
	"time"

	"flexd/internal/store/storetest"
)

// An event that became final without the price of a half-hour is corrected in the others, and
// that half-hour is credited once its price comes. At £250 and a share of a half, 801 Wh are
// worth 10 p, and so are 831 Wh.
func TestSettleEvents_CorrectedWithoutAPrice(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday, v := pausedMonday(t, url)
		y.exec(t, `DELETE FROM price WHERE start_at = $1`, monday.Period(36).Start().UnixMicro())
		y.kwh(t, monday, v.Metered)
		y.now = clock("2025-03-31 23:00")
		y.events(t)
		if got := y.history(t); got != "flex event 10p" {
			t.Fatalf("final: %s", got)
		}

		y.now = y.now.Add(time.Hour)
		y.kwh(t, monday, map[string]string{"35": "0.921"}) // as much as usual
		y.events(t)
		if got := y.history(t); got != "flex event 10p, correction -10p" {
			t.Errorf("corrected: %s", got)
		}

		y.now = y.now.Add(time.Hour)
		y.prices(t, monday.Span(), 250)
		y.events(t)
		if got := y.history(t); got != "flex event 10p, correction -10p, flex period top-up 10p" {
			t.Errorf("with the price: %s", got)
		}
	})
}

// An event that became final with its prices, and lacks them when a reading of it is
// corrected, waits for them: nothing that rests on them is taken back.
func TestSettleEvents_CorrectedWhilePricesAreGone(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday := settledMonday(t, url)
		y.now = clock("2025-03-31 23:00")
		y.events(t)
		y.exec(t, `DELETE FROM price`)

		for _, kwh := range []string{"0.500", "0.921"} {
			y.now = y.now.Add(time.Hour)
			y.kwh(t, monday, map[string]string{"35": kwh})
			y.events(t)
			if got := y.history(t); got != "flex event 20p" {
				t.Errorf("without prices: %s", got)
			}
		}

		y.now = y.now.Add(time.Hour)
		y.prices(t, monday.Span(), 250)
		y.events(t)
		if got := y.history(t); got != "flex event 20p, correction -10p" {
			t.Errorf("with prices again: %s", got)
		}
	})
}
