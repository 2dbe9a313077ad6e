package reward

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// payoutsMax is the most withdrawals that are listed, or exported to the bank, at once.
const payoutsMax = 50_000

// Withdrawal is money that a user takes out.
type Withdrawal struct {
	ID        flex.TransactionID
	OrgID     flex.OrgID
	SiteID    flex.SiteID
	Amount    flex.Pence
	Status    ledger.PaymentStatus
	Moves     int
	Attempt   int
	AskedAt   time.Time
	ChangedAt time.Time
}

// Payout is a withdrawal as an approver sees it.
type Payout struct {
	Withdrawal
	// the last digits of the account number; empty if no account is fixed
	Ending   string
	LinkedAt time.Time // when the account was linked
	// number of the organisation's sites to which the same account is linked
	Sites int
	// a payment to this account was posted before, for this site
	PaidBefore bool
	// when the user's e-mail address was changed last; zero if it was not
	EmailAt   time.Time
	Reference string
	Note      string   // of its last move
	Approvals []string // who approved it, while it waits for another
	// of the site, without this withdrawal; only until it is exported to the bank
	Balance flex.Pence

	// when payments to the account begin, if that is in the future
	PaidFrom time.Time
	// a second operator is needed for this amount by itself
	NeedsTwo bool
	Warnings []string
	// state of the name check, until the withdrawal is exported to the bank
	Name      string
	NameKnown bool // whether the name was checked
	Mismatch  bool // the name does not match, and no operator overrode that
}

// Payouts returns the organisation's withdrawals at a status, or all for "", oldest first.
func (s *Service) Payouts(
	ctx context.Context,
	org flex.OrgID,
	status ledger.PaymentStatus,
) ([]Payout, error) {
	var ps []Payout
	var err error
	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		ps, err = payouts(ctx, tx, status, flex.TransactionID{}, payoutsMax)
		return err
	})

	return ps, err
}

func payoutOf(p *store.Payout) Payout {
	return Payout{
		Withdrawal: Withdrawal(p.Withdrawal),
		Ending:     p.Ending,
		LinkedAt:   p.LinkedAt,
		Sites:      p.Sites,
		PaidBefore: p.PaidBefore,
		EmailAt:    p.EmailAt,
		Reference:  p.Reference,
		Note:       p.Note,
		Approvals:  p.Approvals,
		Balance:    p.Balance,
	}
}

// payouts are at most limit withdrawals after one.
func payouts(
	ctx context.Context,
	tx *store.Tx,
	status ledger.PaymentStatus,
	after flex.TransactionID,
	limit int,
) ([]Payout, error) {
	o, err := tx.OrgRecord(ctx)
	if err != nil {
		return nil, err
	}

	found, err := tx.Payouts(ctx, status, after, limit)
	if err != nil {
		return nil, err
	}

	checks, err := tx.PayeeChecks(ctx)
	if err != nil {
		return nil, err
	}

	terms := payoutTerms(o.Settings.Payout)
	ps := make([]Payout, len(found))

	for i, p := range found {
		ps[i] = payoutOf(&p)
		ps[i].NeedsTwo = terms.NeedsTwo(ledger.Approval{Amount: p.Amount})
		if from := terms.PaidFrom(p.LinkedAt); from.After(tx.Now()) {
			ps[i].PaidFrom = from
		}

		if p.Status == ledger.PendingApproval || p.Status == ledger.Approved {
			ps[i].Warnings = ps[i].warn(tx.Now())
			check := checks[p.ID]
			ps[i].addName(&check)
		}
	}

	return ps, nil
}

// addName adds the state of the name check.
func (p *Payout) addName(check *store.PayeeCheck) {
	p.Name, p.NameKnown = nameText(check), check.Verdict != ""
	p.Mismatch = check.Verdict == NameNoMatch && check.OverriddenBy == ""
}

// recentEmailChange is how long approvers are warned about a changed e-mail address.
const recentEmailChange = 30 * 24 * time.Hour

