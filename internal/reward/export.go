package reward

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// Payment is a line of a payment file: what a bank, or a payout provider, is to pay.
type Payment struct {
	store.Withdrawal
	BankAccount
	Reference string // what the user sees on the bank statement
}

// ExportOptions say which payments are exported.
type ExportOptions struct {
	Again bool // what was exported before and has no result yet, for a file that was lost
}

// PaymentFile is a file of payments.
type PaymentFile struct {
	Payments []Payment
	Total    flex.Pence
	Kept     []string // why approved withdrawals are not in it
}

// Export returns the payments of all approved withdrawals and moves them to processing: from
// then on they count as given to the bank. Each goes to the account that was fixed when it
// was asked for, whatever was linked since.
func (d *Service) Export(ctx context.Context, org flex.OrgID, by string, o ExportOptions) (f PaymentFile, err error) {
	err = d.DB.Write(ctx, org, func(tx *store.Tx) error {
		f, err = d.export(ctx, tx, by, o)
		return err
	})
	return f, err
}

func (d *Service) export(ctx context.Context, tx *store.Tx, by string, o ExportOptions) (f PaymentFile, err error) {
	status := ledger.Approved
	if o.Again {
		status = ledger.Processing
	}

	record, err := tx.OrgRecord(ctx)
	if err != nil {
		return f, err
	}

	ws, err := tx.Withdrawals(ctx, status)
	if err != nil {
		return f, err
	}

	terms := payoutTerms(record.Settings.Payout)
	for _, w := range ws {
		p, kept, err := payment(ctx, tx, w, terms)
		if err != nil {
			return f, err
		}

		if kept != "" {
			f.Kept = append(f.Kept, fmt.Sprintf("%s: %s", w.ID, kept))
			continue
		}

		if !o.Again {
			p.Withdrawal, _, err = d.move(ctx, tx, w.ID, ledger.Processing, by, "")
			if err != nil {
				return f, err
			}
		}

		f.Payments = append(f.Payments, p)
		f.Total += p.Amount
	}

	return f, nil
}

// payment returns the line of a withdrawal, or why there is none.
func payment(ctx context.Context, tx *store.Tx, w store.Withdrawal, terms ledger.PayoutTerms) (p Payment, kept string, err error) {
	pinned, err := tx.PinnedPayee(ctx, w)
	if err != nil {
		return p, "", err
	}
	if pinned == nil {
		return p, "no bank account is fixed for it; cancel it, and the user can ask again", nil
	}

	// What was approved before accounts had to wait did not wait.
	if from := terms.PaidFrom(pinned.LinkedAt); w.Status == ledger.Approved && tx.Now().Before(from) {
		return p, "its account is paid from " + from.UTC().Format(time.RFC3339), nil
	}

	packed, err := tx.OpenPinned(*pinned)
	if err != nil {
		return p, "", err
	}

	p = Payment{Withdrawal: w, Reference: pinned.Reference}
	p.BankAccount, err = unpack(packed)
	return p, "", err
}
