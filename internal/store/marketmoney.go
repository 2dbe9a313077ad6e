package store

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

// MarketMoney is what a counterparty owes and paid for the flexibility of a month.
type MarketMoney struct {
	Counterparty string
	Month        ledger.Month
	Expected     flex.Pence // from settled gross revenue
	Received     flex.Pence
	WrittenOff   flex.Pence
}

// Difference is what is still to come; negative if more came than was expected.
func (m MarketMoney) Difference() flex.Pence {
	return m.Expected - m.Received - m.WrittenOff
}

// MarketMoney returns the market's money by counterparty and month, the oldest month first.
func (tx *Tx) MarketMoney(ctx context.Context) ([]MarketMoney, error) {
	scan := func(s scanner) (MarketMoney, error) {
		var m MarketMoney
		err := s.Scan(
			&m.Counterparty,
			monthText{&m.Month},
			&m.Expected,
			&m.Received,
			&m.WrittenOff,
		)

		return m, err
	}

	return rows(
		ctx,
		tx.conn,
		scan,
		`SELECT counterparty, month, CAST(SUM(expected) AS BIGINT), CAST(SUM(received) AS BIGINT), CAST(SUM(written_off) AS BIGINT) FROM (
			SELECT CASE WHEN l.counterparty = '' THEN $2 ELSE l.counterparty END AS counterparty,
				CASE WHEN l.for_month <> '' THEN l.for_month ELSE substr(COALESCE(l.settled_on, l.booked_on), 1, 7) END AS month,
				CASE WHEN l.for_month = '' THEN p.amount ELSE 0 END AS expected,
				CASE WHEN l.for_month <> '' AND l.kind = $3 THEN -p.amount ELSE 0 END AS received,
				CASE WHEN l.for_month <> '' AND l.kind <> $3 THEN -p.amount ELSE 0 END AS written_off
			FROM posting p JOIN ledger l ON l.id = p.ledger_id WHERE p.org_id = $1 AND p.account = $4) AS market
		GROUP BY counterparty, month ORDER BY month, counterparty`,
		tx.org.Bytes(),
		ledger.DefaultCounterparty,
		string(ledger.InvoicePaid),
		string(ledger.MarketReceivable),
	)
}

// DayOfBalance is how much a site's balance rose on a day of the books; negative if it fell.
type DayOfBalance struct {
	SiteID flex.SiteID
	Day    flex.Day
	Credit flex.Pence
}

// BalanceDays gives, up to a day, the days on which balances of users moved to fn: site by
// site, each from its newest day to its oldest. What comes back of a withdrawal counts on the
// day of the withdrawal: it earned nothing.
func (tx *Tx) BalanceDays(
	ctx context.Context,
	to flex.Day,
	fn func(DayOfBalance) error,
) error {
	found, err := tx.query(
		ctx,
		`SELECT site_id, day, CAST(-SUM(amount) AS BIGINT) FROM (
			SELECT p.site_id, COALESCE(w.booked_on, l.booked_on) AS day, p.amount
			FROM posting p JOIN ledger l ON l.id = p.ledger_id LEFT JOIN ledger w ON w.id = l.follows
			WHERE p.org_id = $1 AND p.account = $2 AND l.booked_on <= $3) AS moved
		GROUP BY site_id, day ORDER BY site_id, day DESC`,
		tx.org.Bytes(),
		string(ledger.RewardsPayable),
		to.String(),
	)
	if err != nil {
		return err
	}

	defer found.Close()

	for found.Next() {
		var d DayOfBalance
		err := found.Scan(&d.SiteID, dayOf{&d.Day}, &d.Credit)
		if err != nil {
			return err
		}
		if err := fn(d); err != nil {
			return err
		}
	}

	return found.Err()
}

// Unclaimed is the balance of a site that was offboarded.
type Unclaimed struct {
	SiteID    flex.SiteID
	Balance   flex.Pence
	LastMoved time.Time
}

// UnclaimedBalances returns the balances of sites that are offboarded, the oldest first.
func (tx *Tx) UnclaimedBalances(ctx context.Context) ([]Unclaimed, error) {
	scan := func(s scanner) (Unclaimed, error) {
		var u Unclaimed
		err := s.Scan(&u.SiteID, &u.Balance, instant{&u.LastMoved})
		return u, err
	}

	return rows(
		ctx,
		tx.conn,
		scan,
		`SELECT p.site_id, CAST(-SUM(p.amount) AS BIGINT), MAX(l.recorded_at) FROM posting p JOIN ledger l ON l.id = p.ledger_id
		WHERE p.org_id = $1 AND p.account = $2 AND NOT EXISTS (SELECT 1 FROM site s WHERE s.id = p.site_id)
		GROUP BY p.site_id HAVING SUM(p.amount) <> 0 ORDER BY MAX(l.recorded_at), p.site_id`,
		tx.org.Bytes(),
		string(ledger.RewardsPayable),
	)
}