// warn lists what an approver should consider.
func (p Payout) warn(now time.Time) []string {
	var warnings []string
	add := func(format string, args ...any) {
		warnings = append(warnings, fmt.Sprintf(format, args...))
	}
	if p.Ending == "" {
		add("no bank account is fixed for it: it cannot be paid; reject it")
		return warnings
	}

	if p.Balance < 0 {
		add(
			"the balance is %s after it: what was earned was corrected since it was asked for; reject or cancel it, and the user can ask for what is owed",
			p.Balance,
		)
	}

	if !p.PaidFrom.IsZero() {
		add(
			"the account was linked a short time ago and is paid from %s",
			p.PaidFrom.UTC().Format("2006-01-02 15:04 MST"),
		)
	}

	if p.Sites > 1 {
		add("the same account is linked to %d sites", p.Sites)
	}

	if !p.PaidBefore {
		add("the first payment to this account")
	}

	if !p.EmailAt.IsZero() && now.Sub(p.EmailAt) < recentEmailChange {
		add(
			"the user's e-mail address was changed on %s",
			p.EmailAt.UTC().Format("2006-01-02"),
		)
	}

	return warnings
}

// Decide applies an operator's decision to a withdrawal: approved, rejected, cancelled, or
// pending_approval to retry one that failed. If a second operator is needed, the withdrawal
// stays pending_approval after the first approval.
func (s *Service) Decide(
	ctx context.Context,
	org flex.OrgID,
	id flex.TransactionID,
	to ledger.PaymentStatus,
	by, note string,
) (store.Withdrawal, error) {
	var w store.Withdrawal
	if to == ledger.Approved {
		if err := s.nameBeforeApproval(ctx, org, id); err != nil {
			return w, err
		}
	}

	var err error
	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		switch to {
		case ledger.Approved:
			w, err = s.approve(ctx, tx, id, by, note)

		case ledger.PendingApproval:
			w, err = s.retry(ctx, tx, id, by, note)

		case ledger.Rejected, ledger.Cancelled:
			w, _, err = s.move(ctx, tx, id, to, by, note)

		default:
			err = flex.Fail(
				flex.Malformed,
				"an operator approves, rejects, cancels or tries again; that a payment is %s, the bank says: import its file",
				to,
			)
		}

		return err
	})

	return w, err
}

// approve records an operator's approval. The withdrawal becomes approved when no other approval
// is needed.
func (s *Service) approve(
	ctx context.Context,
	tx *store.Tx,
	id flex.TransactionID,
	by, note string,
) (store.Withdrawal, error) {
	// Without the lock, two concurrent approvals could exceed the day's cap together.
	if err := tx.LockOrg(ctx); err != nil {
		return store.Withdrawal{}, err
	}

	w, err := tx.LockWithdrawal(ctx, id)
	if err != nil {
		return w, err
	}

	_, err = ledger.Move(w.Status, ledger.Approved, w.Amount)
	if err != nil {
		return w, err
	}

	o, err := tx.OrgRecord(ctx)
	if err != nil {
		return w, err
	}

	a, err := approval(ctx, tx, w, by)
	if err != nil {
		return w, err
	}

	if err := checkNameApproval(ctx, tx, w, by); err != nil {
		return w, err
	}

	complete, err := payoutTerms(o.Settings.Payout).Approve(a, tx.Now())
	if err != nil {
		return w, err
	}
	if err := tx.NoteApproval(ctx, w, by); err != nil || !complete {
		return w, err
	}

	return tx.MoveWithdrawal(ctx, id, ledger.Approved, by, note)
}

// approval reads the facts that decide whether an approval is allowed.
func approval(
	ctx context.Context,
	tx *store.Tx,
	w store.Withdrawal,
	by string,
) (ledger.Approval, error) {
	fixedAccount, err := tx.PinnedPayee(ctx, w)
	var a ledger.Approval
	if err != nil {
		return a, err
	}
	if fixedAccount == nil {
		return a, flex.Fail(
			flex.Conflict,
			"no bank account is fixed for the withdrawal; reject it, and the user can ask again",
		)
	}

	a = ledger.Approval{
		Amount:   w.Amount,
		LinkedAt: fixedAccount.LinkedAt,
		By:       by,
	}

	a.Today, a.ToAccount, err = tx.ApprovedSince(
		ctx,
		flex.DayAt(tx.Now()).Start(),
		fixedAccount.Account,
	)
	if err != nil {
		return a, err
	}

	a.Before, err = tx.Approvals(ctx, w)

	return a, err
}

