package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"flexd/internal/flex"
)

// Credential is a name and the hash of a secret with which an organisation asks for tokens.
type Credential struct {
	Username   string
	Org        flex.OrgID
	SecretHash []byte
	Roles      []flex.Role
	CreatedAt  time.Time
	RevokedAt  time.Time // zero while it holds
}

var _ = law("a token belongs to a credential of its organisation that has not been revoked", `
	SELECT t.username AS what FROM token t LEFT JOIN credential c ON c.username = t.username AND c.org_id = t.org_id
	WHERE c.username IS NULL OR c.revoked_at IS NOT NULL`)

func joinRoles(roles []flex.Role) string {
	words := make([]string, len(roles))
	for i, r := range roles {
		words[i] = string(r)
	}
	return strings.Join(words, ",")
}

func splitRoles(text string) (roles []flex.Role) {
	for word := range strings.SplitSeq(text, ",") {
		if word != "" {
			roles = append(roles, flex.Role(word))
		}
	}
	return roles
}

const credentialColumns = `username, org_id, secret_hash, roles, created_at, revoked_at`

func scanCredential(s scanner) (c Credential, err error) {
	var roles string
	err = s.Scan(&c.Username, &c.Org, &c.SecretHash, &roles, instant{&c.CreatedAt}, instant{&c.RevokedAt})
	c.Roles = splitRoles(roles)
	return c, err
}

// AddCredential keeps a credential. A name that is taken, by whichever organisation, is a
// Conflict.
func (all *All) AddCredential(ctx context.Context, c Credential) error {
	n, err := all.exec(ctx, `INSERT INTO credential (username, org_id, secret_hash, roles, created_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (username) DO NOTHING`,
		c.Username, c.Org.Bytes(), c.SecretHash, joinRoles(c.Roles), micros(all.now))
	if err == nil && n == 0 {
		return flex.Fail(flex.Conflict, "the username %q is taken: choose another", c.Username)
	}
	return err
}

// CredentialNamed returns the credential of that name, or a NotFound failure.
func (all *All) CredentialNamed(ctx context.Context, username string) (Credential, error) {
	return one(ctx, all.conn, fmt.Sprintf("no credential is named %q", username), scanCredential,
		`SELECT `+credentialColumns+` FROM credential WHERE username = $1`, username)
}

// Credentials returns an organisation's credentials by name.
func (all *All) Credentials(ctx context.Context, org flex.OrgID) ([]Credential, error) {
	return rows(ctx, all.conn, scanCredential, `SELECT `+credentialColumns+` FROM credential WHERE org_id = $1 ORDER BY username`, org.Bytes())
}

// RevokeCredential ends a credential and every token that it was given. It reports whether
// there was one to end.
func (all *All) RevokeCredential(ctx context.Context, username string) (bool, error) {
	if _, err := all.exec(ctx, `DELETE FROM token WHERE username = $1`, username); err != nil {
		return false, err
	}
	n, err := all.exec(ctx, `UPDATE credential SET revoked_at = $2 WHERE username = $1 AND revoked_at IS NULL`, username, micros(all.now))
	return n > 0, err
}
