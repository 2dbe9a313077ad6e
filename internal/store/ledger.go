package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/settle"
)

// Post writes a transaction and its postings, all or nothing, and sets its id and instant. If
// its key is in the books already, nothing is written and posted is false; if the books have a
// different transaction under that key, it is a Conflict.
func (tx *Tx) Post(
	ctx context.Context,
	t *ledger.Booked,
) (posted bool, err error) {
	if err := t.Check(); err != nil {
		return false, err
	}
	if err := tx.complete(ctx, t); err != nil {
		return false, err
	}

	n, err := tx.insertTransaction(ctx, t)
	if err != nil {
		return false, fmt.Errorf("post %s: %w", t.Key, err)
	}
	if n == 0 {
		return false, tx.posted(ctx, t)
	}

	args := make([]any, 0, 5*len(t.Postings))
	for _, p := range t.Postings {
		args = append(
			args,
			t.ID.Bytes(),
			string(p.Account),
			tx.org.Bytes(),
			t.SiteID.Bytes(),
			int64(p.Amount),
		)
	}

	return true, tx.bulk(
		ctx,
		`INSERT INTO posting (ledger_id, account, org_id, site_id, amount)`,
		``,
		5,
		args,
	)
}

// complete sets what a transaction gets from the books: its id and instant, the day on which
// it is booked, and the counterparty that owes the market's money in it.
func (tx *Tx) complete(ctx context.Context, t *ledger.Booked) error {
	books, err := tx.openBooks(ctx)
	if err != nil {
		return err
	}

	t.ID = flex.TransactionID(tx.newID())
	t.At, t.Amount = tx.now, t.Credit()
	t.BookedOn = ledger.BookingDay(t.About(), flex.DayAt(tx.now), books.closed)

	market := slices.ContainsFunc(t.Postings, func(p ledger.Posting) bool {
		return p.Account == ledger.MarketReceivable
	})
	if market && t.Counterparty == "" {
		t.Counterparty = books.counterparty
	}

	return nil
}

// nettingValues returns the columns with the state of its month when a transaction was posted.
// Without a netting they are null.
func nettingValues(n *settle.Netting) []value {
	if n == nil {
		return nil
	}

	return []value{
		{"others_share", int64(n.Share)},
		{"others_credited", int64(n.Credited)},
		{"carried_in", int64(n.Carried)},
		{"standard_error", int64(n.Error)},
		{"certainty", int64(n.Certainty)},
		{"later_credit", int64(n.Later)},
	}
}

// insertTransaction writes a transaction's row, unless its key exists. It returns how many
// rows it wrote.
func (tx *Tx) insertTransaction(
	ctx context.Context,
	t *ledger.Booked,
) (int64, error) {
	row := []value{
		{"id", t.ID.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"site_id", t.SiteID.Bytes()},
		{"key", t.Key},
		{"kind", string(t.Kind)},
		{"credit", int64(t.Amount)},
		{"from_at", micros(t.Time.From)},
		{"to_at", micros(t.Time.To)},
		{"settled_on", dayText(t.Settled)},

		{"flex_wh", number(t.Flex)},
		{"creditable_wh", number(t.Creditable)},
		{"rate", number(t.Rate)},
		{"vehicle", t.Vehicle},

		{"session_id", nullID(t.Cause.Session)},
		{"flex_event_id", nullID(t.Cause.FlexEvent)},
		{"run_id", nullID(t.Cause.Run)},
		{"corrects", nullID(t.Cause.Corrects)},
		{"follows", nullID(t.Cause.Follows)},
		{"decided_by", t.Cause.By},
		{"reason", t.Cause.Reason},

		{"recorded_at", micros(tx.now)},
		{"booked_on", t.BookedOn.String()},
		{"counterparty", t.Counterparty},
		{"reference", t.Reference},
		{"for_month", t.ForMonth.String()},
	}

	return tx.insertOr(
		ctx,
		"ledger",
		append(row, nettingValues(t.Netting)...),
		`ON CONFLICT (org_id, key) DO NOTHING`,
	)
}

