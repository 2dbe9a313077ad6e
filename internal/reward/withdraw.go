package reward

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// payoutTerms are the settings with the defaults filled in.
func payoutTerms(s flex.PayoutSettings) ledger.PayoutTerms {
	standard := ledger.DefaultPayoutTerms
	hours := s.CoolingHours.Or(int(standard.Cooling / time.Hour))
	return ledger.PayoutTerms{
		Cooling:  time.Duration(hours) * time.Hour,
		TwoAbove: s.TwoAbove.Or(standard.TwoAbove),
		DailyCap: s.DailyCap.Or(standard.DailyCap),
	}
}

// formMax is the longest name of a form.
const formMax = 64

// NewForm makes the name of a form that asks for a withdrawal: sent twice, it asks once.
func (s *Service) NewForm() (string, error) { return s.token() }

// Withdraw asks for an amount to be paid out to the visitor's bank account. The form that was
// sent before returns the withdrawal that it asked for then.
func (s *Service) Withdraw(
	ctx context.Context,
	v Visit,
	amount flex.Pence,
	form string,
) (store.Withdrawal, error) {
	var w store.Withdrawal
	if err := v.checkConfirmed(); err != nil {
		return w, err
	}
	if form == "" || len(form) > formMax {
		return w, flex.Fail(
			flex.Malformed,
			"open the page again, and withdraw from there",
		)
	}

	err := s.DB.Write(ctx, v.OrgID, func(tx *store.Tx) error {
		// Whoever takes something back looks at the balance too: they end before this looks at
		// it, or wait.
		if err := tx.ShareBooks(ctx); err != nil {
			return err
		}
		if _, err := tx.LockedSite(ctx, v.SiteID); err != nil {
			return err
		}

		repeated, err := tx.FormWithdrawal(ctx, v.SiteID, form)
		if err != nil {
			return err
		}

		if repeated != nil {
			w = *repeated
			return checkSameAmount(w, amount)
		}

		w, err = s.withdraw(ctx, tx, v.SiteID, amount, "user")
		if err != nil {
			return err
		}

		return tx.NoteForm(ctx, w, form)
	})

	return w, err
}

// checkSameAmount fails if a form that was sent before asks for something else now.
func checkSameAmount(w store.Withdrawal, amount flex.Pence) error {
	if w.Amount == amount {
		return nil
	}
	return flex.Fail(
		flex.Conflict,
		"this form asked for %s already; open the page again to withdraw more",
		w.Amount,
	)
}

// withdraw writes the withdrawal with the account that it goes to. The site is held.
func (s *Service) withdraw(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	amount flex.Pence,
	by string,
) (store.Withdrawal, error) {
	payee, err := tx.Payee(ctx, site)
	var w store.Withdrawal
	if err != nil {
		return w, err
	}
	if payee == nil {
		return w, flex.Fail(
			flex.Conflict,
			"there is no bank account to pay to; link one first",
		)
	}

	terms, err := historyOf(ctx, tx)
	if err != nil {
		return w, err
	}

	balance, err := tx.Balance(ctx, site)
	if err != nil {
		return w, err
	}

	_, first, err := tx.Earned(ctx, site)
	if err != nil {
		return w, err
	}
	if err := terms.forDay(flex.DayAt(tx.Now())).withdrawal.Admit(
		amount,
		balance,
		first,
		tx.Now(),
	); err != nil {
		return w, err
	}

	w, err = tx.Withdraw(ctx, site, amount, by)
	if err != nil {
		return w, err
	}

	return w, tx.PinPayee(ctx, w, *payee, ledger.Reference(w.ID, w.Attempt))
}
