package store

import (
	"context"
	"strings"
)

// Debits returns the bank's names of the entries that took an attempt at a payment from the
// payer's account, the first one first. Of an attempt whose account was erased with its site
// there are none.
func (tx *Tx) Debits(ctx context.Context, p Pinned) ([]string, error) {
	found, err := rows(
		ctx,
		tx.conn,
		scalar[string],
		`SELECT debits FROM withdrawal_payee WHERE org_id = $1 AND withdrawal_id = $2 AND attempt = $3 AND debits <> ''`,
		tx.org.Bytes(),
		p.WithdrawalID.Bytes(),
		p.Attempt,
	)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return strings.Split(found[0], "\n"), nil
}

// NoteDebits stores what Debits returns. No name has a line end.
func (tx *Tx) NoteDebits(
	ctx context.Context,
	p Pinned,
	debits []string,
) error {
	_, err := tx.exec(
		ctx,
		`UPDATE withdrawal_payee SET debits = $4 WHERE org_id = $1 AND withdrawal_id = $2 AND attempt = $3`,
		tx.org.Bytes(),
		p.WithdrawalID.Bytes(),
		p.Attempt,
		strings.Join(debits, "\n"),
	)

	return err
}
