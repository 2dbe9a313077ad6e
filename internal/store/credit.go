package store

import (
	"context"
	"fmt"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// EventCredit is what a flex event is worth in the books, in pence.
type EventCredit struct {
	Event  flex.FlexEventID
	Site   flex.SiteID
	Day    flex.Day
	Netted bool       // with the others of its site and London month
	Listed bool       // among what the user sees
	Gross  flex.Pence // the market's, as posted
	// the user's, below zero for an event that cost money
	Share     flex.Pence
	Early     flex.Pence        // the part of it that is paid as of now
	Error     settle.MilliPence // the standard error of that
	Certainty settle.Certainty  // of its month
	Credited  flex.Pence        // posted as payable to the user
	Accrued   flex.Pence        // posted as owed to the user later
}

// month is the London month of a day.
func month(d flex.Day) string {
	return fmt.Sprintf("%04d-%02d", d.Year, d.Month)
}

// NettedCredits are what a site's netted events are worth, an event's own apart.
type NettedCredits struct {
	Days              []settle.DayNetted // of the other events, in order
	Credited, Accrued flex.Pence         // posted about the other events
	// what the event's was put as before, nil if it was not
	Own *EventCredit
}

// NettedCredits returns what the site's events are worth that are netted, and keeps other
// transactions off the site's credits until this one ends.
func (tx *Tx) NettedCredits(
	ctx context.Context,
	site flex.SiteID,
	event flex.FlexEventID,
) (NettedCredits, error) {
	if err := tx.lockCredits(ctx, site); err != nil {
		return NettedCredits{}, err
	}

	const others = ` FROM event_credit c WHERE c.org_id = $1 AND c.site_id = $2 AND c.netted AND c.flex_event_id <> $3`
	args := []any{tx.org.Bytes(), site.Bytes(), event.Bytes()}

	var n NettedCredits
	err := tx.row(
		ctx,
		`SELECT CAST(COALESCE(SUM(c.credited), 0) AS BIGINT), CAST(COALESCE(SUM(c.accrued), 0) AS BIGINT)`+
			others,
		args...,
	).Scan(&n.Credited, &n.Accrued)
	if err != nil {
		return n, err
	}

	n.Days, err = rows(
		ctx,
		tx.conn,
		scanDayNetted,
		`SELECT `+nettedColumns+others+` GROUP BY c.day ORDER BY c.day`,
		args...,
	)
	if err != nil {
		return n, err
	}

	n.Own, err = tx.nettedCredit(ctx, event)

	return n, err
}

// lockCredits keeps other transactions off the site's credits: by the site, or by its former
// assets once it was offboarded.
func (tx *Tx) lockCredits(ctx context.Context, site flex.SiteID) error {
	for _, held := range []string{
		`SELECT 1 FROM site WHERE org_id = $1 AND id = $2`,
		`SELECT 1 FROM former_asset WHERE org_id = $1 AND site_id = $2 ORDER BY id`,
	} {
		found, err := rows(
			ctx,
			tx.conn,
			scalar[int],
			held+tx.db.d.forNoKeyUpdate,
			tx.org.Bytes(),
			site.Bytes(),
		)
		if err != nil || len(found) > 0 {
			return err
		}
	}

	return nil
}

// nettedCredit returns what an event is worth by its day, if it is netted.
func (tx *Tx) nettedCredit(
	ctx context.Context,
	event flex.FlexEventID,
) (*EventCredit, error) {
	days, err := rows(
		ctx,
		tx.conn,
		scanDayNetted,
		`SELECT `+nettedColumns+`
		FROM event_credit c WHERE c.org_id = $1 AND c.flex_event_id = $2 AND c.netted GROUP BY c.day`,
		tx.org.Bytes(),
		event.Bytes(),
	)

	var c *EventCredit
	for _, d := range days {
		c = &EventCredit{
			Event:     event,
			Day:       d.Day,
			Certainty: d.Certainty,
			Share:     d.Share,
			Early:     d.Early,
			Error:     d.Error,
		}
	}

	return c, err
}

// nettedColumns are what the netted events c of a site's day come to.
const nettedColumns = `c.day, MIN(c.certainty), MIN(c.carry_months),
	CAST(SUM(c.share) AS BIGINT), CAST(SUM(c.early) AS BIGINT), CAST(SUM(c.error) AS BIGINT)`

func scanDayNetted(s scanner) (settle.DayNetted, error) {
	var d settle.DayNetted
	err := s.Scan(
		dayOf{&d.Day},
		&d.Certainty.Errors,
		&d.Certainty.Months,
		&d.Share,
		&d.Early,
		&d.Error,
	)

	return d, err
}

// PutEventCredit stores what an event is worth now.
func (tx *Tx) PutEventCredit(ctx context.Context, c EventCredit) error {
	row := []value{
		{"flex_event_id", c.Event.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"site_id", c.Site.Bytes()},
		{"month", month(c.Day)},
		{"day", c.Day.String()},
		{"netted", c.Netted},
		{"listed", c.Listed},
		{"gross", int64(c.Gross)},
		{"share", int64(c.Share)},
		{"early", int64(c.Early)},
		{"error", int64(c.Error)},
		{"certainty", int64(c.Certainty.Errors)},
		{"carry_months", c.Certainty.Months},
		{"credited", int64(c.Credited)},
		{"accrued", int64(c.Accrued)},
	}

	_, err := tx.upsert(ctx, "event_credit", row, rewrite{
		key:  []string{"flex_event_id"},
		keep: []string{"org_id", "site_id", "month", "day"},
		only: `event_credit.org_id = excluded.org_id`,
	})

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
	_ = law(
		"every settled gross has its receivable",
		`SELECT c.flex_event_id AS what FROM event_credit c WHERE c.gross <> `+
			postedAbout("market_receivable")+
			`
		UNION ALL SELECT e.id FROM flex_event e LEFT JOIN event_credit c ON c.flex_event_id = e.id
			WHERE e.version > 0 AND (e.missing = 0 OR e.final IS NOT NULL) AND c.flex_event_id IS NULL`,
	)
	_ = law(
		"an event's credit is what was posted",
		`SELECT c.flex_event_id AS what FROM event_credit c
		WHERE c.credited <> -`+postedAbout("rewards_payable")+` OR c.accrued <> -`+postedAbout("rewards_accrued"),
	)
	_ = law(
		"a month asks for one certainty",
		`SELECT site_id AS what FROM event_credit WHERE netted GROUP BY org_id, site_id, month
		HAVING MIN(certainty) <> MAX(certainty) OR MIN(carry_months) <> MAX(carry_months)`,
	)
	_ = lawInGo(
		"what netted events came to is credited, carried, lapsed or below nothing",
		nettedOtherwise,
	)
)

// siteNetted is what a site's netted events come to, with what was credited and accrued for them.
type siteNetted struct {
	site     flex.SiteID
	days     []settle.DayNetted
	credited flex.Pence
	accrued  flex.Pence
}

// otherwise says what was credited or accrued to the site besides what its months come to.
func (n *siteNetted) otherwise() []string {
	var credited, owed flex.Pence
	for _, m := range settle.NetMonths(n.days, flex.Day{}) {
		credited, owed = credited+m.Credited, owed+m.Owed
	}

	if credited == n.credited && owed-credited == n.accrued {
		return nil
	}

	return []string{fmt.Sprintf(
		"site %s: credited %d and accrued %d, not %d and %d",
		n.site,
		n.credited,
		n.accrued,
		credited,
		owed-credited,
	)}
}

// nettedOtherwise finds sites to which another sum was credited, or accrued, than their months
// come to.
func nettedOtherwise(
	ctx context.Context,
	all *All,
) ([]string, error) {
	var of siteNetted // the site that is read
	var broken []string
	scan := func(s scanner) error {
		var site flex.SiteID
		var credited, accrued flex.Pence

		d, err := scanDayNetted(scannerAround{
			s,
			[]any{&site},
			[]any{&credited, &accrued},
		})

		if err != nil {
			return err
		}

		if site != of.site {
			broken = append(broken, of.otherwise()...)
			of = siteNetted{site: site}
		}

		of.days = append(of.days, d)
		of.credited, of.accrued = of.credited+credited, of.accrued+accrued
		return nil
	}

	err := eachRow(
		ctx,
		all.conn,
		scan,
		`SELECT c.site_id, `+nettedColumns+
			`, CAST(SUM(c.credited) AS BIGINT), CAST(SUM(c.accrued) AS BIGINT)
		FROM event_credit c WHERE c.netted GROUP BY c.site_id, c.day ORDER BY c.site_id, c.day`,
	)

	return append(broken, of.otherwise()...), err
}

// scannerAround scans columns before and after those of another scan.
type scannerAround struct {
	scanner
	before []any
	after  []any
}

func (s scannerAround) Scan(to ...any) error {
	return s.scanner.Scan(slices.Concat(s.before, to, s.after)...)
}
