package store

import (
	"context"
	"database/sql"
	"errors"
	"net/netip"
	"time"

	"flexd/internal/flex"
)

// Token is a bearer token by its hash. It lives by the true clock, whatever an
// organisation's sandbox clock says.
type Token struct {
	Hash     [32]byte // SHA-256
	Org      flex.OrgID
	Username string // of the credential that it was given to
	Roles    []flex.Role
	// a component token's one site; zero for an organisation's token
	Site      flex.SiteID
	Origin    string // a component token's one web origin
	ExpiresAt time.Time
	AllowFrom []netip.Prefix // of the credential, by now; none for everywhere
	OrgFrom   []netip.Prefix // of the organisation, likewise
	// that the credential is bound to by now; none for none
	Certificates []string
}

const tokenColumns = `hash, org_id, username, roles, site_id, origin, expires_at`

func scanToken(s scanner) (Token, error) {
	var hash []byte
	var roles, networks, orgs, certificates string
	var t Token
	err := s.Scan(
		&hash,
		&t.Org,
		&t.Username,
		&roles,
		&t.Site,
		&t.Origin,
		instant{&t.ExpiresAt},
		&networks,
		&orgs,
		&certificates,
	)

	if err != nil {
		return t, err
	}

	copy(t.Hash[:], hash)
	t.Roles = splitRoles(roles)
	t.Certificates = splitWords(certificates)
	t.AllowFrom, err = splitPrefixes(networks)
	if err != nil {
		return t, err
	}

	t.OrgFrom, err = splitPrefixes(orgs)

	return t, err
}

// AddToken stores a token of a credential that holds, and returns when it ends; without one it
// is an Unauthorized failure. No token outlives its credential.
func (all *All) AddToken(ctx context.Context, t Token) (time.Time, error) {
	var ends time.Time
	var site any
	if !t.Site.IsZero() {
		site = t.Site.Bytes()
	}

	err := all.row(
		ctx,
		`
		INSERT INTO token (`+tokenColumns+`) SELECT $1, $2, c.username, $4, $5, $6,
			CASE WHEN c.expires_at < $7 THEN c.expires_at ELSE $7 END
		FROM credential c WHERE c.username = $3 AND c.org_id = $2 AND c.revoked_at IS NULL AND (c.expires_at IS NULL OR c.expires_at > $8)`+all.db.d.forUpdate+`
		RETURNING expires_at`,
		t.Hash[:],
		t.Org.Bytes(),
		t.Username,
		joinRoles(t.Roles),
		site,
		t.Origin,
		micros(t.ExpiresAt),
		micros(all.now),
	).Scan(instant{&ends})

	if errors.Is(err, sql.ErrNoRows) {
		return ends, flex.Fail(
			flex.Unauthorized,
			"the credential %q does not hold any more",
			t.Username,
		)
	}

	return ends, err
}

// Token returns the token with a hash, expired or not, or a NotFound failure. It does not find
// one whose credential was revoked: an earlier release could leave it behind.
func (all *All) Token(ctx context.Context, hash [32]byte) (Token, error) {
	return one(
		ctx,
		all.conn,
		"no such token",
		scanToken,
		`SELECT t.hash, t.org_id, t.username, t.roles, t.site_id, t.origin, t.expires_at, COALESCE(c.allow_from, ''), o.allow_from, COALESCE(c.certificates, '')
		FROM token t LEFT JOIN credential c ON c.username = t.username JOIN org o ON o.id = t.org_id
		WHERE t.hash = $1 AND c.revoked_at IS NULL`,
		hash[:],
	)
}

// DropTokens ends the tokens of a site that have exactly these roles, but for the one of that hash.
func (all *All) DropTokens(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	roles []flex.Role,
	but [32]byte,
) error {
	_, err := all.exec(
		ctx,
		`DELETE FROM token WHERE org_id = $1 AND site_id = $2 AND roles = $3 AND hash <> $4`,
		org.Bytes(),
		site.Bytes(),
		joinRoles(roles),
		but[:],
	)

	return err
}

// KnownOrigin reports whether a living component token was made for the web origin.
func (all *All) KnownOrigin(
	ctx context.Context,
	origin string,
) (bool, error) {
	var known bool
	err := all.row(
		ctx,
		`SELECT EXISTS (SELECT 1 FROM token WHERE origin = $1 AND origin <> '' AND expires_at > $2)`,
		origin,
		micros(all.now),
	).Scan(&known)

	return known, err
}

// expiring are the tables whose rows expire, each with its key.
var expiring = []struct{ table, key string }{
	{"token", "hash"},
	{"operator_session", "hash"},
	{"operator_sign_in", "nonce"},
	{"idempotency", "org_id, key"},
	{"cloud_link", "state"},
}

// DropExpired deletes the tokens, operators' sessions and sign-ins, idempotency keys and cloud
// links whose time is over, up to limit of each, and returns how many there were, and whether
// more may be left.
func (all *All) DropExpired(
	ctx context.Context,
	limit int,
) (dropped int64, more bool, err error) {
	for _, t := range expiring {
		n, err := all.exec(
			ctx,
			`DELETE FROM `+t.table+` WHERE (`+t.key+`) IN (SELECT `+t.key+` FROM `+t.table+` WHERE expires_at <= $1 LIMIT $2)`,
			micros(all.now),
			limit,
		)
		if err != nil {
			return dropped, false, err
		}

		dropped += n
		more = more || n == int64(limit)
	}

	return dropped, more, nil
}
