package store

import (
	"context"
	"fmt"

	"flexd/internal/flex"
)

// EventCredit is what a flex event is worth in the books, in pence.
type EventCredit struct {
	Event    flex.FlexEventID
	Site     flex.SiteID
	Day      flex.Day
	Netted   bool       // with the others of its site and London month
	Listed   bool       // among what the user sees
	Gross    flex.Pence // the market's, as posted
	Share    flex.Pence // the user's, below zero for an event that cost money
	Early    flex.Pence // the part of it that is paid as of now
	Credited flex.Pence // posted as payable to the user
	Accrued  flex.Pence // posted as owed to the user later
}

// month is the London month of a day.
func month(d flex.Day) string { return fmt.Sprintf("%04d-%02d", d.Year, d.Month) }

// OtherCredits adds up what the other events of the same site and month are worth that are
// netted, and keeps other transactions off the site's credits until this one ends. It also
// returns what was paid as of now of the event's own share, before it is put anew.
func (tx *Tx) OtherCredits(ctx context.Context, c EventCredit) (sum EventCredit, was flex.Pence, err error) {
	one := func(s scanner) (none struct{}, err error) {
		var n int
		return none, s.Scan(&n)
	}
	if _, err := rows(ctx, tx.conn, one, `SELECT 1 FROM site WHERE org_id = $1 AND id = $2`+tx.db.d.forNoKeyUpdate, tx.org.Bytes(), c.Site.Bytes()); err != nil {
		return sum, was, err
	}

	of := func(column string) string {
		return `CAST(COALESCE(SUM(CASE WHEN flex_event_id <> $4 THEN ` + column + ` END), 0) AS BIGINT)`
	}

	err = tx.row(ctx, `SELECT `+of("share")+`, `+of("early")+`, `+of("credited")+`, `+of("accrued")+`,
			CAST(COALESCE(SUM(CASE WHEN flex_event_id = $4 THEN early END), 0) AS BIGINT)
		FROM event_credit WHERE org_id = $1 AND site_id = $2 AND month = $3 AND netted`,
		tx.org.Bytes(), c.Site.Bytes(), month(c.Day), c.Event.Bytes()).Scan(&sum.Share, &sum.Early, &sum.Credited, &sum.Accrued, &was)
	return sum, was, err
}

// PutEventCredit keeps what an event is worth now.
func (tx *Tx) PutEventCredit(ctx context.Context, c EventCredit) error {
	_, err := tx.exec(ctx, `INSERT INTO event_credit (flex_event_id, org_id, site_id, month, netted, listed, gross, share, early, credited, accrued)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (flex_event_id) DO UPDATE SET netted = excluded.netted, listed = excluded.listed, gross = excluded.gross, share = excluded.share,
			early = excluded.early, credited = excluded.credited, accrued = excluded.accrued WHERE event_credit.org_id = excluded.org_id`,
		c.Event.Bytes(), tx.org.Bytes(), c.Site.Bytes(), month(c.Day), c.Netted, c.Listed,
		int64(c.Gross), int64(c.Share), int64(c.Early), int64(c.Credited), int64(c.Accrued))
	return err
}

// unlisted is that a transaction is about an event without a share for the user.
const unlisted = `EXISTS (SELECT 1 FROM event_credit c WHERE c.flex_event_id = l.flex_event_id AND NOT c.listed)`

// postedAbout sums what was posted on an account about the event of a credit.
func postedAbout(account string) string {
	return fmt.Sprintf(`COALESCE((SELECT SUM(p.amount) FROM ledger l JOIN posting p ON p.ledger_id = l.id
		WHERE l.flex_event_id = c.flex_event_id AND p.account = '%s'), 0)`, account)
}

var (
	_ = law("every settled gross has its receivable", `SELECT c.flex_event_id AS what FROM event_credit c WHERE c.gross <> `+postedAbout("market_receivable")+`
		UNION ALL SELECT e.id FROM flex_event e LEFT JOIN event_credit c ON c.flex_event_id = e.id
			WHERE e.version > 0 AND (e.missing = 0 OR e.final IS NOT NULL) AND c.flex_event_id IS NULL`)
	_ = law("an event's credit is what was posted", `SELECT c.flex_event_id AS what FROM event_credit c
		WHERE c.credited <> -`+postedAbout("rewards_payable")+` OR c.accrued <> -`+postedAbout("rewards_accrued"))
	_ = law("a month's credit is the sum of its events' shares, or nothing", `SELECT site_id AS what FROM (
		SELECT site_id, SUM(credited) AS credited, SUM(accrued) AS accrued,
			CASE WHEN SUM(early) > 0 THEN SUM(early) ELSE 0 END AS early, CASE WHEN SUM(share) > 0 THEN SUM(share) ELSE 0 END AS share
		FROM event_credit WHERE netted GROUP BY org_id, site_id, month) AS months WHERE credited <> early OR credited + accrued <> share`)
)
