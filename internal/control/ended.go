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
func (s *Service) QueueEnded(ctx context.Context) (worker.Report, error) {
	return s.eachOrg(
		ctx,
		"queue ended sessions",
		endedMax,
		func(org flex.OrgID) (int, error) {
			var n int
			err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
				var err error
				n, err = tx.QueueEnded(
					ctx,
					tx.Now().Add(-EndedWithin),
					endedMax,
				)

				return err
			})

			return n, err
		},
	)
}

// eachOrg takes a step for each organisation, again and again while the step finds as much as it
// takes on at once. What it does is named in its errors.
func (s *Service) eachOrg(
	ctx context.Context,
	what string,
	most int,
	step func(flex.OrgID) (int, error),
) (worker.Report, error) {
	var orgs []flex.Org
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		orgs, err = all.Orgs(ctx)
		return err
	})
	if err != nil {
		return worker.Report{}, fmt.Errorf("list organisations: %w", err)
	}

	var done worker.Report
	for _, org := range orgs {
		for n := most; n == most; {
			n, err = step(org.ID)
			if err != nil {
				return done, fmt.Errorf("%s of %s: %w", what, org.Name, err)
			}
			done.Did += n
		}
	}

	return done, nil
}
