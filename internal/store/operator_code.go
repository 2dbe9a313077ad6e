package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"flexd/internal/flex"
)

// TwoStep is the secret of an operator's second step.
type TwoStep struct {
	Operator    flex.OperatorID
	Secret      flex.Secret // base32, as apps take it
	ConfirmedAt time.Time   // zero until the first code was right
}

// TwoStepOf returns an operator's second step, or nil if there is none.
func (all *All) TwoStepOf(
	ctx context.Context,
	id flex.OperatorID,
) (*TwoStep, error) {
	t := TwoStep{Operator: id}

	var sealed []byte

	err := all.row(
		ctx,
		`SELECT sealed, confirmed_at FROM operator_totp WHERE operator_id = $1`,
		id.Bytes(),
	).Scan(
		&sealed,
		instant{&t.ConfirmedAt},
	)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	secret, err := all.unseal(sealedTwoStep, flex.OrgID{}, id.Bytes(), sealed)
	t.Secret = flex.Secret(secret)

	return &t, err
}

// BeginTwoStep stores a secret that no login asks for yet, in place of an earlier one and of its
// recovery codes.
func (all *All) BeginTwoStep(
	ctx context.Context,
	id flex.OperatorID,
	secret flex.Secret,
) error {
	sealed, err := all.seal(
		sealedTwoStep,
		flex.OrgID{},
		id.Bytes(),
		[]byte(secret.Reveal()),
	)
	if err != nil {
		return err
	}

	if err := all.RemoveTwoStep(ctx, id); err != nil {
		return err
	}

	_, err = all.exec(
		ctx,
		`INSERT INTO operator_totp (operator_id, sealed, created_at) VALUES ($1, $2, $3)`,
		id.Bytes(),
		sealed,
		micros(all.now),
	)

	return err
}

// ConfirmTwoStep has logins ask for a code from now on, and keeps the hashes of the recovery
// codes. It reports whether there is a secret of which a code was taken and that is not confirmed.
func (all *All) ConfirmTwoStep(
	ctx context.Context,
	id flex.OperatorID,
	recovery [][32]byte,
) (bool, error) {
	n, err := all.exec(
		ctx,
		`UPDATE operator_totp SET confirmed_at = $2 WHERE operator_id = $1 AND confirmed_at IS NULL AND last_step > 0`,
		id.Bytes(),
		micros(all.now),
	)
	if err != nil || n == 0 {
		return false, err
	}

	for _, hash := range recovery {
		_, err := all.exec(
			ctx,
			`INSERT INTO operator_recovery (operator_id, hash) VALUES ($1, $2)`,
			id.Bytes(),
			hash[:],
		)
		if err != nil {
			return false, err
		}
	}

	return true, nil
}

// RemoveTwoStep deletes an operator's secret and recovery codes.
func (all *All) RemoveTwoStep(ctx context.Context, id flex.OperatorID) error {
	if _, err := all.exec(
		ctx,
		`DELETE FROM operator_recovery WHERE operator_id = $1`,
		id.Bytes(),
	); err != nil {
		return err
	}
	_, err := all.exec(
		ctx,
		`DELETE FROM operator_totp WHERE operator_id = $1`,
		id.Bytes(),
	)

	return err
}

// TakeCodeStep uses up the codes to a step of time, and reports whether that one was unused.
func (all *All) TakeCodeStep(
	ctx context.Context,
	id flex.OperatorID,
	step int64,
) (bool, error) {
	n, err := all.exec(
		ctx,
		`UPDATE operator_totp SET last_step = $2 WHERE operator_id = $1 AND last_step < $2`,
		id.Bytes(),
		step,
	)

	return n == 1, err
}

// TakeRecovery uses a recovery code up, and reports whether there was such an unused one.
func (all *All) TakeRecovery(
	ctx context.Context,
	id flex.OperatorID,
	hash [32]byte,
) (bool, error) {
	n, err := all.exec(
		ctx,
		`UPDATE operator_recovery SET used_at = $3 WHERE operator_id = $1 AND hash = $2 AND used_at IS NULL`,
		id.Bytes(),
		hash[:],
		micros(all.now),
	)

	return n == 1, err
}

// RecoveryLeft counts an operator's unused recovery codes.
func (all *All) RecoveryLeft(
	ctx context.Context,
	id flex.OperatorID,
) (int, error) {
	var n int
	err := all.row(
		ctx,
		`SELECT COUNT(*) FROM operator_recovery WHERE operator_id = $1 AND used_at IS NULL`,
		id.Bytes(),
	).Scan(&n)

	return n, err
}

// TwoStepOperators returns the ids of those whose logins ask for a code.
func (all *All) TwoStepOperators(ctx context.Context) ([]flex.OperatorID, error) {
	return rows(
		ctx,
		all.conn,
		scalar[flex.OperatorID],
		`SELECT operator_id FROM operator_totp WHERE confirmed_at IS NOT NULL ORDER BY operator_id`,
	)
}

// CountCode counts a code that is tried, and reports whether it may be: no more than max are
// within the window, until one is right. Of an operator without a second step none is counted,
// and none is right.
func (all *All) CountCode(
	ctx context.Context,
	id flex.OperatorID,
	window time.Duration,
	max int,
) (bool, error) {
	_, err := all.exec(
		ctx,
		`UPDATE operator_totp SET
		wrong = CASE WHEN wrong_since <= $3 THEN 1 ELSE wrong + 1 END,
		wrong_since = CASE WHEN wrong_since <= $3 THEN $2 ELSE wrong_since END
		WHERE operator_id = $1`,
		id.Bytes(),
		micros(all.now),
		micros(all.now.Add(-window)),
	)

	if err != nil {
		return false, err
	}

	var wrong int

	err = all.row(
		ctx,
		`SELECT wrong FROM operator_totp WHERE operator_id = $1`,
		id.Bytes(),
	).Scan(&wrong)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}

	return err == nil && wrong <= max, err
}

// CodeWasRight ends the count of wrong codes.
func (all *All) CodeWasRight(ctx context.Context, id flex.OperatorID) error {
	_, err := all.exec(
		ctx,
		`UPDATE operator_totp SET wrong = 0, wrong_since = 0 WHERE operator_id = $1`,
		id.Bytes(),
	)

	return err
}

// AwaitingSession returns the session of the hash whose code is awaited, or a NotFound failure.
func (all *All) AwaitingSession(
	ctx context.Context,
	hash [32]byte,
) (OperatorSession, error) {
	return all.operatorSession(ctx, hash, 1)
}
