// Package reward turns what was metered into money: it reckons up plug sessions and flex
// events when their readings are there, posts what their users earn, tells where a site
// stands, and sees withdrawals through to the bank.
//
//	session ends ─► reckoning ─► waits for readings ─► transaction ─► top-up or correction,
//	                                                                  if readings come or change
//
// Whatever it posts it posts once: a job that was interrupted, or run twice, leaves the
// books as one run would.
package reward

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// Service settles, and answers for money.
type Service struct {
	DB      *store.DB
	BaseURL string // where the balance page answers, as users reach it
	// Mail sends a letter to a user; nil means that no letters can be sent.
	Mail func(ctx context.Context, to flex.Personal, subject, text string) error
}

// DefaultCredit is what a kilowatt-hour charged in a plug session earns, in pence, where the
// organisation has set neither a rate nor a share.
const DefaultCredit = 2.0

// terms are an organisation's settings with the defaults filled in.
type terms struct {
	credit     settle.Rate // per kilowatt-hour of a plug session; zero: sessions earn nothing
	share      settle.Parts
	withdrawal ledger.WithdrawalTerms
	rounding   settle.Rounding
}

// termsOf reads the settings. A user earns by session at a rate, or by flex event a share;
// by both only if both are set.
func termsOf(s flex.OrgSettings) terms {
	t := terms{
		credit:     settle.RateOf(s.CreditPencePerKWh),
		share:      settle.PartsOf(s.UserShare),
		withdrawal: ledger.WithdrawalTerms{Minimum: s.MinWithdrawal, WaitDays: s.MinWaitDays},
	}
	t.rounding, _ = settle.ParseRounding(s.Settlement.Rounding)
	if s.CreditPencePerKWh == 0 && s.UserShare == 0 {
		t.credit = settle.RateOf(DefaultCredit)
	}
	if s.MinWithdrawal == 0 {
		t.withdrawal.Minimum = ledger.DefaultWithdrawalTerms.Minimum
	}
	return t
}

// Info is where a site's money stands.
type Info struct {
	ledger.Standing
	Earned flex.Pence // all that was ever earned, withdrawn or not
	Terms  ledger.WithdrawalTerms
}

// Info returns where the site's money stands.
func (d *Service) Info(ctx context.Context, org flex.OrgID, site flex.SiteID) (info Info, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Site(ctx, site); err != nil {
			return err
		}
		info, err = standing(ctx, tx, site)
		return err
	})
	return info, err
}

func standing(ctx context.Context, tx *store.Tx, site flex.SiteID) (info Info, err error) {
	o, err := tx.OrgRecord(ctx)
	if err != nil {
		return info, err
	}
	balance, err := tx.Balance(ctx, site)
	if err != nil {
		return info, err
	}
	earned, first, err := tx.Earned(ctx, site)
	if err != nil {
		return info, err
	}
	info.Terms, info.Earned = termsOf(o.Settings).withdrawal, earned
	info.Standing = info.Terms.Stand(balance, first, tx.Now())
	return info, nil
}

// History is a page of a site's transactions, newest first.
type History struct {
	Transactions []store.Transaction
	Total        int // of the site, on whatever page
	Standing     ledger.Standing
}

// Transactions returns a page of the site's transactions.
func (d *Service) Transactions(ctx context.Context, org flex.OrgID, site flex.SiteID, limit, offset int) (h History, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Site(ctx, site); err != nil {
			return err
		}
		if h.Transactions, h.Total, err = tx.Transactions(ctx, site, limit, offset); err != nil {
			return err
		}
		info, err := standing(ctx, tx, site)
		h.Standing = info.Standing
		return err
	})
	return h, err
}

// How long a session waits for readings, from its end.
const (
	// PartialAfter is when a session is credited with the readings that are there.
	PartialAfter = 30 * time.Minute
	// EmptyAfter is when a session without any reading is closed with a credit of nothing.
	EmptyAfter = 24 * time.Hour
	// CloseAfter is when readings that are still missing are given up. What comes later is
	// no longer credited.
	CloseAfter = 35 * 24 * time.Hour
)
