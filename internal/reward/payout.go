package reward

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// payoutsMax is how many withdrawals are listed, and given to the bank, at once.
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
	// of the organisation to which the same account is linked
	Sites int
	// a payment to this account was posted before, for this site
	PaidBefore bool
	// when the user's e-mail address was changed last; zero if it was not
	EmailAt   time.Time
	Reference string
	Note      string   // of its last move
	Approvals []string // who approved it, while it waits for another
	// of the site, as long as it is not given to the bank: without what it pays
	Balance flex.Pence

	// from when the account is paid, if that is still to come
	PaidFrom time.Time
	// a second operator is needed, judged by this amount alone
	NeedsTwo bool
	Warnings []string
	// what is known of the name on the account, before it is given to the bank
	Name      string
	NameKnown bool // whether it was asked for
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

// addName adds what is known of the name on the account.
func (p *Payout) addName(check *store.PayeeCheck) {
	p.Name, p.NameKnown = nameText(check), check.Verdict != ""
	p.Mismatch = check.Verdict == NameNoMatch && check.OverriddenBy == ""
}

// youngEmail is how long approvers are warned of a changed e-mail address.
const youngEmail = 30 * 24 * time.Hour

// warn says what an approver should look at.
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

	if !p.EmailAt.IsZero() && now.Sub(p.EmailAt) < youngEmail {
		add(
			"the user's e-mail address was changed on %s",
			p.EmailAt.UTC().Format("2006-01-02"),
		)
	}

	return warnings
}

// Decide moves a withdrawal by an operator's decision: approved, rejected, cancelled, or
// pending_approval for one that failed and is to be tried again. One that needs a second
// operator stays pending_approval after the first.
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
			w, err = s.tryAgain(ctx, tx, id, by, note)

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

// approve counts an operator's approval, and moves the withdrawal if it is complete.
func (s *Service) approve(
	ctx context.Context,
	tx *store.Tx,
	id flex.TransactionID,
	by, note string,
) (store.Withdrawal, error) {
	// Two approvals at once must not both find room under the day's cap.
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

// approval collects what an approval is judged by.
func approval(
	ctx context.Context,
	tx *store.Tx,
	w store.Withdrawal,
	by string,
) (ledger.Approval, error) {
	pinned, err := tx.PinnedPayee(ctx, w)
	var a ledger.Approval
	if err != nil {
		return a, err
	}
	if pinned == nil {
		return a, flex.Fail(
			flex.Conflict,
			"no bank account is fixed for the withdrawal; reject it, and the user can ask again",
		)
	}

	a = ledger.Approval{
		Amount:   w.Amount,
		LinkedAt: pinned.LinkedAt,
		By:       by,
	}

	a.Today, a.ToAccount, err = tx.ApprovedSince(
		ctx,
		flex.DayAt(tx.Now()).Start(),
		pinned.Account,
	)
	if err != nil {
		return a, err
	}

	a.Before, err = tx.Approvals(ctx, w)

	return a, err
}

// tryAgain asks again for a withdrawal that failed, to the account that is linked now.
func (s *Service) tryAgain(
	ctx context.Context,
	tx *store.Tx,
	id flex.TransactionID,
	by, note string,
) (store.Withdrawal, error) {
	w, err := tx.Withdrawal(ctx, id)
	if err != nil {
		return w, err
	}

	// As for a new withdrawal, nothing is taken back between the look at the balance and the
	// posting.
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

// notified are the recipients of the notice that a payment came back.
type notified struct{ mails, without int }

// move takes a withdrawal on, and tells its user if the money came back: the bank account
// is then forgotten, since it may be the wrong one.
func (s *Service) move(
	ctx context.Context,
	tx *store.Tx,
	id flex.TransactionID,
	to ledger.PaymentStatus,
	by, note string,
) (store.Withdrawal, notified, error) {
	w, err := tx.MoveWithdrawal(ctx, id, to, by, note)
	var t notified
	if err != nil {
		return w, t, err
	}
	if to != ledger.Failed && to != ledger.Returned {
		return w, t, nil
	}

	voided, err := forgetAccount(ctx, tx, w, by)
	if err != nil {
		return w, t, err
	}

	t, err = s.notifyReturned(ctx, tx, w, voided)

	return w, t, err
}

// accountDeleted is the reason of a cancellation, as operators and users read it.
const accountDeleted = "the bank account was deleted, because a payment to it came back"

// forgetAccount forgets the account that a payment went to, if it is still the user's. It
// cancels the withdrawals to it that are not given to the bank yet, and returns what they came
// to.
func forgetAccount(
	ctx context.Context,
	tx *store.Tx,
	w store.Withdrawal,
	by string,
) (flex.Pence, error) {
	pinned, err := tx.PinnedPayee(ctx, w)
	if err != nil || pinned == nil {
		return 0, err
	}

	// Nobody asks for another withdrawal to it meanwhile.
	_, err = tx.LockedSite(ctx, w.SiteID)
	if flex.KindOf(err) == flex.NotFound {
		return 0, nil // offboarded: the account is deleted already
	}
	if err != nil {
		return 0, err
	}

	dropped, err := tx.DropPayee(ctx, w.SiteID, pinned.Account)
	if err != nil || !dropped {
		return 0, err
	}

	return voidUnexported(ctx, tx, w.SiteID, by, accountDeleted)
}

// notifyReturned tells the user that a payment came back, and what was cancelled with it, with a
// link to correct the account.
func (s *Service) notifyReturned(
	ctx context.Context,
	tx *store.Tx,
	w store.Withdrawal,
	voided flex.Pence,
) (notified, error) {
	site, err := tx.Site(ctx, w.SiteID)
	if flex.KindOf(err) == flex.NotFound {
		return notified{without: 1}, nil // offboarded: there is nobody to tell
	}
	var t notified
	if err != nil {
		return t, err
	}

	link, err := s.linkIn(ctx, tx, w.SiteID)
	if err != nil {
		return t, err
	}

	text := fmt.Sprintf("Your withdrawal of %s could not be paid, and is back in your balance.\n", w.Amount)
	if voided > 0 {
		text += fmt.Sprintf(
			"Withdrawals of %s to the same bank account that had not been paid yet were cancelled. The money is in your balance.\n",
			voided,
		)
	}

	text += fmt.Sprintf(
		"\nPlease check your bank account here, within %d hours:\n%s\n",
		MailLinkLife/time.Hour,
		link,
	)

	t.mails, err = notify(ctx, tx, site, notice{
		subject: "Your withdrawal could not be paid",
		text:    text,
	})

	if t.mails == 0 {
		t.without = 1
	}

	return t, err
}
