package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

// Withdrawal is a payment from a user's balance to the user's bank account.
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

const withdrawalColumns = `id, org_id, site_id, amount, status, moves, attempt, asked_at, changed_at`

func scanWithdrawal(s scanner) (Withdrawal, error) {
	var w Withdrawal
	err := s.Scan(
		&w.ID,
		&w.OrgID,
		&w.SiteID,
		&w.Amount,
		&w.Status,
		&w.Moves,
		&w.Attempt,
		instant{&w.AskedAt},
		instant{&w.ChangedAt},
	)

	return w, err
}

// Withdraw posts a withdrawal of the amount. The caller has locked the site, and has checked
// whether the amount may be withdrawn.
func (tx *Tx) Withdraw(
	ctx context.Context,
	site flex.SiteID,
	amount flex.Pence,
	by string,
) (Withdrawal, error) {
	postings, err := ledger.Move("", ledger.PendingApproval, amount)
	if err != nil {
		return Withdrawal{}, err
	}

	t := ledger.Booked{Transaction: ledger.Transaction{
		Key:      fmt.Sprintf("withdrawal:%s", flex.TransactionID(tx.newID())),
		Kind:     ledger.Withdrawal,
		SiteID:   site,
		Time:     flex.Span{From: tx.now},
		Cause:    ledger.Cause{By: by},
		Postings: postings,
	}}

	if _, err := tx.Post(ctx, &t); err != nil {
		return Withdrawal{}, err
	}

	w := Withdrawal{
		ID:        t.ID,
		OrgID:     tx.org,
		SiteID:    site,
		Amount:    amount,
		Status:    ledger.PendingApproval,
		Moves:     1,
		Attempt:   1,
		AskedAt:   tx.now,
		ChangedAt: tx.now,
	}

	return w, tx.addWithdrawal(ctx, w, by)
}

func (tx *Tx) addWithdrawal(
	ctx context.Context,
	w Withdrawal,
	by string,
) error {
	row := []value{
		{"id", w.ID.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"site_id", w.SiteID.Bytes()},
		{"amount", int64(w.Amount)},
		{"status", string(w.Status)},
		{"moves", w.Moves},
		{"attempt", w.Attempt},
		{"asked_at", micros(tx.now)},
		{"changed_at", micros(tx.now)},
	}

	err := tx.insert(ctx, "withdrawal", row)
	if err != nil {
		return err
	}

	return tx.noteMove(ctx, w, by, "")
}

// mayTryAgain fails if a withdrawal cannot be paid again because the balance does not cover
// it, or because it was tried often enough.
func (tx *Tx) mayTryAgain(ctx context.Context, w Withdrawal) error {
	balance, err := tx.Balance(ctx, w.SiteID)
	if err != nil {
		return err
	}
	if balance < w.Amount {
		return flex.Fail(
			flex.Conflict,
			"the balance is %s, which is less than the %s of the withdrawal",
			balance,
			w.Amount,
		)
	}

	if w.Attempt == ledger.AttemptsMax {
		return flex.Fail(
			flex.Conflict,
			"the withdrawal was tried %d times, which is the most: its money is in the balance, and can be asked for again",
			w.Attempt,
		)
	}

	return nil
}