// posted compares a transaction with the stored one that has its key.
func (tx *Tx) posted(ctx context.Context, t *ledger.Booked) error {
	var kind, month, party, reference string
	old := ledger.Transaction{Key: t.Key}
	err := tx.row(
		ctx,
		`SELECT id, site_id, kind, for_month, counterparty, reference FROM ledger WHERE org_id = $1 AND key = $2`,
		tx.org.Bytes(),
		t.Key,
	).Scan(&old.ID, &old.SiteID, &kind, &month, &party, &reference)
	if err != nil {
		return err
	}

	old.Kind = ledger.Kind(kind)
	old.Postings, err = tx.Postings(ctx, old.ID)
	if err != nil {
		return err
	}

	// The key of market money that came or was given up joins these with colons, and each may
	// have colons of its own.
	was := [...]string{month, party, reference}
	is := [...]string{t.ForMonth.String(), t.Counterparty, t.Reference}
	another := month != "" && was != is

	t.ID = old.ID
	if another || !old.Same(&t.Transaction) {
		return flex.Fail(
			flex.Conflict,
			"transaction %s is posted already, and says something else",
			t.Key,
		)
	}

	return nil
}

// Postings returns a transaction's postings.
func (tx *Tx) Postings(
	ctx context.Context,
	id flex.TransactionID,
) ([]ledger.Posting, error) {
	posting := func(s scanner) (ledger.Posting, error) {
		var p ledger.Posting
		err := s.Scan(&p.Account, &p.Amount)
		return p, err
	}

	return rows(
		ctx,
		tx.conn,
		posting,
		`SELECT account, amount FROM posting WHERE org_id = $1 AND ledger_id = $2 ORDER BY account`,
		tx.org.Bytes(),
		id.Bytes(),
	)
}

// PostingsAbout returns the sums of all postings about a flex event, or about a session
// itself, by account.
func (tx *Tx) PostingsAbout(
	ctx context.Context,
	c ledger.Cause,
) ([]ledger.Posting, error) {
	about, id := "l.session_id = $2 AND l.flex_event_id IS NULL", c.Session.Bytes()
	if !c.FlexEvent.IsZero() {
		about, id = "l.flex_event_id = $2", c.FlexEvent.Bytes()
	}

	posting := func(s scanner) (ledger.Posting, error) {
		var p ledger.Posting
		err := s.Scan(&p.Account, &p.Amount)
		return p, err
	}

	return rows(
		ctx,
		tx.conn,
		posting,
		`SELECT p.account, CAST(SUM(p.amount) AS BIGINT) FROM posting p JOIN ledger l ON l.id = p.ledger_id
		WHERE l.org_id = $1 AND `+about+` GROUP BY p.account HAVING SUM(p.amount) <> 0 ORDER BY p.account`,
		tx.org.Bytes(),
		id,
	)
}

// Balance returns what is owed to the site's user: the sum of the site's postings.
func (tx *Tx) Balance(
	ctx context.Context,
	site flex.SiteID,
) (flex.Pence, error) {
	var p flex.Pence
	err := tx.row(
		ctx,
		`SELECT CAST(-COALESCE(SUM(amount), 0) AS BIGINT) FROM posting WHERE org_id = $1 AND site_id = $2 AND account = $3`,
		tx.org.Bytes(),
		site.Bytes(),
		string(ledger.RewardsPayable),
	).Scan(&p)

	return p, err
}

// Earned returns the total that the site's user has ever earned, and the instant of the first
// reward.
func (tx *Tx) Earned(
	ctx context.Context,
	site flex.SiteID,
) (flex.Pence, time.Time, error) {
	var (
		p     flex.Pence
		first time.Time
	)

	err := tx.row(
		ctx,
		`SELECT CAST(COALESCE(SUM(credit), 0) AS BIGINT), MIN(CASE WHEN credit > 0 THEN recorded_at END) FROM ledger
		WHERE org_id = $1 AND site_id = $2 AND follows IS NULL AND kind <> $3`,
		tx.org.Bytes(),
		site.Bytes(),
		string(ledger.Withdrawal),
	).Scan(&p, instant{&first})

	return p, first, err
}

const ledgerColumns = `l.id, l.site_id, l.key, l.kind, l.credit, l.from_at, l.to_at, l.settled_on, l.flex_wh, l.creditable_wh, l.rate,
	l.vehicle, l.session_id, l.flex_event_id, l.run_id, l.corrects, l.follows, l.decided_by, l.recorded_at,
	l.booked_on, l.counterparty, l.reference, l.reason, l.for_month, l.others_share, l.others_credited, l.carried_in, l.standard_error, l.certainty,
	l.later_credit, w.status`

