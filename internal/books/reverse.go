package books

import (
	"context"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// Reversal is a request to reverse a transaction that a person booked.
type Reversal struct {
	Of     flex.TransactionID
	Reason string // the user sees it in the statement, if a gift is reversed
	By     string
}

// Reverse reverses market money that was booked as received, a gift or a write-off, in full.
// The same again changes nothing, and posted is false. It is a Conflict if the user has
// withdrawn so much that the balance would become negative.
func (s *Service) Reverse(
	ctx context.Context,
	org flex.OrgID,
	r Reversal,
) (t ledger.Booked, posted bool, err error) {
	if err := checkText("a reason", r.Reason); err != nil {
		return t, false, err
	}

	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		// Nobody else posts between this posting and reading the balance.
		if _, err := tx.LockBooks(ctx); err != nil {
			return err
		}

		old, err := tx.Transaction(ctx, r.Of)
		if err != nil {
			return err
		}

		if !isReversible(&old) {
			return flex.Fail(
				flex.Conflict,
				"%s is a %s: only market money that came, a goodwill, a bonus and a write-off can be reversed, and each by itself",
				old.ID,
				old.Kind,
			)
		}

		t = r.of(&old)
		t.Time.From = tx.Now()
		posted, err = tx.Post(ctx, &t)
		if err != nil || !posted {
			return err
		}

		return notWithdrawn(ctx, tx, &old)
	})

	return t, posted && err == nil, err
}

// isReversible reports whether the transaction was booked by a person, is of a kind that can
// be reversed, and is no reversal itself.
func isReversible(t *ledger.Booked) bool {
	if t.Cause.By == "" || !t.Cause.Corrects.IsZero() {
		return false
	}

	switch t.Kind {
	case ledger.InvoicePaid, Goodwill, Signup, Referred, Referrer:
		return true

	case ledger.Correction:
		return slices.ContainsFunc(t.Postings, func(p ledger.Posting) bool {
			return p.Account == ledger.WriteOffs
		})
	}

	return false
}

// of returns the transaction that reverses the old one. Market money is reversed on the day on
// which it was booked as received, while the month of that day is open.
func (r Reversal) of(old *ledger.Booked) ledger.Booked {
	t := ledger.Booked{ForMonth: old.ForMonth}
	t.Key = reversalKey(old.ID)
	t.Kind, t.SiteID = ledger.Correction, old.SiteID

	if old.Kind == ledger.InvoicePaid {
		t.Kind, t.Settled = old.Kind, old.Settled
	}

	t.Cause = ledger.Cause{
		Corrects: old.ID,
		By:       r.By,
		Reason:   r.Reason,
	}

	t.Counterparty, t.Reference = old.Counterparty, old.Reference
	for _, p := range old.Postings {
		t.Postings = append(t.Postings, ledger.Posting{
			Account: p.Account,
			Amount:  -p.Amount,
		})
	}

	return t
}

func reversalKey(id flex.TransactionID) string {
	return "reversal:" + id.String()
}

// notWithdrawn fails if the balance, after the reversal of a gift, is negative.
func notWithdrawn(ctx context.Context, tx *store.Tx, old *ledger.Booked) error {
	gift := old.Credit()
	if gift <= 0 || old.Kind == ledger.Correction {
		return nil
	}

	after, err := tx.Balance(ctx, old.SiteID)
	if err != nil || after >= 0 {
		return err
	}

	return flex.Fail(
		flex.Conflict,
		"the balance is %s, less than the %s that would be taken back",
		after+gift,
		gift,
	)
}

// notReversed fails if the transaction that was booked under the same key has been reversed:
// the caller would take it for booked.
func notReversed(
	ctx context.Context,
	tx *store.Tx,
	id flex.TransactionID,
) error {
	reversed, err := tx.HasTransaction(ctx, reversalKey(id))
	if err != nil || !reversed {
		return err
	}

	return flex.Fail(
		flex.Conflict,
		"it was booked as transaction %s, which was reversed; to book it again, give it another reference",
		id,
	)
}
