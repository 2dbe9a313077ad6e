package reward_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// Two processes take withdrawals of one household at once, and settle a correction of what it
// earned from £25 to £12, each as often as the other. What is withdrawn is never more than was
// there, the correction is posted once, and the debt that is left is made up for before
// anything is withdrawn again.
func TestWithdraw_CorrectedInTwoProcesses(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := &home{fixture: open(t, url), t: t}
		h.account(1)
		h.earnOn(14, 1250)
		h.link(t, h.visit(t, reward.LinkOptions{}))
		other := &reward.Service{DB: storetest.Open(t, url, store.Options{Now: func() time.Time { return h.now }})}
		services := []*reward.Service{h.service, other}
		visit := h.visit(t, reward.LinkOptions{})
		h.write(t, func(ctx context.Context, tx *store.Tx) error {
			at := clock("2026-01-14 22:00")
			return tx.PutReadings(ctx, []flex.Reading{{AssetID: h.asset, Span: flex.Span{From: at, To: at.Add(30 * time.Minute)}, Label: flex.ChargerEnergy, Value: 600e6}})
		})

		var asked atomic.Int64
		var wg sync.WaitGroup

		for _, s := range services {
			for range 6 {
				form := h.form(t)
				wg.Go(func() {
					w, err := s.Withdraw(t.Context(), visit, 1000, form)
					if err == nil {
						asked.Add(int64(w.Amount))
					} else if kind := flex.KindOf(err); kind != flex.Conflict && kind != flex.Malformed {
						t.Error(err)
					}
				})

				wg.Go(func() {
					if _, err := s.SettleSessions(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		}

		wg.Wait()
		h.jobs()

		taken := flex.Pence(asked.Load())
		if taken != 1000 && taken != 2000 {
			t.Errorf("%s were withdrawn of £25.00, corrected to £12.00", taken)
		}
		if got := h.balance(t); got != 1200-taken {
			t.Errorf("the balance is %s after %s were withdrawn of £12.00", got, taken)
		}

		if _, err := other.Withdraw(t.Context(), visit, 1000, h.form(t)); err == nil {
			t.Error("a household withdraws more than it has")
		}
		if got := h.history(t); strings.Count(got, "correction") != 1 || strings.Count(got, "flex event") != 1 {
			t.Errorf("it was credited %s", got)
		}
		h.sound(t)
	})
}
