package control

import (
	"context"
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

// QueueEnded queues the settlement of sessions that ended without it. The program queues it
// with the end itself; only a process of the release before, beside which this one may run
// during an upgrade, relies on triggers that the new schema no longer has.
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
