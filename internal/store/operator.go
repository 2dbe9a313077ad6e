package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"flexd/internal/flex"
)

// Operator is a person who runs flexd.
type Operator struct {
	ID         flex.OperatorID
	Name       string
	SecretHash []byte
	Role       string // as package access has them
	// the identity provider that they sign in at; "" for a password of their own
	Issuer    string
	Subject   string // who they are there
	CreatedAt time.Time
	RemovedAt time.Time // zero while they may log in
}

// OperatorSession is one place where an operator is logged in.
type OperatorSession struct {
	Hash       [32]byte // SHA-256 of what the browser keeps
	Operator   flex.OperatorID
	Name, Role string // of the operator; read, not written
	Issuer     string // of the operator; read, not written
	Source     string // the address that it was opened from
	// whether the second step's code has not been given yet: until then the session opens
	// nothing
	AwaitsCode bool
	CreatedAt  time.Time
	// when the operator last proved who they are; if zero when added, the beginning of the
	// session
	ConfirmedAt time.Time
	UsedAt      time.Time // to the minute
	ExpiresAt   time.Time
}

const operatorColumns = `o.id, o.name, o.secret_hash, o.role, o.issuer, o.subject, o.created_at, o.removed_at`

func scanOperator(s scanner) (Operator, error) {
	var o Operator
	err := s.Scan(
		&o.ID,
		&o.Name,
		&o.SecretHash,
		&o.Role,
		&o.Issuer,
		&o.Subject,
		instant{&o.CreatedAt},
		instant{&o.RemovedAt},
	)

	return o, err
}

// AddOperator stores an operator, whose id and instant it sets. A name that was ever taken is
// a Conflict.
func (all *All) AddOperator(ctx context.Context, o *Operator) error {
	o.ID, o.CreatedAt = flex.OperatorID(all.newID()), all.now

	row := []value{
		{"id", o.ID.Bytes()},
		{"name", o.Name},
		{"secret_hash", o.SecretHash},
		{"role", o.Role},
		{"issuer", o.Issuer},
		{"subject", o.Subject},
		{"created_at", micros(o.CreatedAt)},
	}

	n, err := all.insertOr(
		ctx,
		"operator",
		row,
		`ON CONFLICT (name) DO NOTHING`,
	)
	if err == nil && n == 0 {
		return all.operatorThere(ctx, o.Name)
	}

	return err
}

// operatorThere returns the Conflict of a name that is an operator's, or a removed operator's.
// Lists do not show removed operators, so the error says how to readmit them.
func (all *All) operatorThere(ctx context.Context, name string) error {
	o, err := all.OperatorNamed(ctx, name)
	if err != nil {
		return err
	}

	if o.RemovedAt.IsZero() {
		return flex.Fail(
			flex.Conflict,
			"an operator named %q exists already",
			name,
		)
	}

	return flex.Fail(
		flex.Conflict,
		"an operator named %q was removed, and their name stays theirs: flexd operator password %q lets them in again, with the role %s; somebody else needs another name",
		name,
		name,
		o.Role,
	)
}

// OperatorNamed returns the operator of that name, or a NotFound failure.
func (all *All) OperatorNamed(
	ctx context.Context,
	name string,
) (Operator, error) {
	return one(
		ctx,
		all.conn,
		fmt.Sprintf("no operator is named %q", name),
		scanOperator,
		`SELECT `+operatorColumns+` FROM operator o WHERE o.name = $1`,
		name,
	)
}

// OperatorOf returns the operator with a subject at an identity provider, also a removed one;
// nil if there is none.
func (all *All) OperatorOf(
	ctx context.Context,
	issuer, subject string,
) (*Operator, error) {
	o, err := scanOperator(all.row(
		ctx,
		`SELECT `+operatorColumns+
			` FROM operator o WHERE o.issuer = $1 AND o.subject = $2`,
		issuer,
		subject,
	))

	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	return &o, nil
}