// readNetting returns the state of a transaction's month when it was posted, from its columns:
// others_share, others_credited, carried_in, standard_error, certainty, later_credit. It is
// nil if the month is not netted.
func readNetting(columns [6]sql.NullInt64) *settle.Netting {
	if !columns[0].Valid {
		return nil
	}

	return &settle.Netting{
		Share:     flex.Pence(columns[0].Int64),
		Credited:  flex.Pence(columns[1].Int64),
		Carried:   flex.Pence(columns[2].Int64),
		Error:     settle.MilliPence(columns[3].Int64),
		Certainty: settle.Parts(columns[4].Int64),
		Later:     flex.Pence(columns[5].Int64),
	}
}

// wattHours returns an energy from its column; nil if it is not known.
func wattHours(column sql.NullInt64) *flex.WattHours {
	if !column.Valid {
		return nil
	}

	return new(flex.WattHours(column.Int64))
}

// nullColumns are those of ledgerColumns that may be null.
type nullColumns struct {
	settled    sql.NullString
	status     sql.NullString
	flexed     sql.NullInt64
	creditable sql.NullInt64
	rate       sql.NullInt64
	netted     [6]sql.NullInt64
}

// scanTransaction reads a row of ledgerColumns.
func scanTransaction(s scanner) (ledger.Booked, error) {
	var null nullColumns
	var t ledger.Booked
	columns := []any{
		&t.ID, &t.SiteID, &t.Key, &t.Kind, &t.Amount,
		instant{&t.Time.From}, instant{&t.Time.To},
		&null.settled, &null.flexed, &null.creditable, &null.rate, &t.Vehicle,
		&t.Cause.Session, &t.Cause.FlexEvent, &t.Cause.Run, &t.Cause.Corrects, &t.Cause.Follows, &t.Cause.By,
		instant{&t.At}, dayOf{&t.BookedOn},
		&t.Counterparty, &t.Reference, &t.Cause.Reason, monthText{&t.ForMonth},
	}

	for i := range null.netted {
		columns = append(columns, &null.netted[i])
	}

	err := s.Scan(append(columns, &null.status)...)
	if err != nil {
		return t, err
	}

	err = null.fill(&t)

	return t, err
}

// fill copies the columns that are not null into a transaction.
func (null *nullColumns) fill(t *ledger.Booked) error {
	t.Netting = readNetting(null.netted)
	t.Status = ledger.PaymentStatus(null.status.String)
	t.Flex = wattHours(null.flexed)
	t.Creditable = wattHours(null.creditable)

	if null.rate.Valid {
		t.Rate = &null.rate.Int64
	}

	var err error
	if null.settled.Valid {
		t.Settled, err = flex.ParseDay(null.settled.String)
	}

	return err
}

// Transactions returns the site's transactions, newest first, and how many there are. Steps of
// withdrawals are not included: they are shown by the withdrawal's status.
func (tx *Tx) Transactions(
	ctx context.Context,
	site flex.SiteID,
	limit, offset int,
) ([]ledger.Booked, int, error) {
	ts, err := rows(
		ctx,
		tx.conn,
		scanTransaction,
		`SELECT `+ledgerColumns+
			` FROM ledger l LEFT JOIN withdrawal w ON w.id = l.id
		WHERE l.org_id = $1 AND l.site_id = $2 AND l.follows IS NULL AND NOT `+unlisted+` ORDER BY l.id DESC LIMIT $3 OFFSET $4`,
		tx.org.Bytes(),
		site.Bytes(),
		limit,
		offset,
	)

	if err != nil {
		return nil, 0, err
	}

	var total int
	err = tx.row(
		ctx,
		`SELECT count(*) FROM ledger l WHERE l.org_id = $1 AND l.site_id = $2 AND l.follows IS NULL AND NOT `+
			unlisted,
		tx.org.Bytes(),
		site.Bytes(),
	).Scan(&total)

	return ts, total, err
}

