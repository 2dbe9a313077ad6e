package reward_test

import (
	"context"
	"runtime"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// alongside has something begin before the transaction that begins it is committed: on
// PostgreSQL it waits for that, or is done.
func (y *fixture) alongside(t *testing.T, do func() error) chan error {
	t.Helper()
	const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	done := make(chan error, 1)
	go func() { done <- do() }()
	if y.db.Engine() != "postgres" {
		return done
	}

	locks := storetest.At(t, y.db, y.url)
	for len(done) == 0 && locks.Count(waiting) == 0 {
		runtime.Gosched()
	}

	return done
}

// The user withdraws all of 2500 p while an operator takes 1000 p of it back, which is still
// in the balance: the withdrawal waits for that, and is refused.
func TestWithdraw_TakenBackBeside(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.earn(t, 25)
		v := y.visit(t, reward.LinkOptions{})
		y.link(t, v)
		form := y.form(t)

		withdraw := func() error {
			_, err := y.service.Withdraw(context.Background(), v, 2500, form)
			return err
		}

		var done chan error
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.LockBooks(ctx); err != nil {
				return err
			}

			done = y.alongside(t, withdraw)
			_, err := tx.Post(ctx, &ledger.Booked{Transaction: ledger.Transaction{
				Key:      "taken back",
				Kind:     ledger.Correction,
				SiteID:   y.site,
				Time:     flex.Span{From: tx.Now()},
				Cause:    ledger.Cause{By: "ada", Reason: "given by mistake"},
				Postings: ledger.Given(-1000),
			}})
			return err
		})

		if err := <-done; flex.KindOf(err) != flex.Conflict {
			t.Errorf("withdrew what was taken back: %v", err)
		}
		if got := y.balance(t); got != 1500 {
			t.Errorf("the balance is %s", got)
		}
		y.sound(t)
	})
}

// The hook that checks names is set by two operators at once: both succeed, and the second counts.
func TestSetPayeeHook_AtOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		set := func() error {
			return y.service.SetPayeeHook(
				context.Background(),
				y.org,
				"https://second.example.com",
				hookSecret,
			)
		}

		var done chan error
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			err := tx.PutPayeeHook(ctx, store.PayeeHook{URL: "https://first.example.com", Secret: hookSecret})
			done = y.alongside(t, set)
			return err
		})
		if err := <-done; err != nil {
			t.Errorf("the second: %v", err)
		}

		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			h, err := tx.PayeeHook(ctx)
			if err == nil && (h == nil || h.URL != "https://second.example.com") {
				t.Errorf("the hook is %+v", h)
			}
			return err
		})
	})
}