// LinkIdentity has an operator sign in at an identity provider only. Their password and their
// sessions end.
func (all *All) LinkIdentity(
	ctx context.Context,
	id flex.OperatorID,
	issuer, subject string,
) error {
	_, err := all.exec(
		ctx,
		`UPDATE operator SET issuer = $2, subject = $3, secret_hash = $4 WHERE id = $1`,
		id.Bytes(),
		issuer,
		subject,
		[]byte{},
	)

	if all.db.d.unique(err) { // somebody signed in as that subject meanwhile
		return flex.Fail(
			flex.Conflict,
			"that subject is another operator already: flexd operator list prints them",
		)
	}
	if err != nil {
		return err
	}

	return all.EndOperatorSessions(ctx, id)
}

// TakeSignIn uses up the nonce of an identity provider's answer, and reports whether it was
// unused.
func (all *All) TakeSignIn(
	ctx context.Context,
	nonce [32]byte,
	expires time.Time,
) (bool, error) {
	n, err := all.exec(
		ctx,
		`INSERT INTO operator_sign_in (nonce, expires_at) VALUES ($1, $2) ON CONFLICT (nonce) DO NOTHING`,
		nonce[:],
		micros(expires),
	)

	return n == 1, err
}

// Operators returns every operator by name, removed ones included.
func (all *All) Operators(ctx context.Context) ([]Operator, error) {
	return rows(
		ctx,
		all.conn,
		scanOperator,
		`SELECT `+operatorColumns+` FROM operator o ORDER BY o.name`,
	)
}

// SetOperatorSecret replaces an operator's secret and ends their sessions. It readmits a
// removed operator, and makes one who signed in at an identity provider sign in by the secret
// only.
func (all *All) SetOperatorSecret(
	ctx context.Context,
	id flex.OperatorID,
	hash []byte,
) error {
	_, err := all.exec(
		ctx,
		`UPDATE operator SET secret_hash = $2, issuer = '', subject = '', removed_at = NULL WHERE id = $1`,
		id.Bytes(),
		hash,
	)

	if err != nil {
		return err
	}

	return all.EndOperatorSessions(ctx, id)
}

// RemoveOperator ends an operator's sessions and access. For an operator who was removed
// already the instant stays.
func (all *All) RemoveOperator(ctx context.Context, id flex.OperatorID) error {
	_, err := all.exec(
		ctx,
		`UPDATE operator SET removed_at = COALESCE(removed_at, $2) WHERE id = $1`,
		id.Bytes(),
		micros(all.now),
	)

	if err != nil {
		return err
	}

	return all.EndOperatorSessions(ctx, id)
}

// SetOperatorRole changes what an operator may do.
func (all *All) SetOperatorRole(
	ctx context.Context,
	id flex.OperatorID,
	role string,
) error {
	_, err := all.exec(
		ctx,
		`UPDATE operator SET role = $2 WHERE id = $1`,
		id.Bytes(),
		role,
	)

	return err
}

// EndOperatorSessions ends all sessions of an operator.
func (all *All) EndOperatorSessions(
	ctx context.Context,
	id flex.OperatorID,
) error {
	_, err := all.exec(
		ctx,
		`DELETE FROM operator_session WHERE operator_id = $1`,
		id.Bytes(),
	)

	return err
}

const operatorSessionColumns = `s.hash, s.operator_id, o.name, o.role, o.issuer, s.source, s.created_at, s.confirmed_at, s.used_at, s.expires_at`

func scanOperatorSession(row scanner) (OperatorSession, error) {
	var hash []byte
	var s OperatorSession
	err := row.Scan(
		&hash,
		&s.Operator,
		&s.Name,
		&s.Role,
		&s.Issuer,
		&s.Source,
		instant{&s.CreatedAt},
		instant{&s.ConfirmedAt},
		instant{&s.UsedAt},
		instant{&s.ExpiresAt},
	)

	copy(s.Hash[:], hash)

	return s, err
}

