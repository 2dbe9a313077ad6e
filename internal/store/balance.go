package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// BalanceLink is a link to a site's balance page.
type BalanceLink struct {
	Hash             []byte // SHA-256 of its token
	OrgID            flex.OrgID
	SiteID           flex.SiteID
	ExpiresAt        time.Time
	RedirectURI      string
	HideTransactions bool
	Setup            bool
	TwoFactor        bool
	CodeHash         []byte
	CodeUntil        time.Time
	CodeTries        int
	// SHA-256 of the secret of the browser that the code was entered in
	ConfirmedBy []byte
}

// linksMax bounds how many expired links one new link clears away.
const linksMax = 100

// AddBalanceLink stores a new link, and deletes some that are long over.
func (tx *Tx) AddBalanceLink(ctx context.Context, l BalanceLink) error {
	_, err := tx.exec(
		ctx,
		`DELETE FROM balance_link WHERE hash IN
		(SELECT hash FROM balance_link WHERE org_id = $1 AND expires_at < $2 LIMIT $3)`,
		tx.org.Bytes(),
		micros(tx.now.AddDate(0, 0, -1)),
		linksMax,
	)

	if err != nil {
		return err
	}

	row := []value{
		{"hash", l.Hash},
		{"org_id", tx.org.Bytes()},
		{"site_id", l.SiteID.Bytes()},
		{"expires_at", micros(l.ExpiresAt)},
		{"redirect_uri", l.RedirectURI},
		{"hide_transactions", l.HideTransactions},
		{"setup", l.Setup},
		{"two_factor", l.TwoFactor},
	}

	return tx.insert(ctx, "balance_link", row)
}

const balanceLinkColumns = `hash, org_id, site_id, expires_at, redirect_uri, hide_transactions, setup, two_factor, code_hash, code_until, code_tries, confirmed_by`

func scanBalanceLink(s scanner) (BalanceLink, error) {
	var l BalanceLink
	err := s.Scan(
		&l.Hash,
		&l.OrgID,
		&l.SiteID,
		instant{&l.ExpiresAt},
		&l.RedirectURI,
		&l.HideTransactions,
		&l.Setup,
		&l.TwoFactor,
		&l.CodeHash,
		instant{&l.CodeUntil},
		&l.CodeTries,
		&l.ConfirmedBy,
	)

	return l, err
}

// LockBalanceLink returns the organisation's link of that hash and keeps others off it.
func (tx *Tx) LockBalanceLink(
	ctx context.Context,
	hash []byte,
) (BalanceLink, error) {
	return one(
		ctx,
		tx.conn,
		"this link is not known",
		scanBalanceLink,
		`SELECT `+balanceLinkColumns+
			` FROM balance_link WHERE org_id = $1 AND hash = $2`+
			tx.db.d.forUpdate,
		tx.org.Bytes(),
		hash,
	)
}

// BalanceLink returns the link of that hash, whosever it is; one that never was is a
// NotFound failure.
func (all *All) BalanceLink(
	ctx context.Context,
	hash []byte,
) (BalanceLink, error) {
	return one(
		ctx,
		all.conn,
		"this link is not known",
		scanBalanceLink,
		`SELECT `+balanceLinkColumns+` FROM balance_link WHERE hash = $1`,
		hash,
	)
}

// PutCode stores the code that was sent to the link's user, or how often it was tried.
func (tx *Tx) PutCode(ctx context.Context, l BalanceLink) error {
	_, err := tx.exec(
		ctx,
		`UPDATE balance_link SET code_hash = $3, code_until = $4, code_tries = $5, confirmed_by = $6 WHERE org_id = $1 AND hash = $2`,
		tx.org.Bytes(),
		l.Hash,
		l.CodeHash,
		micros(l.CodeUntil),
		l.CodeTries,
		l.ConfirmedBy,
	)

	return err
}
