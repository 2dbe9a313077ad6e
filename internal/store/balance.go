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
	ConfirmedBy      []byte // SHA-256 of the secret of the browser that the code was entered in
}

// linksMax bounds how many expired links one new link clears away.
const linksMax = 100

// AddBalanceLink keeps a new link, and forgets some that are long over.
func (tx *Tx) AddBalanceLink(ctx context.Context, l BalanceLink) error {
	_, err := tx.exec(ctx, `DELETE FROM balance_link WHERE hash IN
		(SELECT hash FROM balance_link WHERE org_id = $1 AND expires_at < $2 LIMIT $3)`, tx.org.Bytes(), micros(tx.now.AddDate(0, 0, -1)), linksMax)
	if err != nil {
		return err
	}

	_, err = tx.exec(ctx, `INSERT INTO balance_link (hash, org_id, site_id, expires_at, redirect_uri, hide_transactions, setup, two_factor)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, l.Hash, tx.org.Bytes(), l.SiteID.Bytes(), micros(l.ExpiresAt), l.RedirectURI, l.HideTransactions, l.Setup, l.TwoFactor)
	return err
}

const balanceLinkColumns = `hash, org_id, site_id, expires_at, redirect_uri, hide_transactions, setup, two_factor, code_hash, code_until, code_tries, confirmed_by`

func scanBalanceLink(s scanner) (l BalanceLink, err error) {
	err = s.Scan(&l.Hash, &l.OrgID, &l.SiteID, instant{&l.ExpiresAt}, &l.RedirectURI, &l.HideTransactions, &l.Setup, &l.TwoFactor,
		&l.CodeHash, instant{&l.CodeUntil}, &l.CodeTries, &l.ConfirmedBy)
	return l, err
}

// HoldBalanceLink returns the organisation's link of that hash and keeps others off it.
func (tx *Tx) HoldBalanceLink(ctx context.Context, hash []byte) (BalanceLink, error) {
	return one(ctx, tx.conn, "this link is not known", scanBalanceLink, `SELECT `+balanceLinkColumns+` FROM balance_link WHERE org_id = $1 AND hash = $2`+tx.db.d.forUpdate,
		tx.org.Bytes(), hash)
}

// BalanceLink returns the link of that hash, whosever it is; one that never was is a
// NotFound failure.
func (all *All) BalanceLink(ctx context.Context, hash []byte) (BalanceLink, error) {
	return one(ctx, all.conn, "this link is not known", scanBalanceLink, `SELECT `+balanceLinkColumns+` FROM balance_link WHERE hash = $1`, hash)
}

// PutCode keeps the code that was sent to the link's user, or how often it was tried.
func (tx *Tx) PutCode(ctx context.Context, l BalanceLink) error {
	_, err := tx.exec(ctx, `UPDATE balance_link SET code_hash = $3, code_until = $4, code_tries = $5, confirmed_by = $6 WHERE org_id = $1 AND hash = $2`,
		tx.org.Bytes(), l.Hash, l.CodeHash, micros(l.CodeUntil), l.CodeTries, l.ConfirmedBy)
	return err
}

// Mail is a letter to a user.
type Mail struct {
	ID      [16]byte
	SiteID  flex.SiteID
	To      flex.Personal
	Subject string
	Text    string
	Tries   int
}

// AddMail has a letter sent once the transaction has committed.
func (tx *Tx) AddMail(ctx context.Context, m Mail) error {
	id, now := tx.newID(), micros(tx.db.Now())
	_, err := tx.exec(ctx, `INSERT INTO mail (id, org_id, site_id, recipient, subject, text, queued_at, turn_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $7)`,
		id[:], tx.org.Bytes(), m.SiteID.Bytes(), m.To.Reveal(), m.Subject, m.Text, now)
	tx.Wake(WakeMail)
	return err
}

// TakeMail returns up to limit letters whose turn it is and holds them back from others
// until the lease is over.
func (all *All) TakeMail(ctx context.Context, limit int, lease time.Duration) ([]Mail, error) {
	scan := func(s scanner) (m Mail, err error) {
		var id []byte
		var to string
		err = s.Scan(&id, &m.SiteID, &to, &m.Subject, &m.Text, &m.Tries)
		copy(m.ID[:], id)
		m.To = flex.Personal(to)

		return m, err
	}
	return rows(ctx, all.conn, scan, `UPDATE mail SET turn_at = $1, tries = tries + 1 WHERE id IN
			(SELECT id FROM mail WHERE turn_at <= $2 ORDER BY turn_at, id LIMIT $3`+all.db.d.skipLocked+`)
		RETURNING id, site_id, recipient, subject, text, tries`, micros(all.now.Add(lease)), micros(all.now), limit)
}

// MailDone notes that a letter was sent, or given up; its text and recipient are forgotten.
func (all *All) MailDone(ctx context.Context, id [16]byte, problem string) error {
	_, err := all.exec(ctx, `UPDATE mail SET turn_at = NULL, text = '', recipient = '', error = $2 WHERE id = $1`, id[:], problem)
	return err
}

// MailAgain notes that a letter is to be tried again at an instant.
func (all *All) MailAgain(ctx context.Context, id [16]byte, at time.Time, problem string) error {
	_, err := all.exec(ctx, `UPDATE mail SET turn_at = $2, error = $3 WHERE id = $1`, id[:], micros(at), problem)
	return err
}

// DropMails gives up the letters that were queued before an instant and not sent.
func (all *All) DropMails(ctx context.Context, before time.Time, problem string) (int64, error) {
	return all.exec(ctx, `UPDATE mail SET turn_at = NULL, text = '', recipient = '', error = $2 WHERE turn_at IS NOT NULL AND queued_at < $1`, micros(before), problem)
}
