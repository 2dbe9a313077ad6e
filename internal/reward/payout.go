package reward

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Payment is a line of a payment file: what a bank, or a payout provider, is to pay.
type Payment struct {
	store.Withdrawal
	BankAccount
	Reference string // what the user sees on the bank statement
}

// Decide moves a withdrawal by an operator's decision: approved, rejected or cancelled.
func (d *Service) Decide(ctx context.Context, org flex.OrgID, id flex.TransactionID, to ledger.PaymentStatus, by, note string) (w store.Withdrawal, err error) {
	err = d.DB.Write(ctx, org, func(tx *store.Tx) error {
		w, err = d.move(ctx, tx, id, to, by, note)
		return err
	})
	return w, err
}

// move takes a withdrawal on, and tells its user if the money came back: the bank account
// is then forgotten, since it may be the wrong one.
func (d *Service) move(ctx context.Context, tx *store.Tx, id flex.TransactionID, to ledger.PaymentStatus, by, note string) (store.Withdrawal, error) {
	w, err := tx.MoveWithdrawal(ctx, id, to, by, note)
	if err != nil || to != ledger.Failed && to != ledger.Returned {
		return w, err
	}
	if err := tx.DropPayee(ctx, w.SiteID); err != nil {
		return w, err
	}
	site, err := tx.Site(ctx, w.SiteID)
	if flex.KindOf(err) == flex.NotFound || err == nil && (d.Mail == nil || site.Email.Reveal() == "") {
		return w, nil
	}
	if err != nil {
		return w, err
	}
	token, err := d.token()
	if err != nil {
		return w, err
	}
	if err := tx.AddBalanceLink(ctx, store.BalanceLink{Hash: hashOf(token), SiteID: w.SiteID, ExpiresAt: tx.Now().Add(LetterLinkLife), Setup: true, TwoFactor: true}); err != nil {
		return w, err
	}
	return w, tx.AddMail(ctx, store.Mail{
		SiteID: w.SiteID, To: site.Email, Subject: "Your withdrawal could not be paid",
		Text: fmt.Sprintf("Your withdrawal of %s could not be paid, and is back in your balance.\n\nPlease check your bank account here, within %d hours:\n%s\n",
			w.Amount, LetterLinkLife/time.Hour, d.BaseURL+Root+token),
	})
}

// Export returns the payments of all approved withdrawals and moves them to processing: from
// then on they count as given to the bank. With again it returns those that are processing
// already, for a file that was lost.
func (d *Service) Export(ctx context.Context, org flex.OrgID, by string, again bool) (ps []Payment, err error) {
	err = d.DB.Write(ctx, org, func(tx *store.Tx) error {
		ps = nil
		status := ledger.Approved
		if again {
			status = ledger.Processing
		}
		ws, err := tx.Withdrawals(ctx, status)
		if err != nil {
			return err
		}
		for _, w := range ws {
			payee, err := tx.Payee(ctx, w.SiteID)
			if err != nil {
				return err
			}
			if payee == nil {
				continue // the user must link an account again first
			}
			p := Payment{Withdrawal: w, Reference: reference(w)}
			account, err := tx.OpenPayee(*payee)
			if err != nil {
				return err
			}
			if p.BankAccount, err = unpack(account); err != nil {
				return err
			}
			if !again {
				if p.Withdrawal, err = d.move(ctx, tx, w.ID, ledger.Processing, by, ""); err != nil {
					return err
				}
			}
			ps = append(ps, p)
		}
		return nil
	})
	return ps, err
}

// reference is what names a payment on a bank statement: at most 18 characters, and another
// for every attempt.
func reference(w store.Withdrawal) string {
	return fmt.Sprintf("FLEXD %X-%d", w.ID[10:14], w.Attempt)
}

// PaymentResult is what became of a payment: posted, failed or returned.
type PaymentResult struct {
	ID      flex.TransactionID
	Status  ledger.PaymentStatus
	Attempt int // as in the payment file; 0 if it is not told, which means the latest
	Note    string
}

// known reports whether the result says again what is known: of the withdrawal as it stands,
// on its way to there, or of an attempt before it was tried again.
func (r PaymentResult) known(w store.Withdrawal) bool {
	return r.Status == w.Status || r.Status == ledger.Posted && w.Status == ledger.Returned || r.Attempt > 0 && r.Attempt < w.Attempt
}

// Import takes what became of payments. One that says again what is known changes nothing.
// It fails at the first result that cannot be; none of them then counts.
func (d *Service) Import(ctx context.Context, org flex.OrgID, by string, results []PaymentResult) (moved int, err error) {
	err = d.DB.Write(ctx, org, func(tx *store.Tx) error {
		moved = 0
		for i, r := range results {
			switch r.Status {
			case ledger.Posted, ledger.Failed, ledger.Returned:
			default:
				return flex.Fail(flex.Malformed, "result %d: a payment is %s, %s or %s, not %q", i+1, ledger.Posted, ledger.Failed, ledger.Returned, r.Status)
			}
			w, err := tx.Withdrawal(ctx, r.ID)
			if err != nil {
				return fmt.Errorf("result %d: %w", i+1, err)
			}
			if r.Attempt > w.Attempt {
				return flex.Fail(flex.Conflict, "result %d, of withdrawal %s: there was no attempt %d, the latest is %d", i+1, r.ID, r.Attempt, w.Attempt)
			}
			if r.known(w) {
				continue
			}
			if _, err := d.move(ctx, tx, r.ID, r.Status, by, r.Note); err != nil {
				return fmt.Errorf("result %d, of withdrawal %s: %w", i+1, r.ID, err)
			}
			moved++
		}
		return nil
	})
	return moved, err
}

// Limits of sending letters.
const (
	mailsMax  = 20
	mailLease = 2 * time.Minute
	mailTries = 6
	mailPause = time.Minute // doubled with every try
)

// SendMail sends letters that are due. A relay that is down is tried again for about an hour.
func (d *Service) SendMail(ctx context.Context) (worker.Report, error) {
	if d.Mail == nil {
		return worker.Report{}, nil
	}
	var mails []store.Mail
	err := d.DB.WriteAll(ctx, func(all *store.All) (err error) {
		mails, err = all.TakeMail(ctx, mailsMax, mailLease)
		return err
	})
	if err != nil {
		return worker.Report{}, err
	}
	for _, m := range mails {
		problem := d.Mail(ctx, m.To, m.Subject, m.Text)
		err := d.DB.WriteAll(ctx, func(all *store.All) error {
			switch {
			case problem == nil:
				return all.MailDone(ctx, m.ID, "")
			case m.Tries >= mailTries:
				return all.MailDone(ctx, m.ID, problem.Error())
			}
			return all.MailAgain(ctx, m.ID, all.Now().Add(mailPause<<(m.Tries-1)), problem.Error())
		})
		if err != nil {
			return worker.Report{}, err
		}
	}
	return worker.Report{Did: len(mails), More: len(mails) == mailsMax}, nil
}
