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
	// Retention is the least age at which records are deleted that control no longer needs:
	// events of assets, replaced schedules, the prices that plans were made with, the
	// publications that a fleet was planned for, finished rows of the outbox, jobs that failed
	// permanently, past orders and limits of feeders, and plans of deleted tanks.
	Retention = 90 * 24 * time.Hour
	// purgeMax is how many records of a kind are deleted in one transaction, and purgeSessions
	// for how many sessions replaced schedules are deleted in one.
	purgeMax, purgeSessions = 5000, 200
)

// Purge deletes control's records that are past their retention. It leaves the newest schedule
// of each session, everything by which a session's flex events are found, and everything that
// explains a schedule in force.
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

// purges returns the functions that delete records of all organisations from before an
// instant. Each deletes at most purgeMax records and returns their number.
func (s *Service) purges() []func(context.Context, time.Time) (int64, error) {
	return []func(context.Context, time.Time) (int64, error){
		s.purgeEvents, s.purgeCurves, s.purgeSent, s.purgeJobs, s.purgeOrders, s.purgeLimits,
		s.purgeTanks,
	}
}

// purgeUntilDone repeats a transaction until it deletes less than it may.
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

// purgeCurves finds what it deletes on a snapshot, so that no write waits for the search.
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

// purgeSent works as purgeCurves does.
func (s *Service) purgeSent(
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

// purgeJobs deletes jobs that failed permanently.
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

// purgeOrders deletes the requests of past OpenADR events.
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

// purgeLimits deletes past limits of feeders.
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

// purgeTanks works as purgeCurves does.
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
