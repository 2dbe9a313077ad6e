package reward

import (
	"context"
	"errors"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// RepairResult is what a repair checked and posted.
type RepairResult struct {
	Events       int64
	Sessions     int64
	Transactions int // posted
	// to all users together; less than nothing if it was taken back
	Credited flex.Pence
}

// Repair settles the events and sessions of a time once more, as they are known now, and
// posts what that changes, as if a reading of each had come. It is safe to run twice.
func (s *Service) Repair(
	ctx context.Context,
	org flex.OrgID,
	a Resettlement,
) (RepairResult, error) {
	var r RepairResult
	if !a.KnownAt.IsZero() {
		return r, flex.Fail(
			flex.Invalid,
			"what is posted is settled as it is known now: leave the instant out, or do not post",
		)
	}

	if err := a.check(); err != nil {
		return r, err
	}

	span := flex.Span{
		From: a.From.Start(),
		To:   a.To.Add(1).Start(),
	}

	var before int
	var sum flex.Pence
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		var err error
		before, sum, err = tx.Rewarded(ctx)
		if err != nil {
			return err
		}

		r.Events, r.Sessions, err = tx.LookAgainWithin(ctx, a.Site, span)
		return err
	})
	if err != nil {
		return r, err
	}

	// What was posted is counted whether or not all could be settled.
	settleErr := s.settleAllDue(ctx, org, r)
	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		after, now, err := tx.Rewarded(ctx)
		r.Transactions, r.Credited = after-before, now-sum
		return err
	})

	return r, errors.Join(settleErr, err)
}

// settleAllDue settles until nothing is due any more: what fails is put off. A run that
// changes nothing counts as nothing done though more may be due after it, so it ends only
// after as many of these as what was marked may take.
func (s *Service) settleAllDue(
	ctx context.Context,
	org flex.OrgID,
	marked RepairResult,
) error {
	var failed error // of the latest run
	for idle := (marked.Events+marked.Sessions)/dueMax + 1; idle > 0; {
		events, err := eventQueue.Run(ctx, s.DB, org)
		failed = err
		if worker.EndsRun(ctx, failed) {
			return failed
		}

		sessions, err := sessionQueue.Run(ctx, s.DB, org)
		failed = errors.Join(failed, err)
		done, more := events.Count+sessions.Count, events.More || sessions.More
		if worker.EndsRun(ctx, err) || done == 0 && !more {
			return failed
		}

		if done == 0 {
			idle--
		}
	}

	return failed
}
