package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// Token is a bearer token by its hash. It lives by the true clock, whatever an
// organisation's sandbox clock says.
type Token struct {
	Hash      [32]byte // SHA-256
	Org       flex.OrgID
	Username  string // of the credential that it was given to
	Roles     []flex.Role
	Site      flex.SiteID // a component token's one site; zero for an organisation's token
	Origin    string      // a component token's one web origin
	ExpiresAt time.Time
}

const tokenColumns = `hash, org_id, username, roles, site_id, origin, expires_at`

func scanToken(s scanner) (t Token, err error) {
	var hash []byte
	var roles string
	err = s.Scan(&hash, &t.Org, &t.Username, &roles, &t.Site, &t.Origin, instant{&t.ExpiresAt})
	copy(t.Hash[:], hash)
	t.Roles = splitRoles(roles)
	return t, err
}

// AddToken keeps a token of a credential that has not been revoked; without one it is an
// Unauthorized failure.
func (all *All) AddToken(ctx context.Context, t Token) error {
	var site any
	if !t.Site.IsZero() {
		site = t.Site.Bytes()
	}

	n, err := all.exec(ctx, `
		INSERT INTO token (`+tokenColumns+`) SELECT $1, $2, username, $4, $5, $6, $7
		FROM credential WHERE username = $3 AND org_id = $2 AND revoked_at IS NULL`+all.db.d.forUpdate,
		t.Hash[:], t.Org.Bytes(), t.Username, joinRoles(t.Roles), site, t.Origin, micros(t.ExpiresAt))
	if err == nil && n == 0 {
		return flex.Fail(flex.Unauthorized, "the credential %q does not hold any more", t.Username)
	}

	return err
}

// Token returns the token of that hash, expired or not, or a NotFound failure.
func (all *All) Token(ctx context.Context, hash [32]byte) (Token, error) {
	return one(ctx, all.conn, "no such token", scanToken, `SELECT `+tokenColumns+` FROM token WHERE hash = $1`, hash[:])
}

// KnownOrigin reports whether a living component token was made for the web origin.
func (all *All) KnownOrigin(ctx context.Context, origin string) (known bool, err error) {
	err = all.row(ctx, `SELECT EXISTS (SELECT 1 FROM token WHERE origin = $1 AND origin <> '' AND expires_at > $2)`, origin, micros(all.now)).Scan(&known)
	return known, err
}

// DropExpired deletes the tokens, operators' sessions, idempotency keys and cloud links
// whose time is over, and returns how many there were.
func (all *All) DropExpired(ctx context.Context) (n int64, err error) {
	for _, table := range []string{"token", "operator_session", "idempotency", "cloud_link"} {
		k, err := all.exec(ctx, `DELETE FROM `+table+` WHERE expires_at <= $1`, micros(all.now))
		if err != nil {
			return n, err
		}
		n += k
	}

	return n, nil
}
