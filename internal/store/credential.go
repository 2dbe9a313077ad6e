package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
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
	CredentialLimits
	// the organisation's own networks; none for everywhere. Read, not written
	OrgFrom []netip.Prefix
	// SHA-256 fingerprints of the client certificates that it is bound to; none for none
	Certificates []string

	UsedAt      time.Time // the latest login, to the minute; zero for none
	FormerHash  []byte    // of the password before the newest, nil for none
	FormerUntil time.Time // how long that one is taken
}

// CredentialLimits are until when, and from which networks, a credential and its tokens are
// valid.
type CredentialLimits struct {
	ExpiresAt time.Time      // zero for never
	AllowFrom []netip.Prefix // none for everywhere
}

func joinPrefixes(networks []netip.Prefix) string {
	texts := make([]string, len(networks))
	for i, n := range networks {
		texts[i] = n.String()
	}

	return strings.Join(texts, ",")
}

func splitPrefixes(text string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for word := range strings.SplitSeq(text, ",") {
		if word == "" {
			continue
		}

		n, err := netip.ParsePrefix(word)
		if err != nil {
			return nil, fmt.Errorf("stored network: %w", err)
		}

		networks = append(networks, n)
	}

	return networks, nil
}

var _ = law(
	"a token belongs to a credential of its organisation that has not been revoked",
	`
	SELECT t.username AS what FROM token t LEFT JOIN credential c ON c.username = t.username AND c.org_id = t.org_id
	WHERE c.username IS NULL OR c.revoked_at IS NOT NULL`,
)

func joinRoles(roles []flex.Role) string {
	words := make([]string, len(roles))
	for i, r := range roles {
		words[i] = string(r)
	}

	return strings.Join(words, ",")
}

func splitRoles(text string) []flex.Role {
	var roles []flex.Role
	for _, word := range splitWords(text) {
		roles = append(roles, flex.Role(word))
	}

	return roles
}

// splitWords returns the words of a stored list.
func splitWords(text string) []string {
	var words []string
	for word := range strings.SplitSeq(text, ",") {
		if word != "" {
			words = append(words, word)
		}
	}

	return words
}

const credentialColumns = `username, org_id, secret_hash, roles, created_at, revoked_at, expires_at, used_at, allow_from, certificates, former_hash, former_until,
	COALESCE((SELECT o.allow_from FROM org o WHERE o.id = credential.org_id), '')`

func scanCredential(s scanner) (Credential, error) {
	var roles, networks, certificates, orgs string
	var c Credential
	err := s.Scan(
		&c.Username,
		&c.Org,
		&c.SecretHash,
		&roles,
		instant{&c.CreatedAt},
		instant{&c.RevokedAt},
		instant{&c.ExpiresAt},
		instant{&c.UsedAt},
		&networks,
		&certificates,
		&c.FormerHash,
		instant{&c.FormerUntil},
		&orgs,
	)

	if err != nil {
		return c, err
	}

	c.Roles = splitRoles(roles)
	c.Certificates = splitWords(certificates)
	c.AllowFrom, err = splitPrefixes(networks)
	if err != nil {
		return c, err
	}

	c.OrgFrom, err = splitPrefixes(orgs)

	return c, err
}

// SetOrgNetworks sets the networks from which the organisation's credentials are valid; none
// for everywhere.
func (tx *Tx) SetOrgNetworks(
	ctx context.Context,
	networks []netip.Prefix,
) error {
	_, err := tx.exec(
		ctx,
		`UPDATE org SET allow_from = $2 WHERE id = $1`,
		tx.org.Bytes(),
		joinPrefixes(networks),
	)

	return err
}

// OrgNetworks returns the networks from which the organisation's credentials are valid; none
// for everywhere.
func (tx *Tx) OrgNetworks(ctx context.Context) ([]netip.Prefix, error) {
	var text string
	err := tx.row(
		ctx,
		`SELECT allow_from FROM org WHERE id = $1`,
		tx.org.Bytes(),
	).Scan(&text)
	if err != nil {
		return nil, err
	}

	return splitPrefixes(text)
}

// AddCredential stores a credential. A name that is taken, by whichever organisation, is a
// Conflict, unless it is a revoked one of the same organisation: its place is taken.
func (all *All) AddCredential(ctx context.Context, c Credential) error {
	row := []value{
		{"username", c.Username},
		{"org_id", c.Org.Bytes()},
		{"secret_hash", c.SecretHash},
		{"roles", joinRoles(c.Roles)},
		{"created_at", micros(all.now)},
		{"expires_at", micros(c.ExpiresAt)},
		{"allow_from", joinPrefixes(c.AllowFrom)},
	}

	n, err := all.upsert(ctx, "credential", row, rewrite{
		key:  []string{"username"},
		keep: []string{"org_id"},
		also: `certificates = '', revoked_at = NULL, used_at = NULL, former_hash = NULL, former_until = NULL`,
		only: `credential.org_id = excluded.org_id AND credential.revoked_at IS NOT NULL`,
	})

	if err == nil && n == 0 {
		return flex.Fail(
			flex.Conflict,
			"the username %q is taken: choose another",
			c.Username,
		)
	}

	return err
}

