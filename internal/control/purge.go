package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

const (
	// Retention is the least time for which control keeps records that nothing needs any more:
	// events of assets, replaced schedules, the prices that plans were made on, which
	// publications a fleet was planned on, finished rows of the outbox, jobs that failed for
	// good, orders and limits of feeders that are over, and plans of tanks that were deleted.
	Retention = 90 * 24 * time.Hour
	// purgeMax is how many records of a kind are deleted in one transaction, and
	// purgeSessions of how many sessions the superseded schedules are.
	purgeMax, purgeSessions = 5000, 200
)

// Purge deletes control's records that are past their retention. The newest
// schedule of each session stays with it, and so does all that a session's flex events are
// still to be found by, or that explains a schedule in force.
func (s *Service) Purge(ctx context.Context) (worker.Report, error) {
	retain := cmp.Or(s.Retain, Retention)
	r, err := worker.EachOrg(ctx, s.DB.OrgsBy((*store.All).OrgIDs), func(ctx context.Context, org flex.OrgID) (worker.Report, error) {
		var n, waves int
		err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
			before := tx.Now().Add(-retain)

			var err error
			n, err = tx.DropSuperseded(ctx, before, purgeSessions)
			if err == nil {
				waves, err = tx.DropWaves(ctx, before, purgeMax)
			}
			return err
		})

		return worker.Report{Count: n + waves, More: n == purgeSessions || waves == purgeMax}, err
	})

	for _, drop := range s.purges() {
		err = errors.Join(err, purgeUntilDone(ctx, &r, purgeMax, func() (int64, error) {
			return drop(ctx, s.DB.Now().Add(-retain))
		}))
	}

	if err != nil {
		return r, fmt.Errorf("purge control's records: %w", err)
	}

	return r, nil
}

// purges are what delete the records of all organisations that came before an instant, at most
// a batch of them.
func (s *Service) purges() []func(context.Context, time.Time) (int64, error) {
	return []func(context.Context, time.Time) (int64, error){
		s.purgeEvents, s.purgeCurves, s.purgeSettled, s.purgeJobs, s.purgeOrders, s.purgeLimits,
		s.purgeTanks,
	}
}

// purgeUntilDone repeats a transaction until it finds less than it may take.
func purgeUntilDone(
	ctx context.Context,
	r *worker.Report,
	most int64,
	drop func() (int64, error),
) error {
	for n := most; n == most; {
		err := ctx.Err()
		if err == nil {
			n, err = drop()
		}

		if err != nil {
			return err
		}

		r.Count += int(n)
	}

	return nil
}

func (s *Service) purgeEvents(
	ctx context.Context,
	before time.Time,
) (int64, error) {
	var n int64
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		n, err = all.DropEvents(ctx, before, purgeMax)
		return err
	})

	return n, err
}

// purgeCurves looks for what it deletes on a snapshot, so that no write waits for that.
func (s *Service) purgeCurves(
	ctx context.Context,
	before time.Time,
) (int64, error) {
	var old []store.CurveID
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		old, err = all.OldCurves(ctx, before, purgeMax)
		return err
	})
	if err != nil || len(old) == 0 {
		return 0, err
	}

	return int64(len(old)), s.DB.WriteAll(ctx, func(all *store.All) error {
		return all.DropCurves(ctx, old)
	})
}

// purgeSettled does as purgeCurves.
func (s *Service) purgeSettled(
	ctx context.Context,
	before time.Time,
) (int64, error) {
	var old []flex.EventID
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		old, err = all.OldSent(ctx, before, purgeMax)
		return err
	})
	if err != nil || len(old) == 0 {
		return 0, err
	}

	return int64(len(old)), s.DB.WriteAll(ctx, func(all *store.All) error {
		return all.DropSent(ctx, before, old)
	})
}

// purgeJobs deletes the jobs that failed for good.
func (s *Service) purgeJobs(
	ctx context.Context,
	before time.Time,
) (int64, error) {
	var n int64
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		n, err = all.DropFailedJobs(ctx, before, purgeMax)
		return err
	})

	return n, err
}

// purgeOrders deletes what OpenADR events asked for.
func (s *Service) purgeOrders(
	ctx context.Context,
	before time.Time,
) (int64, error) {
	var n int64
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		n, err = all.DropADROrders(ctx, before, purgeMax)
		return err
	})

	return n, err
}

// purgeLimits deletes what feeders were limited to.
func (s *Service) purgeLimits(
	ctx context.Context,
	before time.Time,
) (int64, error) {
	var n int64
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		n, err = all.DropOverCapLimits(ctx, before, purgeMax)
		return err
	})

	return n, err
}

// purgeTanks does as purgeCurves.
func (s *Service) purgeTanks(
	ctx context.Context,
	before time.Time,
) (int64, error) {
	var old []flex.AssetID
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		old, err = all.OldTankPlans(ctx, before, purgeMax)
		return err
	})
	if err != nil || len(old) == 0 {
		return 0, err
	}

	return int64(len(old)), s.DB.WriteAll(ctx, func(all *store.All) error {
		return all.DropTankPlans(ctx, before, old)
	})
}