// MoveWithdrawal changes a withdrawal's status, and posts the transition's postings. A
// transition that is not allowed is a Conflict, as is another try when the balance does not
// cover it.
func (tx *Tx) MoveWithdrawal(
	ctx context.Context,
	id flex.TransactionID,
	to ledger.PaymentStatus,
	by, note string,
) (Withdrawal, error) {
	w, err := tx.LockWithdrawal(ctx, id)
	if err != nil {
		return w, err
	}

	postings, err := ledger.Move(w.Status, to, w.Amount)
	if err != nil {
		return w, err
	}

	if !w.Status.Holds() && to.Holds() {
		if err := tx.mayTryAgain(ctx, w); err != nil {
			return w, err
		}

		w.Attempt++
	}

	w.Status = to
	w.Moves++
	w.ChangedAt = tx.now
	if err := tx.postMove(ctx, w, by, postings); err != nil {
		return w, err
	}

	_, err = tx.exec(
		ctx,
		`UPDATE withdrawal SET status = $3, moves = $4, attempt = $5, changed_at = $6 WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		w.ID.Bytes(),
		string(w.Status),
		w.Moves,
		w.Attempt,
		micros(tx.now),
	)

	if err != nil {
		return w, err
	}

	return w, tx.noteMove(ctx, w, by, note)
}

// postMove posts the postings of a transition.
func (tx *Tx) postMove(
	ctx context.Context,
	w Withdrawal,
	by string,
	postings []ledger.Posting,
) error {
	if len(postings) == 0 {
		return nil
	}

	step := ledger.Booked{Transaction: ledger.Transaction{
		Key:      fmt.Sprintf("withdrawal:%s:%d", w.ID, w.Moves),
		Kind:     ledger.Withdrawal,
		SiteID:   w.SiteID,
		Time:     flex.Span{From: tx.now},
		Cause:    ledger.Cause{Follows: w.ID, By: by},
		Postings: postings,
	}}

	_, err := tx.Post(ctx, &step)

	return err
}

func (tx *Tx) noteMove(
	ctx context.Context,
	w Withdrawal,
	by, note string,
) error {
	row := []value{
		{"withdrawal_id", w.ID.Bytes()},
		{"number", w.Moves},
		{"org_id", tx.org.Bytes()},
		{"status", string(w.Status)},
		{"decided_by", by},
		{"note", note},
		{"at", micros(tx.now)},
	}

	return tx.insert(ctx, "withdrawal_move", row)
}

// openWithdrawal is the SQL condition that a withdrawal is under way. It repeats the condition
// of the index withdrawal_open word for word: neither engine recognises the condition in a
// parameter.
const openWithdrawal = `status IN ('pending_approval', 'approved', 'processing')`

// OpenWithdrawals are the withdrawals that were not sent to the bank yet.
type OpenWithdrawals struct {
	Waiting  int        // for approval
	Sum      flex.Pence // of those
	Approved int
}

// OpenWithdrawals counts the organisation's withdrawals that were not sent to the bank yet.
func (tx *Tx) OpenWithdrawals(ctx context.Context) (OpenWithdrawals, error) {
	var o OpenWithdrawals
	err := tx.row(
		ctx,
		`SELECT count(CASE WHEN status = $2 THEN 1 END), CAST(coalesce(sum(CASE WHEN status = $2 THEN amount ELSE 0 END), 0) AS BIGINT),
			count(CASE WHEN status = $3 THEN 1 END)
		FROM withdrawal WHERE org_id = $1 AND `+openWithdrawal,
		tx.org.Bytes(),
		string(ledger.PendingApproval),
		string(ledger.Approved),
	).Scan(&o.Waiting, &o.Sum, &o.Approved)

	return o, err
}

// Withdrawals returns the organisation's withdrawals with a status, or all of them for "",
// oldest first.
func (tx *Tx) Withdrawals(
	ctx context.Context,
	status ledger.PaymentStatus,
) ([]Withdrawal, error) {
	at := where{args: []any{tx.org.Bytes()}}
	if status != "" {
		at.and("status = $%d", string(status))
	}

	return rows(
		ctx,
		tx.conn,
		scanWithdrawal,
		`SELECT `+withdrawalColumns+` FROM withdrawal
		WHERE org_id = $1`+at.text.String()+` ORDER BY id`,
		at.args...,
	)
}

// Withdrawal returns one withdrawal of the organisation.
func (tx *Tx) Withdrawal(
	ctx context.Context,
	id flex.TransactionID,
) (Withdrawal, error) {
	return one(
		ctx,
		tx.conn,
		"withdrawal not found or not authorized",
		scanWithdrawal,
		`SELECT `+withdrawalColumns+
			` FROM withdrawal WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	)
}

// PaymentUnderWay reports whether money of the site's is on its way to the user's bank.
func (tx *Tx) PaymentUnderWay(
	ctx context.Context,
	site flex.SiteID,
) (under bool, err error) {
	err = tx.row(
		ctx,
		`SELECT EXISTS (SELECT 1 FROM withdrawal WHERE org_id = $1 AND site_id = $2 AND status IN ($3, $4, $5))`,
		tx.org.Bytes(),
		site.Bytes(),
		string(ledger.PendingApproval),
		string(ledger.Approved),
		string(ledger.Processing),
	).Scan(
		&under,
	)

	return under, err
}

// WithdrawalsUnderWay returns the site's withdrawals whose money is on its way to the user's
// bank, newest first.
func (tx *Tx) WithdrawalsUnderWay(
	ctx context.Context,
	site flex.SiteID,
) ([]Withdrawal, error) {
	return rows(
		ctx,
		tx.conn,
		scanWithdrawal,
		`SELECT `+withdrawalColumns+
			` FROM withdrawal WHERE org_id = $1 AND site_id = $2 AND `+openWithdrawal+` ORDER BY id DESC`,
		tx.org.Bytes(),
		site.Bytes(),
	)
}