// LockOperator reports whether an operator may log in with the password that they had when
// they were read. Until the transaction ends, nobody can remove them or change their password.
// Whoever does so afterwards ends their sessions, including one that this transaction opens.
func (all *All) LockOperator(ctx context.Context, o Operator) (bool, error) {
	now, err := one(
		ctx,
		all.conn,
		fmt.Sprintf("no operator is named %q", o.Name),
		scanOperator,
		`SELECT `+operatorColumns+` FROM operator o WHERE o.id = $1`+all.db.d.forNoKeyUpdate,
		o.ID.Bytes(),
	)
	if err != nil {
		return false, err
	}

	return now.RemovedAt.IsZero() && bytes.Equal(now.SecretHash, o.SecretHash), nil
}

// AddOperatorSession adds a session: whoever presents the secret with the session's hash is
// the operator, who has just given their password, or has proved who they are at ConfirmedAt.
func (all *All) AddOperatorSession(
	ctx context.Context,
	s OperatorSession,
) error {
	now := micros(all.now)
	confirmed := now
	if !s.ConfirmedAt.IsZero() {
		confirmed = micros(s.ConfirmedAt)
	}

	awaits := 0
	if s.AwaitsCode {
		awaits = 1
	}

	row := []value{
		{"hash", s.Hash[:]},
		{"operator_id", s.Operator.Bytes()},
		{"source", s.Source},
		{"created_at", now},
		{"confirmed_at", confirmed},
		{"used_at", now},
		{"expires_at", micros(s.ExpiresAt)},
		{"awaits_code", awaits},
	}

	return all.insert(ctx, "operator_session", row)
}

// OperatorSession returns the session of the hash if it is not over, or a NotFound failure.
func (all *All) OperatorSession(
	ctx context.Context,
	hash [32]byte,
) (OperatorSession, error) {
	return all.operatorSession(ctx, hash, 0)
}

// operatorSession returns the session with the hash if it is not over, and if it awaits a code
// (1) or does not (0).
func (all *All) operatorSession(
	ctx context.Context,
	hash [32]byte,
	awaitsCode int,
) (OperatorSession, error) {
	return one(
		ctx,
		all.conn,
		"no such session",
		scanOperatorSession,
		`SELECT `+operatorSessionColumns+`
		FROM operator_session s JOIN operator o ON o.id = s.operator_id
		WHERE s.hash = $1 AND s.expires_at > $2 AND s.awaits_code = $3 AND o.removed_at IS NULL`,
		hash[:],
		micros(all.now),
		awaitsCode,
	)
}

// OperatorSessions returns every operator's sessions that are not over, the newest first.
func (all *All) OperatorSessions(ctx context.Context) ([]OperatorSession, error) {
	return rows(
		ctx,
		all.conn,
		scanOperatorSession,
		`SELECT `+operatorSessionColumns+`
		FROM operator_session s JOIN operator o ON o.id = s.operator_id
		WHERE s.expires_at > $1 AND s.awaits_code = 0 AND o.removed_at IS NULL
		ORDER BY s.created_at DESC, s.hash`,
		micros(all.now),
	)
}

// ConfirmOperatorSession records that the operator has just proved again who they are.
func (all *All) ConfirmOperatorSession(
	ctx context.Context,
	hash [32]byte,
) error {
	_, err := all.exec(
		ctx,
		`UPDATE operator_session SET confirmed_at = $2 WHERE hash = $1`,
		hash[:],
		micros(all.now),
	)

	return err
}

// UseOperatorSession records that the session is used now.
func (all *All) UseOperatorSession(ctx context.Context, hash [32]byte) error {
	_, err := all.exec(
		ctx,
		`UPDATE operator_session SET used_at = $2 WHERE hash = $1`,
		hash[:],
		micros(all.now),
	)

	return err
}

// EndOperatorSession ends the session of that hash.
func (all *All) EndOperatorSession(ctx context.Context, hash [32]byte) error {
	_, err := all.exec(
		ctx,
		`DELETE FROM operator_session WHERE hash = $1`,
		hash[:],
	)

	return err
}
