package reward_test

import (
	"context"
	"runtime"
	"testing"

	"flexd/internal/ledger"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A site is erased while another process settles its event for good, or erases it too: what
// was accrued to it becomes payable once.
func TestLeaving_ErasedAtOnce(t *testing.T) {
	for _, name := range []string{"while its event becomes final", "by two"} {
		t.Run(name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				h := newHome(t, url, 1, 100)
				h.set(t, "paid_early=0.8")
				h.asked()
				h.jobs()

				h.leaves()
				h.now = clock("2025-04-01 00:00")
				done := make(chan error, 1)
				erase := func() {
					done <- h.db.WriteAll(context.Background(), func(all *store.All) error {
						_, err := all.Erase(context.Background(), h.site)
						return err
					})
				}

				locks := storetest.At(t, h.db, url)
				meets := func() {
					go erase()
					for h.db.Engine() == "postgres" && len(done) == 0 {
						if locks.Count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
							return
						}
						runtime.Gosched()
					}
				}

				if name == "by two" {
					h.erased()
					h.write(t, func(ctx context.Context, tx *store.Tx) error { return h.accrue(ctx, tx) })

					err := h.db.WriteAll(t.Context(), func(all *store.All) error {
						_, err := all.Erase(t.Context(), h.site)
						meets()
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
				} else {
					h.becomesFinal(meets)
				}

				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if got := h.owes(); got != "market_receivable 20, rewards_payable -20" {
					t.Errorf("in the books %s", got)
				}
				h.sound(t)
			})
		})
	}
}

// accrue takes what was paid of the site's event back to what is accrued, as an earlier
// release left it.
func (h *home) accrue(ctx context.Context, tx *store.Tx) error {
	b := ledger.Booked{}
	b.Key, b.Kind, b.SiteID, b.Cause = "of an earlier release", ledger.FlexPeriodTopUp, h.site, ledger.Cause{By: "test"}
	b.Postings = ledger.AccruedPayable(-4)
	_, err := tx.Post(ctx, &b)

	return err
}

// becomesFinal pays what was accrued of the site's event as its final settlement does, and
// calls back before it commits.
func (h *home) becomesFinal(before func()) {
	h.t.Helper()
	defer h.exec(h.t, `UPDATE event_credit SET credited = credited + accrued, accrued = 0, early = share`)
	h.write(h.t, func(ctx context.Context, tx *store.Tx) error {
		due, err := tx.DueFlexEvents(ctx, 9)
		if err != nil {
			return err
		}
		held, err := tx.LockFlexEvents(ctx, due)
		if err != nil || len(held) != 1 {
			h.t.Fatalf("%d events are held: %v", len(held), err)
		}

		b := ledger.Booked{}
		b.Key, b.Kind, b.SiteID, b.Cause = "final", ledger.FlexPeriodTopUp, h.site, ledger.Cause{FlexEvent: held[0].ID}
		b.Postings = ledger.AccruedPayable(4)
		if _, err := tx.Post(ctx, &b); err != nil {
			return err
		}
		before()
		return nil
	})
}
