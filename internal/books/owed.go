package books

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// Ages are the upper bounds, in days, of the age classes in which the amount owed is reported.
// There is one more class for what is older.
var Ages = [...]int{30, 90, 365}

// Owed is what is owed to users and not yet paid, as of the end of a day.
type Owed struct {
	AsOf  flex.Day
	Sites int        // with a positive balance
	Total flex.Pence // of the positive balances
	// Total by age, counted from the day of the credit
	ByAge [len(Ages) + 1]flex.Pence
	// withdrawals that were requested and are not yet at the users' banks
	InFlight flex.Pence
	// sum of the negative balances, as a positive amount
	Overdraw flex.Pence
}

// Owed returns what is owed to users as of the end of a day; the zero day is today.
// Withdrawals count against the oldest credits first.
func (s *Service) Owed(
	ctx context.Context,
	org flex.OrgID,
	day flex.Day,
) (Owed, error) {
	var o Owed
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if day == (flex.Day{}) {
			day = flex.DayAt(tx.Now())
		}

		o = Owed{AsOf: day}

		var site []store.DayOfBalance
		err := tx.BalanceDays(ctx, day, func(d store.DayOfBalance) error {
			if len(site) > 0 && site[0].SiteID != d.SiteID {
				o.add(site)
				site = site[:0]
			}

			site = append(site, d)
			return nil
		})
		if err != nil {
			return err
		}

		o.add(site)

		balance, err := tx.TrialBalance(ctx, day, day)
		for _, l := range balance.Lines {
			if l.Account == ledger.PayoutsInFlight {
				o.InFlight = -l.Closing()
			}
		}

		return err
	})

	return o, err
}

// add adds one site's days, which are sorted from the newest to the oldest.
func (o *Owed) add(days []store.DayOfBalance) {
	var balance flex.Pence
	for _, d := range days {
		balance += d.Credit
	}

	if balance <= 0 {
		o.Overdraw -= balance
		return
	}

	o.Sites++
	o.Total += balance
	left := balance

	for _, d := range days {
		part := min(left, max(0, d.Credit))
		o.ByAge[ageClass(d.Day, o.AsOf)] += part
		left -= part
	}
}

// ageClass returns the index in ByAge of a credit's day.
func ageClass(day, today flex.Day) int {
	for i, most := range Ages {
		if !day.Start().Before(today.Add(-most).Start()) {
			return i
		}
	}

	return len(Ages)
}

// DefaultUnclaimedDays is for how long the balance of an offboarded site must be unchanged
// before it may be moved: six years, after which a debt cannot be enforced any more in England
// and Wales.
const DefaultUnclaimedDays = 2192

// UnclaimedMax is the number of balances that one call moves at most.
const UnclaimedMax = 1000

// Unclaimed is the balance of an offboarded site, and whether it may be moved.
type Unclaimed struct {
	SiteID    flex.SiteID
	Balance   flex.Pence
	LastMoved time.Time
	Due       bool
}

// Unclaimed returns the balances of sites that are offboarded, the oldest first.
func (s *Service) Unclaimed(
	ctx context.Context,
	org flex.OrgID,
) ([]Unclaimed, error) {
	var us []Unclaimed
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		us, err = unclaimed(ctx, tx)
		return err
	})

	return us, err
}

// unclaimed is Unclaimed within a transaction.
func unclaimed(ctx context.Context, tx *store.Tx) ([]Unclaimed, error) {
	o, err := tx.OrgRecord(ctx)
	if err != nil {
		return nil, err
	}

	days := o.Settings.Books.UnclaimedDays
	if days == 0 {
		days = DefaultUnclaimedDays
	}

	found, err := tx.UnclaimedBalances(ctx)
	us := make([]Unclaimed, len(found))

	for i, u := range found {
		due := !tx.Now().Before(u.LastMoved.AddDate(0, 0, days))
		us[i] = Unclaimed{
			u.SiteID,
			u.Balance,
			u.LastMoved,
			due && u.Balance > 0,
		}
	}

	return us, err
}

// MoveUnclaimed moves the balances that are due to the account of unclaimed balances, and
// returns them.
func (s *Service) MoveUnclaimed(
	ctx context.Context,
	org flex.OrgID,
	by, reason string,
) ([]Unclaimed, error) {
	if err := checkText("a reason", reason); err != nil {
		return nil, err
	}

	var moved []Unclaimed
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		moved = nil

		// Nobody else posts between reading the balances and these postings.
		if _, err := tx.LockBooks(ctx); err != nil {
			return err
		}

		us, err := unclaimed(ctx, tx)
		if err != nil {
			return err
		}

		for _, u := range us {
			if !u.Due || len(moved) == UnclaimedMax {
				continue
			}

			t := ledger.Booked{}
			t.Key = "unclaimed:" + u.SiteID.String() + ":" +
				flex.DayAt(u.LastMoved).String()
			t.Kind, t.SiteID = ledger.Correction, u.SiteID
			t.Cause, t.Postings = ledger.Cause{By: by, Reason: reason}, ledger.Unclaimed(u.Balance)
			if _, err := tx.Post(ctx, &t); err != nil {
				return err
			}

			moved = append(moved, u)
		}

		return nil
	})

	return moved, err
}
