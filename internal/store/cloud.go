package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// CloudLink is a user's way to a manufacturer's cloud and back.
type CloudLink struct {
	State     [32]byte // hash of what the browser carries
	Org       flex.OrgID
	Site      flex.SiteID
	Provider  string
	Redirect  string      // where the cloud sends the browser
	Verifier  flex.Secret // by which the code is exchanged; it lies sealed
	Code      flex.Secret // that the browser came back with; it lies sealed too
	ExpiresAt time.Time
}

// CloudToken is access to a manufacturer's cloud for one site.
type CloudToken struct {
	Org       flex.OrgID
	Site      flex.SiteID
	Provider  string // empty if the client brought the token
	Type      string
	Access    flex.Secret // both lie sealed
	Refresh   flex.Secret
	ExpiresAt time.Time // zero if not known
	TurnAt    time.Time // when to refresh it; zero for never
}

const linkColumns = `state, org_id, site_id, provider, redirect, sealed, expires_at`

func (c conn) scanLink(s scanner) (l CloudLink, err error) {
	var state, sealed []byte
	err = s.Scan(&state, &l.Org, &l.Site, &l.Provider, &l.Redirect, &sealed, instant{&l.ExpiresAt})
	copy(l.State[:], state)

	if err != nil {
		return l, err
	}

	plain, err := c.unseal(sealedLink, l.Org, l.State[:], sealed)
	if err != nil {
		return l, err
	}

	var r linkRecord
	err = decode("secrets of a link", string(plain), &r)
	l.Verifier, l.Code = flex.Secret(r.Verifier), flex.Secret(r.Code)

	return l, err
}

// sealLink returns what is secret of a link, sealed.
func (all *All) sealLink(l CloudLink) ([]byte, error) {
	plain, err := encode(linkRecord{Verifier: l.Verifier.Reveal(), Code: l.Code.Reveal()})
	if err != nil {
		return nil, err
	}
	return all.seal(sealedLink, l.Org, l.State[:], []byte(plain))
}

// AddCloudLink keeps a way that a user is about to go.
func (all *All) AddCloudLink(ctx context.Context, l CloudLink) error {
	sealed, err := all.sealLink(l)
	if err != nil {
		return err
	}
	_, err = all.exec(ctx, `INSERT INTO cloud_link (`+linkColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		l.State[:], l.Org.Bytes(), l.Site.Bytes(), l.Provider, l.Redirect, sealed, micros(l.ExpiresAt))
	return err
}

// CloudLink returns the way of that state which is open and has not brought a code yet, or
// a NotFound failure.
func (all *All) CloudLink(ctx context.Context, state [32]byte) (CloudLink, error) {
	return one(ctx, all.conn, "this link is not known, was used or has run out: begin again", all.scanLink,
		`SELECT `+linkColumns+` FROM cloud_link WHERE state = $1 AND turn_at IS NULL AND expires_at > $2`+all.db.d.forUpdate, state[:], micros(all.now))
}

// SetCloudCode keeps what came back of a link, to be exchanged at once.
func (all *All) SetCloudCode(ctx context.Context, l CloudLink) error {
	sealed, err := all.sealLink(l)
	if err != nil {
		return err
	}
	_, err = all.exec(ctx, `UPDATE cloud_link SET sealed = $2, turn_at = $3 WHERE state = $1`, l.State[:], sealed, micros(all.now))
	all.Wake(WakeCloud)
	return err
}

// DropCloudLink forgets a link.
func (all *All) DropCloudLink(ctx context.Context, state [32]byte) error {
	_, err := all.exec(ctx, `DELETE FROM cloud_link WHERE state = $1`, state[:])
	return err
}

