package store

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

// Transaction returns a transaction of the organisation with its postings, or a NotFound failure.
func (tx *Tx) Transaction(
	ctx context.Context,
	id flex.TransactionID,
) (ledger.Booked, error) {
	t, err := one(
		ctx,
		tx.conn,
		"there is no transaction of that id",
		scanTransaction,
		`SELECT `+ledgerColumns+
			` FROM ledger l LEFT JOIN withdrawal w ON w.id = l.id WHERE l.org_id = $1 AND l.id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	)
	if err != nil {
		return t, err
	}

	t.Postings, err = tx.Postings(ctx, id)

	return t, err
}

// HasTransaction reports whether a transaction of the organisation has the key.
func (tx *Tx) HasTransaction(ctx context.Context, key string) (bool, error) {
	var found bool
	err := tx.row(
		ctx,
		`SELECT EXISTS (SELECT 1 FROM ledger WHERE org_id = $1 AND key = $2)`,
		tx.org.Bytes(),
		key,
	).Scan(&found)

	return found, err
}
