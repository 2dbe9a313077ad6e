package reward_test

import (
	"context"
	"runtime"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// Two processes settle events of one site and month at once, also when the site was
// offboarded: each waits for what the other credits, as a month is netted.
func TestCredit_SettledAtOnce(t *testing.T) {
	day := flex.Day{Year: 2026, Month: 1, Dom: 14}
	for _, name := range []string{"registered", "offboarded"} {
		t.Run(name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				h := &home{fixture: open(t, url), t: t}
				if name == "offboarded" {
					h.leaves()
				}

				seen := make(chan flex.Pence, 9) // a transaction may be run again
				other := func() {
					err := h.db.Write(context.Background(), h.org, func(tx *store.Tx) error {
						n, err := tx.NettedCredits(context.Background(), h.site, flex.FlexEventID{2})
						if err == nil {
							seen <- n.Credited
						}

						return err
					})
					if err != nil {
						t.Error(err)
						close(seen)
					}
				}

				locks := storetest.At(t, h.db, url)
				h.write(t, func(ctx context.Context, tx *store.Tx) error {
					if _, err := tx.NettedCredits(ctx, h.site, flex.FlexEventID{1}); err != nil {
						return err
					}

					go other()
					for h.db.Engine() == "postgres" && len(seen) == 0 {
						if locks.Count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
							break
						}
						runtime.Gosched()
					}
					return tx.PutEventCredit(ctx, store.EventCredit{Event: flex.FlexEventID{1}, Site: h.site, Day: day, Netted: true, Share: 7, Early: 7, Credited: 7})
				})

				if got := <-seen; got != 7 {
					t.Errorf("the other reckons with %d p of this one, not 7", got)
				}
				h.exec(t, `DELETE FROM event_credit`)
			})
		})
	}
}
