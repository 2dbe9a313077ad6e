package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// Passkey is the public half of a passkey of an operator's.
type Passkey struct {
	ID        []byte // as the authenticator chose it
	Operator  flex.OperatorID
	Name      string // what the operator calls it
	PublicKey []byte // COSE
	SignCount uint32 // of the newest use; 0 where the authenticator counts none
	Synced    bool   // whether the authenticator may copy it to other devices
	MadeAt    time.Time
	UsedAt    time.Time // zero until it was used
}

const passkeyColumns = `p.id, p.operator_id, p.name, p.public_key, p.sign_count, p.synced, p.made_at, p.used_at`

func scanPasskey(s scanner) (Passkey, error) {
	var p Passkey
	err := s.Scan(
		&p.ID,
		&p.Operator,
		&p.Name,
		&p.PublicKey,
		&p.SignCount,
		&p.Synced,
		instant{&p.MadeAt},
		instant{&p.UsedAt},
	)

	return p, err
}

// AddPasskey stores a new passkey. One that is kept already, by whomever, is a Conflict.
func (all *All) AddPasskey(ctx context.Context, p Passkey) error {
	row := []value{
		{"id", p.ID},
		{"operator_id", p.Operator.Bytes()},
		{"name", p.Name},
		{"public_key", p.PublicKey},
		{"sign_count", int64(p.SignCount)},
		{"synced", p.Synced},
		{"made_at", micros(all.now)},
	}

	n, err := all.insertOr(ctx, "operator_passkey", row, `ON CONFLICT (id) DO NOTHING`)
	if err == nil && n == 0 {
		err = flex.Fail(flex.Conflict, "this passkey is known already")
	}

	return err
}

// Passkeys returns an operator's passkeys, oldest first.
func (all *All) Passkeys(ctx context.Context, id flex.OperatorID) ([]Passkey, error) {
	return rows(
		ctx,
		all.conn,
		scanPasskey,
		`SELECT `+passkeyColumns+`
		FROM operator_passkey p WHERE p.operator_id = $1 ORDER BY p.made_at, p.id`,
		id.Bytes(),
	)
}

// UsePasskey records that a passkey was used, and its count, which is at least that of before. It
// reports whether it was so.
func (all *All) UsePasskey(
	ctx context.Context,
	id []byte,
	before, count uint32,
) (bool, error) {
	n, err := all.exec(
		ctx,
		`UPDATE operator_passkey SET sign_count = $3, used_at = $4 WHERE id = $1 AND sign_count = $2`,
		id,
		int64(before),
		int64(count),
		micros(all.now),
	)

	return n == 1, err
}

// RemovePasskey deletes a passkey of the operator's, or all of them if id is nil, and returns how
// many there were.
func (all *All) RemovePasskey(
	ctx context.Context,
	operator flex.OperatorID,
	id []byte,
) (int64, error) {
	if id == nil {
		return all.exec(
			ctx,
			`DELETE FROM operator_passkey WHERE operator_id = $1`,
			operator.Bytes(),
		)
	}

	return all.exec(
		ctx,
		`DELETE FROM operator_passkey WHERE operator_id = $1 AND id = $2`,
		operator.Bytes(),
		id,
	)
}

// OperatorByID returns an operator, or a NotFound failure. One who was removed is none.
func (all *All) OperatorByID(ctx context.Context, id flex.OperatorID) (Operator, error) {
	return one(
		ctx,
		all.conn,
		"no such operator",
		scanOperator,
		`SELECT `+operatorColumns+` FROM operator o WHERE o.id = $1 AND o.removed_at IS NULL`,
		id.Bytes(),
	)
}
