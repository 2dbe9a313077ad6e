package books

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Service closes, reports and exports the books of every organisation.
type Service struct {
	DB *store.DB
}

// CloseMax is the number of months that one call closes at most.
const CloseMax = 120

// Close closes a month, and before it every earlier month that is still open. It returns them,
// the oldest first. It is a Conflict if the month is not over in London, is closed already, or
// comes after more than CloseMax open months.
func (s *Service) Close(
	ctx context.Context,
	org flex.OrgID,
	month ledger.Month,
	by string,
) ([]store.ClosedMonth, error) {
	var done []store.ClosedMonth
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		done = nil

		closed, err := tx.LockBooks(ctx)
		if err != nil {
			return err
		}

		today := flex.DayAt(tx.Now())
		if !month.Before(ledger.MonthOf(today)) {
			return flex.Fail(
				flex.Conflict,
				"%s is not over: it may be closed from %s on",
				month,
				month.Next().First(),
			)
		}

		if !closed.Before(month) {
			return flex.Fail(
				flex.Conflict,
				"%s is closed already; the last closed month is %s",
				month,
				closed,
			)
		}

		next, err := firstToClose(ctx, tx, closed, month)
		if err != nil {
			return err
		}

		for m := next; !month.Before(m); m = m.Next() {
			if len(done) == CloseMax {
				return flex.Fail(
					flex.Conflict,
					"%s to %s are more than %d months: close an earlier one first",
					next,
					month,
					CloseMax,
				)
			}

			c, err := tx.CloseMonth(ctx, m, by)
			if err != nil {
				return fmt.Errorf("close %s: %w", m, err)
			}

			done = append(done, c)
		}

		return nil
	})

	return done, err
}

// firstToClose returns the oldest open month: the one after the last closed month, else the
// first month of the books, but never one after the month to close.
func firstToClose(
	ctx context.Context,
	tx *store.Tx,
	closed, month ledger.Month,
) (ledger.Month, error) {
	if closed != (ledger.Month{}) {
		return closed.Next(), nil
	}

	first, err := tx.FirstBooked(ctx)
	if err != nil || first == (flex.Day{}) ||
		month.Before(ledger.MonthOf(first)) {
		return month, err
	}

	return ledger.MonthOf(first), nil
}

// Months returns the organisation's closed months, the newest first.
func (s *Service) Months(
	ctx context.Context,
	org flex.OrgID,
) ([]store.ClosedMonth, error) {
	var months []store.ClosedMonth
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		months, err = tx.ClosedMonths(ctx)
		return err
	})

	return months, err
}

// Balance is a trial balance, and whether it can still change.
type Balance struct {
	ledger.TrialBalance
	Closed bool
}

// Balance returns the trial balance as of the end of a day, with the movements of the day's
// month up to then. The zero day is today.
func (s *Service) Balance(
	ctx context.Context,
	org flex.OrgID,
	day flex.Day,
) (Balance, error) {
	var b Balance
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if day == (flex.Day{}) {
			day = flex.DayAt(tx.Now())
		}

		closed, err := tx.LastClosedMonth(ctx)
		if err != nil {
			return err
		}

		month := ledger.MonthOf(day)
		b.Closed = !closed.Before(month)
		b.TrialBalance, err = tx.TrialBalance(ctx, month.First(), day)

		return err
	})

	return b, err
}

// CloseDue closes the months of organisations that have set close_books_after_days, that many
// days after their end. It is a background job.
func (s *Service) CloseDue(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(ctx, s.DB.OrgsBy((*store.All).OrgIDs), s.CloseDueOf)
}

// CloseDueOf is CloseDue for one organisation.
func (s *Service) CloseDueOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	var o flex.Org
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		o, err = tx.OrgRecord(ctx)
		return err
	})
	if err != nil {
		return worker.Report{}, err
	}

	did, err := s.closeMonthDue(ctx, o)

	return worker.Report{Count: did}, err
}

// NextClose returns when a month of the organisation is closed automatically next. If one is
// due, that is the transaction's instant, unless after is not before it: then it is when the
// next month is due. It is zero if the organisation has not set close_books_after_days.
func NextClose(
	tx *store.Tx,
	ctx context.Context,
	after time.Time,
) (time.Time, error) {
	o, err := tx.OrgRecord(ctx)
	days := o.Settings.Books.CloseAfterDays
	if err != nil || days == 0 {
		return time.Time{}, err
	}

	closed, err := tx.LastClosedMonth(ctx)
	due := lastOver(flex.DayAt(tx.Now()), days)
	if err != nil || closed.Before(due) && after.Before(tx.Now()) {
		return tx.Now(), err
	}

	return due.Next().Next().First().Add(days).Start(), nil
}

// Automatic is recorded as who closed a month that CloseDue closed.
const Automatic = "flexd, by close_books_after_days"

// closeMonthDue closes the newest month that has been over for the organisation's number of days,
// unless it is closed already.
func (s *Service) closeMonthDue(
	ctx context.Context,
	o flex.Org,
) (int, error) {
	if o.Settings.Books.CloseAfterDays == 0 {
		return 0, nil
	}

	var due, closed ledger.Month
	err := s.DB.Read(ctx, o.ID, func(tx *store.Tx) error {
		due = lastOver(flex.DayAt(tx.Now()), o.Settings.Books.CloseAfterDays)

		var err error
		closed, err = tx.LastClosedMonth(ctx)
		return err
	})
	if err != nil || !closed.Before(due) {
		return 0, err
	}

	months, err := s.Close(ctx, o.ID, due, Automatic)
	if flex.KindOf(err) == flex.Conflict {
		return 0, nil // somebody closed it in between
	}

	return len(months), err
}

// lastOver returns the newest month that ended at least a number of days before the day.
func lastOver(today flex.Day, days int) ledger.Month {
	return ledger.MonthOf(ledger.MonthOf(today.Add(-days)).First().Add(-1))
}