// SiteTransactionsWithin returns the site's transactions recorded in the span, oldest first,
// without those that the user does not see.
func (tx *Tx) SiteTransactionsWithin(
	ctx context.Context,
	site flex.SiteID,
	span flex.Span,
) ([]ledger.Booked, error) {
	return rows(
		ctx,
		tx.conn,
		scanTransaction,
		`SELECT `+ledgerColumns+
			` FROM ledger l LEFT JOIN withdrawal w ON w.id = l.id
		WHERE l.org_id = $1 AND l.site_id = $2 AND l.recorded_at >= $3 AND l.recorded_at < $4 AND NOT `+unlisted+` ORDER BY l.id`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(span.From),
		micros(span.To),
	)
}

// TransactionsWithin is SiteTransactionsWithin, and also returns the balance before the span.
func (tx *Tx) TransactionsWithin(
	ctx context.Context,
	site flex.SiteID,
	span flex.Span,
) ([]ledger.Booked, flex.Pence, error) {
	ts, err := tx.SiteTransactionsWithin(ctx, site, span)
	if err != nil {
		return nil, 0, err
	}

	var before flex.Pence
	err = tx.row(
		ctx,
		`SELECT CAST(COALESCE(SUM(credit), 0) AS BIGINT) FROM ledger WHERE org_id = $1 AND site_id = $2 AND recorded_at < $3`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(span.From),
	).Scan(&before)

	return ts, before, err
}

// SiteTransactions returns all transactions of the site that were recorded before an instant,
// oldest first, without those that the user does not see.
func (tx *Tx) SiteTransactions(
	ctx context.Context,
	site flex.SiteID,
	until time.Time,
) ([]ledger.Booked, error) {
	return rows(
		ctx,
		tx.conn,
		scanTransaction,
		`SELECT `+ledgerColumns+
			` FROM ledger l LEFT JOIN withdrawal w ON w.id = l.id
		WHERE l.org_id = $1 AND l.site_id = $2 AND l.recorded_at < $3 AND NOT `+unlisted+` ORDER BY l.id`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(until),
	)
}

func nullID[Of any](id flex.ID[Of]) any {
	if id.IsZero() {
		return nil
	}
	return id.Bytes()
}

// number writes an optional whole number.
func number[N ~int64](n *N) any {
	if n == nil {
		return nil
	}
	return int64(*n)
}

func dayText(d flex.Day) any {
	if d == (flex.Day{}) {
		return nil
	}
	return d.String()
}

var (
	_ = law(
		"the postings of a transaction sum to zero",
		`SELECT l.key AS what FROM ledger l JOIN posting p ON p.ledger_id = l.id
		GROUP BY l.id, l.key HAVING SUM(p.amount) <> 0`,
	)
	_ = law(
		"a transaction credits what its postings say",
		`SELECT l.key AS what FROM ledger l
		LEFT JOIN posting p ON p.ledger_id = l.id AND p.account = 'rewards_payable' WHERE l.credit <> -COALESCE(p.amount, 0)`,
	)
	_ = law(
		"a posting is of its transaction's site and organisation",
		`SELECT l.key AS what FROM posting p
		JOIN ledger l ON l.id = p.ledger_id WHERE p.site_id <> l.site_id OR p.org_id <> l.org_id`,
	)
	_ = law(
		"a step follows a withdrawal of the same site",
		`SELECT l.key AS what FROM ledger l
		LEFT JOIN withdrawal w ON w.id = l.follows AND w.site_id = l.site_id WHERE l.follows IS NOT NULL AND w.id IS NULL`,
	)
	_ = law(
		"money in flight is that of payments under way",
		`SELECT site_id AS what FROM (
		SELECT site_id, SUM(amount) AS amount FROM (
			SELECT site_id, amount FROM posting WHERE account = 'payouts_in_flight'
			UNION ALL SELECT site_id, amount FROM withdrawal WHERE status IN ('pending_approval', 'approved', 'processing')) AS both_sides
		GROUP BY site_id) AS sums WHERE amount <> 0`,
	)
	_ = law(
		"a withdrawal's status is its last move",
		`SELECT w.id AS what FROM withdrawal w
		LEFT JOIN withdrawal_move m ON m.withdrawal_id = w.id AND m.number = w.moves WHERE m.status IS NULL OR m.status <> w.status`,
	)
)
