package books

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// The kinds of a manual posting.
const (
	Goodwill = ledger.GoodwillCredit
	Signup   = ledger.SignupBonus
	Referred = ledger.ReferredCredit
	Referrer = ledger.ReferrerCredit
)

// DefaultManualLimit is the most that one goodwill, bonus or write-off may be.
const DefaultManualLimit flex.Pence = 5000

// ManualPosting is money that somebody decided to give to a site's user.
type ManualPosting struct {
	SiteID flex.SiteID
	Kind   ledger.Kind
	Amount flex.Pence
	Reason string // the user sees it in the statement
	// a gift with the same kind, site and reference is posted once; without a reference, each time
	Reference string
	By        string // who decided it
}

// Give credits a gift, up to the organisation's limit.
func (s *Service) Give(
	ctx context.Context,
	org flex.OrgID,
	g ManualPosting,
) (ledger.Booked, error) {
	var t ledger.Booked
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Site(ctx, g.SiteID); err != nil {
			return err
		}

		var err error
		t, _, err = s.decided(ctx, tx, g, ledger.Given(g.Amount))
		return err
	})

	return t, err
}

// WriteOff writes off what a site's user owes: it raises a negative balance, to zero at most. The same
// reference again changes nothing.
func (s *Service) WriteOff(
	ctx context.Context,
	org flex.OrgID,
	g ManualPosting,
) (ledger.Booked, error) {
	g.Kind = ledger.Correction

	var t ledger.Booked
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		// Nobody else posts between this posting and reading the balance.
		if _, err := tx.LockBooks(ctx); err != nil {
			return err
		}

		var posted bool
		var err error
		t, posted, err = s.decided(
			ctx,
			tx,
			g,
			ledger.WrittenOff(g.Amount, ledger.RewardsPayable),
		)
		if err != nil || !posted {
			return err
		}

		return notAboveNothing(ctx, tx, g)
	})

	return t, err
}

// notAboveNothing fails if more was written off than the site's user owed.
func notAboveNothing(ctx context.Context, tx *store.Tx, off ManualPosting) error {
	after, err := tx.Balance(ctx, off.SiteID)
	if err != nil || after <= 0 {
		return err
	}

	before := after - off.Amount

	return flex.Fail(
		flex.Conflict,
		"the balance is %s: at most %s can be written off",
		before,
		max(0, -before),
	)
}

// decided posts a gift or a write-off, within the limit. It reports whether it was posted now, and not
// before.
func (s *Service) decided(
	ctx context.Context,
	tx *store.Tx,
	g ManualPosting,
	postings []ledger.Posting,
) (ledger.Booked, bool, error) {
	t := ledger.Booked{}
	if err := checkDecision(ctx, tx, g.Amount, g.Reason); err != nil {
		return t, false, err
	}

	reference := g.Reference
	if reference == "" {
		reference = tx.NewRunID().String()
	}

	t.Key = fmt.Sprintf("%s:%s:%s", g.Kind, g.SiteID, reference)
	t.Kind, t.SiteID = g.Kind, g.SiteID
	t.Time = flex.Span{From: tx.Now()}
	t.Cause = ledger.Cause{By: g.By, Reason: g.Reason}
	t.Postings, t.Reference = postings, g.Reference
	posted, err := tx.Post(ctx, &t)
	if err == nil && !posted {
		err = notReversed(ctx, tx, t.ID)
	}

	return t, posted, err
}

// checkDecision fails if an amount is not within the organisation's limit, or has no reason.
func checkDecision(
	ctx context.Context,
	tx *store.Tx,
	amount flex.Pence,
	reason string,
) error {
	if err := checkText("a reason", reason); err != nil {
		return err
	}

	o, err := tx.OrgRecord(ctx)
	if err != nil {
		return err
	}

	limit := o.Settings.Books.GiftLimit
	if limit == 0 {
		limit = DefaultManualLimit
	}

	if amount <= 0 || amount > limit {
		return flex.Fail(
			flex.Invalid,
			"an amount is more than nothing and at most %s, not %s; the setting is gift_limit_pence",
			limit,
			amount,
		)
	}

	return nil
}

// WriteOffReceivable writes off what a counterparty does not pay for a month, no more than it owes. The same
// again changes nothing, and posted is false.
func (s *Service) WriteOffReceivable(
	ctx context.Context,
	org flex.OrgID,
	r Receipt,
	reason string,
) (posted bool, err error) {
	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := checkDecision(ctx, tx, r.Amount, reason); err != nil {
			return err
		}
		if err := r.check(flex.DayAt(tx.Now())); err != nil {
			return err
		}

		// Nobody else posts between this posting and reading what is owed.
		if _, err := tx.LockBooks(ctx); err != nil {
			return err
		}

		t := r.writtenOff(tx.Now(), reason)
		posted, err = tx.Post(ctx, &t)
		if err != nil {
			return err
		}
		if !posted {
			return notReversed(ctx, tx, t.ID)
		}

		return notTooMuch(ctx, tx, r)
	})

	return posted && err == nil, err
}

// writtenOff returns the transaction that writes the receipt's amount off.
func (r Receipt) writtenOff(now time.Time, reason string) ledger.Booked {
	t := ledger.Booked{ForMonth: r.Month}
	t.Key = fmt.Sprintf(
		"write-off:%s:%s:%s",
		r.Counterparty,
		r.Month,
		r.Reference,
	)

	t.Kind, t.Time = ledger.Correction, flex.Span{From: now}
	t.Cause = ledger.Cause{By: r.By, Reason: reason}
	t.Postings = ledger.WrittenOff(r.Amount, ledger.MarketReceivable)
	t.Counterparty, t.Reference = r.Counterparty, r.Reference

	return t
}

// notTooMuch fails if more was written off than the counterparty owed for the month.
func notTooMuch(ctx context.Context, tx *store.Tx, off Receipt) error {
	money, err := tx.MarketMoney(ctx)
	if err != nil {
		return err
	}

	left := -off.Amount // if nothing is owed for the month
	for _, m := range money {
		if m.Counterparty == off.Counterparty && m.Month == off.Month {
			left = m.Difference()
		}
	}

	if left >= 0 {
		return nil
	}

	return flex.Fail(
		flex.Conflict,
		"%s owes %s for %s: at most that can be written off",
		off.Counterparty,
		max(0, left+off.Amount),
		off.Month,
	)
}
