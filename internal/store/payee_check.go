package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"flexd/internal/flex"
)

// PayeeHook is whom an organisation asks whether an account is in a user's name.
type PayeeHook struct {
	URL    string
	Secret flex.Personal // that the request carries
	SetAt  time.Time
}

// payeeHookRow is what the secret is bound to within its organisation.
var payeeHookRow = []byte("payee hook")

// PayeeHook returns the organisation's hook, or nil.
func (tx *Tx) PayeeHook(ctx context.Context) (*PayeeHook, error) {
	var h PayeeHook
	var sealed []byte

	err := tx.row(
		ctx,
		`SELECT url, sealed, set_at FROM payee_hook WHERE org_id = $1`,
		tx.org.Bytes(),
	).Scan(
		&h.URL,
		&sealed,
		instant{&h.SetAt},
	)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	secret, err := tx.unseal(sealedPayeeHook, tx.org, payeeHookRow, sealed)
	h.Secret = flex.Personal(secret)

	return &h, err
}

// PutPayeeHook stores the organisation's hook in place of the one before; without a URL there is
// none any more.
func (tx *Tx) PutPayeeHook(ctx context.Context, h PayeeHook) error {
	if h.URL == "" {
		_, err := tx.exec(
			ctx,
			`DELETE FROM payee_hook WHERE org_id = $1`,
			tx.org.Bytes(),
		)

		return err
	}

	sealed, err := tx.seal(
		sealedPayeeHook,
		tx.org,
		payeeHookRow,
		[]byte(h.Secret.Reveal()),
	)
	if err != nil {
		return err
	}

	row := []value{
		{"org_id", tx.org.Bytes()},
		{"url", h.URL},
		{"sealed", sealed},
		{"set_at", micros(tx.now)},
	}

	_, err = tx.upsert(ctx, "payee_hook", row, rewrite{key: []string{"org_id"}})

	return err
}

// PayeeCheck is what was said of the account of one attempt at a payment.
type PayeeCheck struct {
	WithdrawalID flex.TransactionID
	Attempt      int
	SiteID       flex.SiteID
	Verdict      string
	Name         flex.Personal // of the account, as a close match gave it
	CheckedAt    time.Time
	OverriddenBy string
	OverriddenAt time.Time
	Reason       string
}

const payeeCheckColumns = `c.withdrawal_id, c.attempt, c.site_id, c.verdict, c.sealed, c.checked_at, c.overridden_by, c.overridden_at, c.reason`

// payeeChecks reads checks and opens their names.
func (tx *Tx) payeeChecks(
	ctx context.Context,
	query string,
	args ...any,
) ([]PayeeCheck, error) {
	scan := func(s scanner) (PayeeCheck, error) {
		var sealed []byte
		var by, reason sql.NullString

		var c PayeeCheck
		err := s.Scan(
			&c.WithdrawalID,
			&c.Attempt,
			&c.SiteID,
			&c.Verdict,
			&sealed,
			instant{&c.CheckedAt},
			&by,
			instant{&c.OverriddenAt},
			&reason,
		)

		if err != nil {
			return c, err
		}

		c.OverriddenBy, c.Reason = by.String, reason.String
		name, err := tx.unseal(
			sealedPayeeName,
			tx.org,
			pinnedRow(c.WithdrawalID, c.Attempt),
			sealed,
		)

		c.Name = flex.Personal(name)

		return c, err
	}

	return rows(ctx, tx.conn, scan, query, args...)
}

// PayeeCheck returns what was said of the account of a withdrawal's attempt, or nil.
func (tx *Tx) PayeeCheck(
	ctx context.Context,
	w Withdrawal,
) (*PayeeCheck, error) {
	found, err := tx.payeeChecks(
		ctx,
		`SELECT `+payeeCheckColumns+
			` FROM payee_check c WHERE c.org_id = $1 AND c.withdrawal_id = $2 AND c.attempt = $3`,
		tx.org.Bytes(),
		w.ID.Bytes(),
		w.Attempt,
	)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}

// PayeeChecks returns what was said of the accounts of payments that are not given to the bank
// yet.
func (tx *Tx) PayeeChecks(ctx context.Context) (map[flex.TransactionID]PayeeCheck, error) {
	found, err := tx.payeeChecks(
		ctx,
		`SELECT `+payeeCheckColumns+
			` FROM payee_check c JOIN withdrawal w ON w.id = c.withdrawal_id AND w.attempt = c.attempt
		WHERE c.org_id = $1 AND w.org_id = $1 AND w.status IN ('pending_approval', 'approved') AND w.`+openWithdrawal,
		tx.org.Bytes(),
	)

	checks := map[flex.TransactionID]PayeeCheck{}

	for _, c := range found {
		checks[c.WithdrawalID] = c
	}

	return checks, err
}

// PutPayeeCheck stores what was said, in place of what was said before. An override goes with it.
func (tx *Tx) PutPayeeCheck(ctx context.Context, c PayeeCheck) error {
	sealed, err := tx.seal(
		sealedPayeeName,
		tx.org,
		pinnedRow(c.WithdrawalID, c.Attempt),
		[]byte(c.Name.Reveal()),
	)
	if err != nil {
		return err
	}

	_, err = tx.exec(
		ctx,
		`DELETE FROM payee_check WHERE org_id = $1 AND withdrawal_id = $2 AND attempt = $3`,
		tx.org.Bytes(),
		c.WithdrawalID.Bytes(),
		c.Attempt,
	)
	if err != nil {
		return err
	}

	row := []value{
		{"withdrawal_id", c.WithdrawalID.Bytes()},
		{"attempt", c.Attempt},
		{"org_id", tx.org.Bytes()},
		{"site_id", c.SiteID.Bytes()},
		{"verdict", c.Verdict},
		{"sealed", sealed},
		{"checked_at", micros(tx.now)},
	}

	return tx.insert(ctx, "payee_check", row)
}

// OverridePayeeCheck notes who lets a payment without a match be approved by another, and why.
func (tx *Tx) OverridePayeeCheck(
	ctx context.Context,
	w Withdrawal,
	by, reason string,
) error {
	_, err := tx.exec(
		ctx,
		`UPDATE payee_check SET overridden_by = $4, overridden_at = $5, reason = $6 WHERE org_id = $1 AND withdrawal_id = $2 AND attempt = $3`,
		tx.org.Bytes(),
		w.ID.Bytes(),
		w.Attempt,
		by,
		micros(tx.now),
		reason,
	)

	return err
}
