package control

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

const (
	// KeptFor is the least time for which control keeps records that nothing needs any more: events of
	// assets, replaced schedules, the prices that plans were made on, finished rows of
	// the outbox, jobs that failed for good, orders and limits of feeders that are over,
	// and plans of tanks that were deleted.
	KeptFor = 90 * 24 * time.Hour
	// forgetMax is how many records of a kind are forgotten in one transaction, and
	// forgetSessions of how many sessions the superseded schedules are.
	forgetMax, forgetSessions = 5000, 200
)

// Purge deletes control's records that are past their retention. The newest
// schedule of each session stays with it, and so does all that a session's flex events are
// still to be found by, or that explains a schedule in force.
func (d *Service) Purge(ctx context.Context) (worker.Report, error) {
	retain := cmp.Or(d.Retain, KeptFor)
	var orgs []flex.Org
	err := d.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		orgs, err = all.Orgs(ctx)
		return err
	})

	var r worker.Report
	for i := 0; i < len(orgs) && err == nil; i++ {
		err = forgetUntilDone(ctx, &r, forgetSessions, func() (int64, error) {
			var n int64
			err := d.DB.Write(ctx, orgs[i].ID, func(tx *store.Tx) error {
				of, err := tx.DropSuperseded(
					ctx,
					tx.Now().Add(-retain),
					forgetSessions,
				)

				n = int64(of)
				return err
			})

			return n, err
		})
	}

	for _, drop := range d.forgets() {
		if err == nil {
			err = forgetUntilDone(ctx, &r, forgetMax, func() (int64, error) {
				return drop(ctx, d.DB.Now().Add(-retain))
			})
		}
	}

	if err != nil {
		return r, fmt.Errorf("let control's records go: %w", err)
	}

	return r, nil
}

// forgets are what delete the records of all organisations that came before an instant, so many at most.
func (d *Service) forgets() []func(context.Context, time.Time) (int64, error) {
	return []func(context.Context, time.Time) (int64, error){
		d.forgetEvents, d.forgetCurves, d.forgetSettled, d.forgetJobs, d.forgetOrders, d.forgetLimits,
		d.forgetTanks,
	}
}

// forgetUntilDone repeats a transaction until it finds less than it may take.
func forgetUntilDone(
	ctx context.Context,
	r *worker.Report,
	most int64,
	drop func() (int64, error),
) error {
	for n := most; n == most; {
		var err error
		err = ctx.Err()
		if err == nil {
			n, err = drop()
		}

		if err != nil {
			return err
		}

		r.Did += int(n)
	}

	return nil
}

func (d *Service) forgetEvents(
	ctx context.Context,
	before time.Time,
) (int64, error) {
	var n int64
	err := d.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		n, err = all.DropEvents(ctx, before, forgetMax)
		return err
	})

	return n, err
}

// forgetCurves looks for what it forgets on a snapshot, so that no write waits for that.
func (d *Service) forgetCurves(
	ctx context.Context,
	before time.Time,
) (int64, error) {
	var old []store.CurveID
	err := d.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		old, err = all.OldCurves(ctx, before, forgetMax)
		return err
	})
	if err != nil || len(old) == 0 {
		return 0, err
	}

	return int64(len(old)), d.DB.WriteAll(ctx, func(all *store.All) error {
		return all.DropCurves(ctx, old)
	})
}

// forgetSettled does as forgetCurves.
func (d *Service) forgetSettled(
	ctx context.Context,
	before time.Time,
) (int64, error) {
	var old []flex.EventID
	err := d.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		old, err = all.OldSettled(ctx, before, forgetMax)
		return err
	})
	if err != nil || len(old) == 0 {
		return 0, err
	}

	return int64(len(old)), d.DB.WriteAll(ctx, func(all *store.All) error {
		return all.DropSettled(ctx, before, old)
	})
}

// forgetJobs forgets the jobs that failed for good.
func (d *Service) forgetJobs(
	ctx context.Context,
	before time.Time,
) (int64, error) {
	var n int64
	err := d.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		n, err = all.DropFailedJobs(ctx, before, forgetMax)
		return err
	})

	return n, err
}

// forgetOrders forgets what OpenADR events asked for.
func (d *Service) forgetOrders(
	ctx context.Context,
	before time.Time,
) (int64, error) {
	var n int64
	err := d.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		n, err = all.DropADROrders(ctx, before, forgetMax)
		return err
	})

	return n, err
}

// forgetLimits forgets what feeders were limited to.
func (d *Service) forgetLimits(
	ctx context.Context,
	before time.Time,
) (int64, error) {
	var n int64
	err := d.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		n, err = all.DropOverCapLimits(ctx, before, forgetMax)
		return err
	})

	return n, err
}

func (d *Service) forgetTanks(
	ctx context.Context,
	before time.Time,
) (int64, error) {
	var n int64
	err := d.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		n, err = all.DropTankPlans(ctx, before, forgetMax)
		return err
	})

	return n, err
}