// ClaimCloudLinks takes up to limit links whose code is to be exchanged. Whoever else asks
// gets them again after the lease.
func (all *All) ClaimCloudLinks(ctx context.Context, limit int, lease time.Duration) ([]CloudLink, error) {
	links, err := rows(ctx, all.conn, all.scanLink,
		`SELECT `+linkColumns+` FROM cloud_link WHERE turn_at <= $1 AND expires_at > $1 ORDER BY turn_at LIMIT $2`+all.db.d.skipLocked, micros(all.now), limit)
	for _, l := range links {
		if _, err := all.exec(ctx, `UPDATE cloud_link SET turn_at = $2 WHERE state = $1`, l.State[:], micros(all.now.Add(lease))); err != nil {
			return nil, err
		}
	}

	return links, err
}

// PutCloudToken keeps access to a cloud, in place of what was kept for the same site and
// provider. A site that is gone keeps none.
func (all *All) PutCloudToken(ctx context.Context, t CloudToken) error {
	plain, err := encode(tokenRecord{Access: t.Access.Reveal(), Refresh: t.Refresh.Reveal()})
	if err != nil {
		return err
	}

	sealed, err := all.seal(sealedToken, t.Org, t.row(), []byte(plain))
	if err != nil {
		return err
	}

	_, err = all.exec(ctx, `
		INSERT INTO cloud_token (org_id, site_id, provider, token_type, sealed, expires_at, turn_at)
		SELECT $1, id, $3, $4, $5, $6, $7 FROM site WHERE org_id = $1 AND id = $2
		ON CONFLICT (site_id, provider) DO UPDATE SET token_type = excluded.token_type, sealed = excluded.sealed,
			expires_at = excluded.expires_at, turn_at = excluded.turn_at`,
		t.Org.Bytes(), t.Site.Bytes(), t.Provider, t.Type, sealed, micros(t.ExpiresAt), micros(t.TurnAt))
	return err
}

const cloudTokenColumns = `org_id, site_id, provider, token_type, sealed, expires_at, turn_at`

func (c conn) scanCloudToken(s scanner) (t CloudToken, err error) {
	var sealed []byte
	err = s.Scan(&t.Org, &t.Site, &t.Provider, &t.Type, &sealed, instant{&t.ExpiresAt}, instant{&t.TurnAt})
	if err != nil {
		return t, err
	}

	plain, err := c.unseal(sealedToken, t.Org, t.row(), sealed)
	if err != nil {
		return t, err
	}

	var r tokenRecord
	err = decode("access to a cloud", string(plain), &r)
	t.Access, t.Refresh = flex.Secret(r.Access), flex.Secret(r.Refresh)

	return t, err
}

// row is what a token is sealed for: its site and its provider.
func (t CloudToken) row() []byte { return append(t.Site.Bytes(), t.Provider...) }

// CloudTokens returns a site's access to clouds, by provider.
func (all *All) CloudTokens(ctx context.Context, site flex.SiteID) ([]CloudToken, error) {
	return rows(ctx, all.conn, all.scanCloudToken, `SELECT `+cloudTokenColumns+` FROM cloud_token WHERE site_id = $1 ORDER BY provider`, site.Bytes())
}

// ClaimCloudTokens takes up to limit tokens that are to be refreshed, as ClaimCloudLinks does.
func (all *All) ClaimCloudTokens(ctx context.Context, limit int, lease time.Duration) ([]CloudToken, error) {
	tokens, err := rows(ctx, all.conn, all.scanCloudToken,
		`SELECT `+cloudTokenColumns+` FROM cloud_token WHERE turn_at <= $1 ORDER BY turn_at LIMIT $2`+all.db.d.skipLocked, micros(all.now), limit)
	for _, t := range tokens {
		if err := all.DeferCloudToken(ctx, t, all.now.Add(lease)); err != nil {
			return nil, err
		}
	}

	return tokens, err
}

// DeferCloudToken says when next to refresh a token; the zero time says never.
func (all *All) DeferCloudToken(ctx context.Context, t CloudToken, at time.Time) error {
	_, err := all.exec(ctx, `UPDATE cloud_token SET turn_at = $3 WHERE site_id = $1 AND provider = $2`, t.Site.Bytes(), t.Provider, micros(at))
	return err
}