// LockWithdrawal is Withdrawal, and makes other transactions that lock or change it wait for
// the end of this one.
func (tx *Tx) LockWithdrawal(
	ctx context.Context,
	id flex.TransactionID,
) (Withdrawal, error) {
	return one(
		ctx,
		tx.conn,
		"withdrawal not found or not authorized",
		scanWithdrawal,
		`SELECT `+withdrawalColumns+
			` FROM withdrawal WHERE org_id = $1 AND id = $2`+
			tx.db.d.forUpdate,
		tx.org.Bytes(),
		id.Bytes(),
	)
}

// LockUnexported returns the site's withdrawals that were not sent to the bank yet, oldest
// first, and makes others that change them wait for the end of this transaction.
func (tx *Tx) LockUnexported(
	ctx context.Context,
	site flex.SiteID,
) ([]Withdrawal, error) {
	return rows(
		ctx,
		tx.conn,
		scanWithdrawal,
		`SELECT `+withdrawalColumns+` FROM withdrawal
		WHERE org_id = $1 AND site_id = $2 AND status IN ($3, $4) ORDER BY id`+tx.db.d.forUpdate,
		tx.org.Bytes(),
		site.Bytes(),
		string(ledger.PendingApproval),
		string(ledger.Approved),
	)
}

// NoteApproval records who approved the withdrawal's attempt.
func (tx *Tx) NoteApproval(ctx context.Context, w Withdrawal, by string) error {
	_, err := tx.exec(
		ctx,
		`INSERT INTO withdrawal_approval (withdrawal_id, attempt, org_id, approved_by, approved_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (withdrawal_id, attempt, approved_by) DO NOTHING`,
		w.ID.Bytes(),
		w.Attempt,
		tx.org.Bytes(),
		by,
		micros(tx.now),
	)

	return err
}

// Approvals returns who approved the withdrawal's attempt, in that order.
func (tx *Tx) Approvals(ctx context.Context, w Withdrawal) ([]string, error) {
	return rows(
		ctx,
		tx.conn,
		scalar[string],
		`SELECT approved_by FROM withdrawal_approval WHERE org_id = $1 AND withdrawal_id = $2 AND attempt = $3
		ORDER BY approved_at, approved_by`,
		tx.org.Bytes(),
		w.ID.Bytes(),
		w.Attempt,
	)
}

// ApprovedSince returns the sums that were approved since an instant and not cancelled
// afterwards: in all, and to the account with a hash.
func (tx *Tx) ApprovedSince(
	ctx context.Context,
	since time.Time,
	account []byte,
) (total, toAccount flex.Pence, err error) {
	err = tx.row(
		ctx,
		`SELECT CAST(coalesce(sum(w.amount), 0) AS BIGINT), CAST(coalesce(sum(CASE WHEN p.account = $4 THEN w.amount ELSE 0 END), 0) AS BIGINT)
		FROM withdrawal_move m JOIN withdrawal w ON w.id = m.withdrawal_id
		LEFT JOIN withdrawal_payee p ON p.withdrawal_id = w.id AND p.attempt = w.attempt
		WHERE m.org_id = $1 AND m.at >= $2 AND m.status = $3 AND w.status <> $5`,
		tx.org.Bytes(),
		micros(since),
		string(ledger.Approved),
		account,
		string(ledger.Cancelled),
	).Scan(&total, &toAccount)

	return total, toAccount, err
}

// FormWithdrawal returns the withdrawal that the site's form asked for, or nil.
func (tx *Tx) FormWithdrawal(
	ctx context.Context,
	site flex.SiteID,
	form string,
) (*Withdrawal, error) {
	w, err := scanWithdrawal(tx.row(
		ctx,
		`SELECT `+withdrawalColumns+` FROM withdrawal WHERE org_id = $1 AND id =
		(SELECT withdrawal_id FROM withdrawal_form WHERE org_id = $1 AND site_id = $2 AND form = $3)`,
		tx.org.Bytes(),
		site.Bytes(),
		form,
	))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}

	return &w, err
}

