package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// MovePoint decides that a metering point changes its party at an instant, which may be now.
// The current party's site is withdrawn at that instant, with its dispatch consents; the new
// party may enrol it from then, or from when the last party left, whichever is later. It
// reports whether there is another party.
func (s *Service) MovePoint(
	ctx context.Context,
	mpan string,
	to flex.OrgID,
	at time.Time,
) (had bool, from time.Time, err error) {
	core, reason := normalMPAN(mpan)
	if core == "" {
		return false, at, flex.Fail(
			flex.Invalid,
			"%q is not an MPAN: %s",
			mpan,
			reason,
		)
	}

	today := flex.DayAt(s.DB.Now()).Start()
	if at.Before(today) {
		return false, at, flex.Fail(
			flex.Invalid,
			"a change of party cannot begin before today, %s: what was settled until then stays with the party that had the point",
			flex.DayAt(today),
		)
	}

	err = s.DB.WriteAll(ctx, func(all *store.All) error {
		had, from, err = all.DecideMove(ctx, core, to, at)
		return err
	})
	if err != nil {
		return had, from, err
	}

	_, err = s.movePoints(ctx, core)

	return had, from, err
}

// MovePoints is the job that carries out the changes of party that are due. A change that
// fails, or waits because its organisation moves to another database, delays no other.
func (s *Service) MovePoints(ctx context.Context) (worker.Report, error) {
	return s.movePoints(ctx, "")
}

// movePoints is MovePoints for one metering point, or for all if it is empty.
func (s *Service) movePoints(
	ctx context.Context,
	mpan string,
) (worker.Report, error) {
	var due []store.Registration
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		due, err = all.DueMoves(ctx)
		return err
	})
	if err != nil {
		return worker.Report{}, err
	}

	var report worker.Report
	var errs []error

	for _, r := range due {
		if mpan != "" && r.MPAN != mpan {
			continue
		}

		err := s.DB.WriteAll(ctx, func(all *store.All) error {
			return movePoint(ctx, all, r)
		})
		if err == nil {
			report.Count++
			continue
		}

		errs = append(
			errs,
			fmt.Errorf("change the party of a metering point: %w", err),
		)
		if ctx.Err() != nil {
			break
		}
	}

	return report, errors.Join(errs...)
}

// movePoint withdraws the site that has the point and gives the point to the next party. It
// does nothing if the decision was changed, or carried out by another process, since it was
// read. A site that left the point before is not withdrawn.
func movePoint(
	ctx context.Context,
	all *store.All,
	r store.Registration,
) error {
	tx, err := all.For(ctx, r.Org)
	if err != nil {
		return err
	}

	if !r.Site.IsZero() {
		_, err := lockToStop(ctx, tx, r.Site)
		if err != nil && flex.KindOf(err) != flex.NotFound {
			return err
		}
	}

	pending, decided, err := all.LockMove(ctx, r)
	if err != nil || !decided {
		return err
	}

	if pending.To.IsZero() {
		if err := withdrawAll(ctx, tx, pending.Site); err != nil {
			return err
		}
	}

	return all.CompleteMove(ctx, pending)
}

// withdrawAll withdraws a site from all its propositions.
func withdrawAll(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) error {
	for _, p := range flex.Propositions {
		state, err := tx.Enrolment(ctx, site, p)
		if err != nil {
			return err
		}
		if state != flex.Enrolled {
			continue
		}

		err = withdraw(ctx, tx, site, flex.DispatchMethod(p))
		if err != nil {
			return err
		}
	}

	return nil
}
