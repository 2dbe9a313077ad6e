package control

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

const (
	// EndedWithin is how far back QueueEnded looks: a rolling upgrade that takes longer leaves
	// sessions unsettled, which flexd verify shows.
	EndedWithin = time.Hour
	// endedMax is how many sessions are queued in one transaction.
	endedMax = 1000
)

// QueueEnded queues the settlement of sessions that ended without it. The program queues it with
// the end itself; only a process of the release before, beside which this one may run during an
// upgrade, relies on triggers that the new schema no longer has.
func (d *Service) QueueEnded(ctx context.Context) (worker.Report, error) {
	var orgs []flex.Org
	err := d.DB.ReadAll(ctx, func(all *store.All) (err error) {
		orgs, err = all.Orgs(ctx)
		return err
	})
	if err != nil {
		return worker.Report{}, fmt.Errorf("list organisations: %w", err)
	}

	var done worker.Report
	for _, org := range orgs {
		for n := endedMax; n == endedMax; {
			err := d.DB.Write(ctx, org.ID, func(tx *store.Tx) (err error) {
				n, err = tx.QueueEnded(ctx, tx.Now().Add(-EndedWithin), endedMax)
				return err
			})
			if err != nil {
				return done, fmt.Errorf("queue ended sessions of %s: %w", org.Name, err)
			}

			done.Did += n
		}
	}

	return done, nil
}
