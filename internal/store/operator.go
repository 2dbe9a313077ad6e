package store

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
)

// Operator is a person who runs flexd.
type Operator struct {
	ID         flex.OperatorID
	Name       string
	SecretHash []byte
	CreatedAt  time.Time
	RemovedAt  time.Time // zero while they may log in
}

const operatorColumns = `o.id, o.name, o.secret_hash, o.created_at, o.removed_at`

func scanOperator(s scanner) (o Operator, err error) {
	err = s.Scan(&o.ID, &o.Name, &o.SecretHash, instant{&o.CreatedAt}, instant{&o.RemovedAt})
	return o, err
}

// AddOperator keeps an operator, whose id and instant it sets. A name that was ever taken is
// a Conflict.
func (all *All) AddOperator(ctx context.Context, o *Operator) error {
	o.ID, o.CreatedAt = flex.OperatorID(all.newID()), all.now
	n, err := all.exec(ctx, `INSERT INTO operator (id, name, secret_hash, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING`,
		o.ID.Bytes(), o.Name, o.SecretHash, micros(o.CreatedAt))
	if err == nil && n == 0 {
		return flex.Fail(flex.Conflict, "an operator named %q exists already", o.Name)
	}
	return err
}

// OperatorNamed returns the operator of that name, or a NotFound failure.
func (all *All) OperatorNamed(ctx context.Context, name string) (Operator, error) {
	return one(ctx, all.conn, fmt.Sprintf("no operator is named %q", name), scanOperator,
		`SELECT `+operatorColumns+` FROM operator o WHERE o.name = $1`, name)
}

// Operators returns every operator by name, those that were removed too.
func (all *All) Operators(ctx context.Context) ([]Operator, error) {
	return rows(ctx, all.conn, scanOperator, `SELECT `+operatorColumns+` FROM operator o ORDER BY o.name`)
}

// SetOperatorSecret replaces an operator's secret and ends their sessions. It lets one who
// was removed in again.
func (all *All) SetOperatorSecret(ctx context.Context, id flex.OperatorID, hash []byte) error {
	if err := all.endSessions(ctx, id); err != nil {
		return err
	}
	_, err := all.exec(ctx, `UPDATE operator SET secret_hash = $2, removed_at = NULL WHERE id = $1`, id.Bytes(), hash)
	return err
}

// RemoveOperator ends an operator's sessions and lets them in no more.
func (all *All) RemoveOperator(ctx context.Context, id flex.OperatorID) error {
	if err := all.endSessions(ctx, id); err != nil {
		return err
	}
	_, err := all.exec(ctx, `UPDATE operator SET removed_at = $2 WHERE id = $1`, id.Bytes(), micros(all.now))
	return err
}

func (all *All) endSessions(ctx context.Context, id flex.OperatorID) error {
	_, err := all.exec(ctx, `DELETE FROM operator_session WHERE operator_id = $1`, id.Bytes())
	return err
}

// AddOperatorSession keeps that whoever shows the secret of this hash is the operator.
func (all *All) AddOperatorSession(ctx context.Context, hash [32]byte, id flex.OperatorID, expires time.Time) error {
	_, err := all.exec(ctx, `INSERT INTO operator_session (hash, operator_id, created_at, expires_at) VALUES ($1, $2, $3, $4)`,
		hash[:], id.Bytes(), micros(all.now), micros(expires))
	return err
}

// OperatorOf returns the operator whose session has the hash and is not over, or a NotFound
// failure.
func (all *All) OperatorOf(ctx context.Context, hash [32]byte) (Operator, error) {
	return one(ctx, all.conn, "no such session", scanOperator, `SELECT `+operatorColumns+`
		FROM operator_session s JOIN operator o ON o.id = s.operator_id
		WHERE s.hash = $1 AND s.expires_at > $2 AND o.removed_at IS NULL`, hash[:], micros(all.now))
}

// EndOperatorSession ends the session of that hash.
func (all *All) EndOperatorSession(ctx context.Context, hash [32]byte) error {
	_, err := all.exec(ctx, `DELETE FROM operator_session WHERE hash = $1`, hash[:])
	return err
}
