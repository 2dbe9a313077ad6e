package reward

import (
	"context"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// Service settles, and answers for money.
type Service struct {
	DB      *store.DB
	BaseURL string // where the balance page answers, as users reach it
	// Mail sends an e-mail to a user; nil means that none can be sent.
	Mail func(ctx context.Context, to flex.Personal, subject, text string) error

	// by which payee hooks are asked; nil asks nobody: unavailable
	Web *egress.Client
	// payee hooks may be plain HTTP, on a network that the operator opened
	PlainHTTP bool
}

// Info is where a site's money stands.
type Info struct {
	ledger.Eligibility
	Earned flex.Pence // all that was ever earned, withdrawn or not
	Terms  ledger.WithdrawalTerms
}

// Info returns where the site's money stands.
func (s *Service) Info(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
) (Info, error) {
	var info Info
	var err error
	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Site(ctx, site); err != nil {
			return err
		}
		info, err = withdrawalInfo(ctx, tx, site)
		return err
	})

	return info, err
}

func withdrawalInfo(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) (Info, error) {
	terms, err := historyOf(ctx, tx)
	var info Info
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

	info.Terms, info.Earned = terms.forDay(flex.DayAt(tx.Now())).withdrawal, earned
	info.Eligibility = info.Terms.Eligibility(balance, first, tx.Now())

	return info, nil
}

// History is a page of a site's transactions, newest first.
type History struct {
	Transactions []ledger.Booked
	Total        int // of the site, on whatever page
	Eligibility  ledger.Eligibility
}

// Transactions returns a page of the site's transactions.
func (s *Service) Transactions(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	limit, offset int,
) (History, error) {
	var h History
	var err error
	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Site(ctx, site); err != nil {
			return err
		}

		h.Transactions, h.Total, err = tx.Transactions(ctx, site, limit, offset)
		if err != nil {
			return err
		}

		info, err := withdrawalInfo(ctx, tx, site)
		h.Eligibility = info.Eligibility
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
	// CloseAfter is when readings that are still missing are waited for no longer. What comes
	// later is credited when it comes, up to ResettledFor.
	CloseAfter = 35 * 24 * time.Hour
)
