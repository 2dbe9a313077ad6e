package books

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// Ages are the upper bounds, in days, of the ages by which what is owed is reported. What is
// older is a class of its own.
var Ages = [...]int{30, 90, 365}

// Owed is what is owed to users and not yet paid, as of the end of a day.
type Owed struct {
	AsOf  flex.Day
	Sites int        // whose balance is above nothing
	Total flex.Pence // of those balances
	// the total, by the age of what earned it
	ByAge [len(Ages) + 1]flex.Pence
	// asked for, and not yet at the users' banks
	InFlight flex.Pence
	// balances below nothing, as a positive amount
	Overdraw flex.Pence
}

// Owed returns what is owed to users as of the end of a day; the zero day is today. What was
// withdrawn counts against what was earned first.
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

// add counts a site in, whose days come from the newest to the oldest.
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

// ageClass returns the class of age that a day belongs to.
func ageClass(day, today flex.Day) int {
	for i, most := range Ages {
		if !day.Start().Before(today.Add(-most).Start()) {
			return i
		}
	}

	return len(Ages)
}

// DefaultUnclaimedDays is how long the balance of an offboarded site rests before it may be
// moved: six years, after which a debt is no longer enforced in England and Wales.
const DefaultUnclaimedDays = 2192

// UnclaimedMax is the number of balances that one call moves.
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

		// Nobody else posts between the look at the balances and these postings.
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