// retry requests a failed withdrawal again, to the account that is linked now.
func (s *Service) retry(
	ctx context.Context,
	tx *store.Tx,
	id flex.TransactionID,
	by, note string,
) (store.Withdrawal, error) {
	w, err := tx.Withdrawal(ctx, id)
	if err != nil {
		return w, err
	}

	// As for a new withdrawal, the lock prevents that a credit is reversed between the check of
	// the balance and the posting.
	if err := tx.ShareBooks(ctx); err != nil {
		return w, err
	}
	if _, err := tx.LockedSite(ctx, w.SiteID); err != nil {
		return w, err
	}

	payee, err := tx.Payee(ctx, w.SiteID)
	if err != nil {
		return w, err
	}
	if payee == nil {
		return w, flex.Fail(
			flex.Conflict,
			"there is no bank account to pay to; the user has to link one first",
		)
	}

	w, err = tx.MoveWithdrawal(ctx, id, ledger.PendingApproval, by, note)
	if err != nil {
		return w, err
	}

	return w, tx.PinPayee(ctx, w, *payee, ledger.Reference(w.ID, w.Attempt))
}

// noticeCount counts the notices that a payment came back: those sent, and the users without an
// e-mail address.
type noticeCount struct{ sent, noAddress int }

// move changes a withdrawal's status. If the money came back, the user is notified and the bank
// account is deleted, since it may be wrong.
func (s *Service) move(
	ctx context.Context,
	tx *store.Tx,
	id flex.TransactionID,
	to ledger.PaymentStatus,
	by, note string,
) (store.Withdrawal, noticeCount, error) {
	w, err := tx.MoveWithdrawal(ctx, id, to, by, note)
	var t noticeCount
	if err != nil {
		return w, t, err
	}
	if to != ledger.Failed && to != ledger.Returned {
		return w, t, nil
	}

	cancelled, err := forgetAccount(ctx, tx, w, by)
	if err != nil {
		return w, t, err
	}

	t, err = s.notifyReturned(ctx, tx, w, cancelled)

	return w, t, err
}

// accountDeleted is the reason for a cancellation. Operators and users read it.
const accountDeleted = "the bank account was deleted, because a payment to it came back"

// forgetAccount deletes the account that a payment went to, if it is still the linked one. It
// cancels the withdrawals to it that were not exported to the bank yet, and returns their sum.
func forgetAccount(
	ctx context.Context,
	tx *store.Tx,
	w store.Withdrawal,
	by string,
) (flex.Pence, error) {
	fixedAccount, err := tx.PinnedPayee(ctx, w)
	if err != nil || fixedAccount == nil {
		return 0, err
	}

	// The lock prevents a new withdrawal to the account until this transaction ends.
	_, err = tx.LockedSite(ctx, w.SiteID)
	if flex.KindOf(err) == flex.NotFound {
		return 0, nil // offboarded: the account is deleted already
	}
	if err != nil {
		return 0, err
	}

	deleted, err := tx.DropPayee(ctx, w.SiteID, fixedAccount.Account)
	if err != nil || !deleted {
		return 0, err
	}

	return voidUnexported(ctx, tx, w.SiteID, by, accountDeleted)
}

// notifyReturned notifies the user of a returned payment and of the withdrawals that were
// cancelled with it. The notice has a link to correct the account.
func (s *Service) notifyReturned(
	ctx context.Context,
	tx *store.Tx,
	w store.Withdrawal,
	cancelled flex.Pence,
) (noticeCount, error) {
	site, err := tx.Site(ctx, w.SiteID)
	if flex.KindOf(err) == flex.NotFound {
		return noticeCount{noAddress: 1}, nil // offboarded: there is nobody to notify
	}
	var t noticeCount
	if err != nil {
		return t, err
	}

	link, err := s.linkIn(ctx, tx, w.SiteID)
	if err != nil {
		return t, err
	}

	text := fmt.Sprintf("Your withdrawal of %s could not be paid, and is back in your balance.\n", w.Amount)
	if cancelled > 0 {
		text += fmt.Sprintf(
			"Withdrawals of %s to the same bank account that had not been paid yet were cancelled. The money is in your balance.\n",
			cancelled,
		)
	}

	text += fmt.Sprintf(
		"\nPlease check your bank account here, within %d hours:\n%s\n",
		MailLinkLife/time.Hour,
		link,
	)

	t.sent, err = notify(ctx, tx, site, notice{
		subject: "Your withdrawal could not be paid",
		text:    text,
	})

	if t.sent == 0 {
		t.noAddress = 1
	}

	return t, err
}
