package store

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

// Withdrawal is a user's money on its way to the user's bank.
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

func scanWithdrawal(s scanner) (w Withdrawal, err error) {
	return w, s.Scan(&w.ID, &w.OrgID, &w.SiteID, &w.Amount, &w.Status, &w.Moves, &w.Attempt, instant{&w.AskedAt}, instant{&w.ChangedAt})
}

// Withdraw writes a withdrawal of the amount into the books. Whether it may be is the
// caller's to decide, with the site held.
func (tx *Tx) Withdraw(ctx context.Context, site flex.SiteID, amount flex.Pence, by string) (Withdrawal, error) {
	postings, err := ledger.Move("", ledger.PendingApproval, amount)
	if err != nil {
		return Withdrawal{}, err
	}
	t := Transaction{Transaction: ledger.Transaction{
		Key: fmt.Sprintf("withdrawal:%s", flex.TransactionID(tx.newID())), Kind: ledger.Withdrawal, SiteID: site,
		Time: flex.Span{From: tx.now}, Cause: ledger.Cause{By: by}, Postings: postings,
	}}
	if _, err := tx.Post(ctx, &t); err != nil {
		return Withdrawal{}, err
	}
	w := Withdrawal{
		ID: t.ID, OrgID: tx.org, SiteID: site, Amount: amount, Status: ledger.PendingApproval, Moves: 1, Attempt: 1, AskedAt: tx.now, ChangedAt: tx.now,
	}
	_, err = tx.exec(ctx, `INSERT INTO withdrawal (`+withdrawalColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		w.ID.Bytes(), tx.org.Bytes(), site.Bytes(), int64(amount), string(w.Status), w.Moves, w.Attempt, micros(tx.now), micros(tx.now))
	if err != nil {
		return Withdrawal{}, err
	}
	return w, tx.noteMove(ctx, w, by, "")
}

// MoveWithdrawal takes a withdrawal to another status, posting what that does to the money.
// A move that is not legal is a Conflict, as is a payment tried again when the money is gone.
func (tx *Tx) MoveWithdrawal(ctx context.Context, id flex.TransactionID, to ledger.PaymentStatus, by, note string) (Withdrawal, error) {
	w, err := one(ctx, tx.conn, "withdrawal not found or not authorized", scanWithdrawal,
		`SELECT `+withdrawalColumns+` FROM withdrawal WHERE org_id = $1 AND id = $2`+tx.db.d.forUpdate, tx.org.Bytes(), id.Bytes())
	if err != nil {
		return w, err
	}
	postings, err := ledger.Move(w.Status, to, w.Amount)
	if err != nil {
		return w, err
	}
	if !w.Status.Holds() && to.Holds() {
		balance, err := tx.Balance(ctx, w.SiteID)
		if err != nil {
			return w, err
		}
		if balance < w.Amount {
			return w, flex.Fail(flex.Conflict, "the balance is %s, which is less than the %s of the withdrawal", balance, w.Amount)
		}
		w.Attempt++
	}
	w.Status, w.Moves, w.ChangedAt = to, w.Moves+1, tx.now
	if len(postings) > 0 {
		step := Transaction{Transaction: ledger.Transaction{
			Key: fmt.Sprintf("withdrawal:%s:%d", w.ID, w.Moves), Kind: ledger.Withdrawal, SiteID: w.SiteID,
			Time: flex.Span{From: tx.now}, Cause: ledger.Cause{Follows: w.ID, By: by}, Postings: postings,
		}}
		if _, err := tx.Post(ctx, &step); err != nil {
			return w, err
		}
	}
	_, err = tx.exec(ctx, `UPDATE withdrawal SET status = $3, moves = $4, attempt = $5, changed_at = $6 WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(), w.ID.Bytes(), string(w.Status), w.Moves, w.Attempt, micros(tx.now))
	if err != nil {
		return w, err
	}
	return w, tx.noteMove(ctx, w, by, note)
}

func (tx *Tx) noteMove(ctx context.Context, w Withdrawal, by, note string) error {
	_, err := tx.exec(ctx, `INSERT INTO withdrawal_move (withdrawal_id, number, org_id, status, decided_by, note, at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		w.ID.Bytes(), w.Moves, tx.org.Bytes(), string(w.Status), by, note, micros(tx.now))
	return err
}

// Withdrawals returns the organisation's withdrawals that stand at a status, or all of them
// for "", oldest first.
func (tx *Tx) Withdrawals(ctx context.Context, status ledger.PaymentStatus) ([]Withdrawal, error) {
	return rows(ctx, tx.conn, scanWithdrawal, `SELECT `+withdrawalColumns+` FROM withdrawal
		WHERE org_id = $1 AND ($2 = '' OR status = $2) ORDER BY id`, tx.org.Bytes(), string(status))
}

// Withdrawal returns one withdrawal of the organisation.
func (tx *Tx) Withdrawal(ctx context.Context, id flex.TransactionID) (Withdrawal, error) {
	return one(ctx, tx.conn, "withdrawal not found or not authorized", scanWithdrawal,
		`SELECT `+withdrawalColumns+` FROM withdrawal WHERE org_id = $1 AND id = $2`, tx.org.Bytes(), id.Bytes())
}

// PaymentUnderWay reports whether money of the site's is on its way to the user's bank.
func (tx *Tx) PaymentUnderWay(ctx context.Context, site flex.SiteID) (under bool, err error) {
	err = tx.row(ctx, `SELECT EXISTS (SELECT 1 FROM withdrawal WHERE org_id = $1 AND site_id = $2 AND status IN ($3, $4, $5))`,
		tx.org.Bytes(), site.Bytes(), string(ledger.PendingApproval), string(ledger.Approved), string(ledger.Processing)).Scan(&under)
	return under, err
}