// LimitCredential replaces until when and from where a credential is of use. Tokens that were
// given out end with it at the latest. Those of households that ended with it before, and
// would have lasted longer, go on with it, until the instant at the latest. It reports whether
// there is one that is not revoked.
func (all *All) LimitCredential(
	ctx context.Context,
	username string,
	l CredentialLimits,
	households time.Time,
) (bool, error) {
	var former time.Time
	err := all.row(
		ctx,
		`SELECT expires_at FROM credential WHERE username = $1 AND revoked_at IS NULL`+all.db.d.forUpdate,
		username,
	).Scan(instant{&former})
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}

	_, err = all.exec(
		ctx,
		`UPDATE credential SET expires_at = $2, allow_from = $3 WHERE username = $1 AND revoked_at IS NULL`,
		username,
		micros(l.ExpiresAt),
		joinPrefixes(l.AllowFrom),
	)
	if err != nil {
		return false, err
	}

	err = all.prolongHouseholds(ctx, username, former, households)
	if err != nil || l.ExpiresAt.IsZero() {
		return true, err
	}

	_, err = all.exec(
		ctx,
		`UPDATE token SET expires_at = $2 WHERE username = $1 AND expires_at > $2`,
		username,
		micros(l.ExpiresAt),
	)

	return true, err
}

// prolongHouseholds has the households' tokens that ended with their credential last until an
// instant: each is written into a program once, and nobody is there to write in another.
func (all *All) prolongHouseholds(
	ctx context.Context,
	username string,
	former, until time.Time,
) error {
	if former.IsZero() {
		return nil // none was shortened
	}

	_, err := all.exec(
		ctx,
		`UPDATE token SET expires_at = $4 WHERE username = $1 AND roles = $2 AND expires_at = $3`,
		username,
		joinRoles([]flex.Role{flex.HomeAssistant}),
		micros(former),
		micros(until),
	)

	return err
}

// BindCredential replaces the fingerprints of the client certificates that a credential of the
// organisation's is bound to. It reports whether there is one that is not revoked.
func (all *All) BindCredential(
	ctx context.Context,
	org flex.OrgID,
	username string,
	fingerprints []string,
) (bool, error) {
	n, err := all.exec(
		ctx,
		`UPDATE credential SET certificates = $3 WHERE username = $1 AND org_id = $2 AND revoked_at IS NULL`,
		username,
		org.Bytes(),
		strings.Join(fingerprints, ","),
	)

	return n > 0, err
}

// RollCredential gives a credential the hash of a new secret; the one before is accepted until
// the instant. If the instant is zero, the new secret replaces the present one, and the one
// before that stays accepted. It reports whether there is a credential that is not revoked.
func (all *All) RollCredential(
	ctx context.Context,
	username string,
	hash []byte,
	formerUntil time.Time,
) (bool, error) {
	args := []any{username, hash}
	former := ""
	if !formerUntil.IsZero() {
		former = `former_hash = secret_hash, former_until = $3, `
		args = append(args, micros(formerUntil))
	}

	n, err := all.exec(
		ctx,
		`UPDATE credential SET `+former+`secret_hash = $2 WHERE username = $1 AND revoked_at IS NULL`,
		args...,
	)

	return n > 0, err
}

// UseCredential records that the credential is used now.
func (all *All) UseCredential(ctx context.Context, username string) error {
	_, err := all.exec(
		ctx,
		`UPDATE credential SET used_at = $2 WHERE username = $1`,
		username,
		micros(all.now),
	)

	return err
}

// CredentialNamed returns the credential of that name, or a NotFound failure.
func (all *All) CredentialNamed(
	ctx context.Context,
	username string,
) (Credential, error) {
	return one(
		ctx,
		all.conn,
		fmt.Sprintf("no credential is named %q", username),
		scanCredential,
		`SELECT `+credentialColumns+` FROM credential WHERE username = $1`,
		username,
	)
}

// Credentials returns an organisation's credentials by name.
func (all *All) Credentials(
	ctx context.Context,
	org flex.OrgID,
) ([]Credential, error) {
	return rows(
		ctx,
		all.conn,
		scanCredential,
		`SELECT `+credentialColumns+
			` FROM credential WHERE org_id = $1 ORDER BY username`,
		org.Bytes(),
	)
}

// RevokeCredential ends a credential and every token that it was given, and reports whether
// there was one. The credential is ended first: a concurrent login has then either stored its
// token, which is ended too, or finds no credential.
func (all *All) RevokeCredential(
	ctx context.Context,
	username string,
) (bool, error) {
	n, err := all.exec(
		ctx,
		`UPDATE credential SET revoked_at = $2 WHERE username = $1 AND revoked_at IS NULL`,
		username,
		micros(all.now),
	)
	if err != nil {
		return false, err
	}

	_, err = all.exec(
		ctx,
		`DELETE FROM token WHERE username = $1`,
		username,
	)

	return n > 0, err
}
