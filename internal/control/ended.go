package control

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

const (
	// EndedWithin is how far back QueueEnded looks. If a rolling upgrade takes longer,
	// sessions stay unsettled, which flexd verify reports.
	EndedWithin = time.Hour
	// endedMax is how many sessions are queued in one transaction.
	endedMax = 1000
)

// QueueEnded queues the settlement of sessions that ended without it. This release queues it
// in the transaction that ends the session. The previous release relied on triggers, which the
// new schema no longer has, and may still run beside this one during an upgrade.
func (s *Service) QueueEnded(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(ctx, s.DB.OrgsBy((*store.All).OrgIDs), s.queueEndedOf)
}

func (s *Service) queueEndedOf(ctx context.Context, org flex.OrgID) (worker.Report, error) {
	var n int
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		var err error
		n, err = tx.QueueEnded(ctx, tx.Now().Add(-EndedWithin), endedMax)
		return err
	})

	return worker.Report{Count: n, More: n == endedMax}, err
}