// NoteForm records which withdrawal a form asked for.
func (tx *Tx) NoteForm(ctx context.Context, w Withdrawal, form string) error {
	_, err := tx.exec(
		ctx,
		`INSERT INTO withdrawal_form (org_id, site_id, form, withdrawal_id) VALUES ($1, $2, $3, $4)`,
		tx.org.Bytes(),
		w.SiteID.Bytes(),
		form,
		w.ID.Bytes(),
	)

	return err
}

// Payout is a withdrawal with the data of its account that an approver sees.
type Payout struct {
	Withdrawal
	// the last digits of the account number; empty if no account is pinned
	Ending   string
	LinkedAt time.Time // when the account was linked
	// number of sites of the organisation to which the same account is linked
	Sites int
	// a payment to this account was posted before, for this site
	PaidBefore bool
	// when the user's e-mail address was changed last; zero if it was not
	EmailAt   time.Time
	Reference string
	Note      string   // of its last move
	Approvals []string // who approved it, while it waits for another

	// of its site, without this withdrawal's amount; set until it is sent to the bank
	Balance flex.Pence
}

// Payouts returns the organisation's withdrawals at a status, or all of them for "", oldest
// first, those after one, at most limit.
func (tx *Tx) Payouts(
	ctx context.Context,
	status ledger.PaymentStatus,
	after flex.TransactionID,
	limit int,
) ([]Payout, error) {
	scan := func(s scanner) (Payout, error) {
		var p Payout
		var err error
		p.Withdrawal, err = scanWithdrawal(extra{s, []any{
			&p.Ending,
			instant{&p.LinkedAt},
			&p.Reference,
			&p.Sites,
			&p.PaidBefore,
			instant{&p.EmailAt},
			&p.Note,
			&p.Balance,
		}})

		return p, err
	}

	at := where{args: []any{tx.org.Bytes(), after.Bytes(), limit}}
	if status != "" {
		at.and("w.status = $%d", string(status))
	}

	found, err := rows(
		ctx,
		tx.conn,
		scan,
		`SELECT `+columnsOf("w", withdrawalColumns)+`,
			coalesce(p.ending, ''), p.linked_at, coalesce(p.reference, ''),
			(SELECT count(*) FROM payee q WHERE q.org_id = w.org_id AND q.account = p.account),
			EXISTS (SELECT 1 FROM withdrawal_payee b JOIN withdrawal d ON d.id = b.withdrawal_id AND d.attempt = b.attempt
				WHERE b.site_id = w.site_id AND b.account = p.account AND d.status = 'posted' AND d.id <> w.id),
			(SELECT max(f.changed_at) FROM former_email f WHERE f.org_id = w.org_id AND f.site_id = w.site_id),
			(SELECT m.note FROM withdrawal_move m WHERE m.withdrawal_id = w.id AND m.number = w.moves),
			CASE WHEN w.status IN ('pending_approval', 'approved') THEN
				(SELECT CAST(-COALESCE(SUM(o.amount), 0) AS BIGINT) FROM posting o WHERE o.org_id = w.org_id AND o.site_id = w.site_id AND o.account = 'rewards_payable')
				ELSE 0 END
		FROM withdrawal w LEFT JOIN withdrawal_payee p ON p.withdrawal_id = w.id AND p.attempt = w.attempt
		WHERE w.org_id = $1 AND w.id > $2`+at.text.String()+` ORDER BY w.id LIMIT $3`,
		at.args...,
	)

	if err != nil {
		return nil, err
	}

	approvals, err := tx.pendingApprovals(ctx)
	for i := range found {
		found[i].Approvals = approvals[found[i].ID]
	}

	return found, err
}

// pendingApprovals returns who approved the withdrawals that wait for another.
func (tx *Tx) pendingApprovals(ctx context.Context) (map[flex.TransactionID][]string, error) {
	type approval struct {
		id flex.TransactionID
		by string
	}

	scan := func(s scanner) (approval, error) {
		var a approval
		err := s.Scan(&a.id, &a.by)

		return a, err
	}

	found, err := rows(
		ctx,
		tx.conn,
		scan,
		`SELECT a.withdrawal_id, a.approved_by FROM withdrawal_approval a
		JOIN withdrawal w ON w.id = a.withdrawal_id AND w.attempt = a.attempt
		WHERE w.org_id = $1 AND w.status = $2 AND w.`+openWithdrawal+` ORDER BY a.approved_at, a.approved_by`,
		tx.org.Bytes(),
		string(ledger.PendingApproval),
	)

	by := map[flex.TransactionID][]string{}
	for _, a := range found {
		by[a.id] = append(by[a.id], a.by)
	}

	return by, err
}
