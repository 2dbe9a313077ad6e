package reward_test

import (
	"context"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// books returns the sums of the accounts, as "account sum".
func (y *fixture) books(t *testing.T) string {
	t.Helper()
	seed := storetest.At(t, y.db, y.url)
	return strings.Join(seed.Strings(`SELECT account || ' ' || CAST(SUM(amount) AS TEXT) FROM posting GROUP BY account HAVING SUM(amount) <> 0 ORDER BY account`), ", ")
}

// All revenue is posted, whatever the user's share; without one the user sees nothing of it.
func TestCredit_RevenueWithoutAShare(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday := settledMonday(t, url, "user_share=0")
		if got := y.books(t); got != "market_receivable 41, platform_revenue -41" {
			t.Errorf("in the books: %s", got)
		}

		y.now = y.now.AddDate(0, 0, 1)
		y.kwh(t, monday, map[string]string{"36": "0.140"})
		y.events(t)
		if got := y.books(t); got != "market_receivable 40, platform_revenue -40" {
			t.Errorf("after a correction: %s", got)
		}
		if got := y.history(t); got != "" {
			t.Errorf("the user sees %s", got)
		}
	})
}

// What is owed and not paid yet is accrued, and is no revenue of the platform's.
func TestCredit_Accrued(t *testing.T) {
	for _, crediting := range []string{"month", "event"} {
		t.Run(crediting, func(t *testing.T) {
			y, _ := settledMonday(t, storetest.SQLite(t), "user_share=0.5", "paid_early=0.8", "crediting="+crediting)
			if got := y.books(t); got != "market_receivable 41, platform_revenue -21, rewards_accrued -4, rewards_payable -16" {
				t.Errorf("on the estimate: %s", got)
			}
			y.now = clock("2025-04-01 00:00")
			y.events(t)
			if got := y.books(t); got != "market_receivable 41, platform_revenue -21, rewards_payable -20" {
				t.Errorf("in the end: %s", got)
			}
		})
	}
}

// A month's credit is the sum of its events' shares, or nothing: the same in whatever order
// they are settled. Each event has its line.
func TestCredit_NetsOverAMonth(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		for _, tt := range []struct {
			name, crediting string
			order           [2]int // days after the Monday
			history         string
			balance         flex.Pence
		}{
			{"what earned first", "month", [2]int{0, 1}, "flex event 20p, flex event -12p", 8},
			{"what cost first", "month", [2]int{1, 0}, "flex event 0p, flex event 8p", 8},
			{"by event, what earned first", "event", [2]int{0, 1}, "flex event 20p, flex event 0p", 20},
			{"by event, what cost first", "event", [2]int{1, 0}, "flex event 0p, flex event 20p", 20},
		} {
			t.Run(tt.name, func(t *testing.T) {
				y, monday, v := pausedMonday(t, fresh(t, url))
				y.set(t, "user_share=0.5", "crediting="+tt.crediting)

				tuesday := monday.Add(1)
				y.now = tuesday.Start()
				y.prices(t, tuesday.Span(), -150)
				y.events(t)
				y.write(t, func(ctx context.Context, tx *store.Tx) error {
					a, err := tx.Asset(ctx, y.asset)
					if err != nil {
						return err
					}
					return tx.SetPause(ctx, a, flex.Span{From: tuesday.Period(35).Start(), To: tuesday.Period(36).End()}, 0)
				})

				y.now = tuesday.Period(36).End()
				y.events(t)
				for _, days := range tt.order {
					y.kwh(t, monday.Add(days), v.Metered)
					y.events(t)
				}
				if got, balance := y.history(t), y.balance(t); got != tt.history || balance != tt.balance {
					t.Errorf("%s, balance %s; want %s, %s", got, balance, tt.history, tt.balance)
				}
			})
		}
	})
}

// fresh is the URL of another empty store of the same engine.
func fresh(t *testing.T, url string) string {
	t.Helper()
	if strings.HasPrefix(url, "sqlite:") {
		return storetest.SQLite(t)
	}
	return storetest.Postgres(t)
}
