package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

// ClosedMonth is a month of the books that is closed.
type ClosedMonth struct {
	Month        ledger.Month
	ClosedAt     time.Time
	ClosedBy     string
	Transactions int    // booked in it
	Balance      string // its trial balance, as ledger.TrialBalance writes it
	Hash         [sha256.Size]byte
}

// openBooks is what a transaction that posts needs to know of the books.
type openBooks struct {
	closed       ledger.Month // the last closed month
	counterparty string       // who owes the organisation's market money
}

// openBooks returns what a transaction that posts needs to know, and prevents the books from
// being closed until the transaction ends. It is read once in a transaction.
func (tx *Tx) openBooks(ctx context.Context) (*openBooks, error) {
	if tx.books != nil {
		return tx.books, nil
	}

	b := openBooks{counterparty: ledger.DefaultCounterparty}
	var text string
	err := tx.row(
		ctx,
		`SELECT books_closed, settings FROM org WHERE id = $1`+tx.db.d.forKeyShare,
		tx.org.Bytes(),
	).
		Scan(
			monthText{&b.closed},
			&text,
		)
	if err != nil {
		return nil, err
	}

	var settings settingsRecord
	err = decode("settings of an organisation", text, &settings)
	if err != nil {
		return nil, err
	}

	if name := settings.Books.Counterparty; name != "" {
		b.counterparty = name
	}

	tx.books = &b

	return tx.books, nil
}

// ShareBooks makes transactions that lock the books wait for the end of this one, which is
// going to post.
func (tx *Tx) ShareBooks(ctx context.Context) error {
	_, err := tx.openBooks(ctx)
	return err
}

// LockBooks waits for the transactions that are posting, prevents others from posting until
// this one ends, and returns the last closed month.
func (tx *Tx) LockBooks(ctx context.Context) (ledger.Month, error) {
	return tx.booksClosed(ctx, tx.db.d.forUpdate)
}

// LastClosedMonth returns the last closed month; zero if none is.
func (tx *Tx) LastClosedMonth(ctx context.Context) (ledger.Month, error) {
	return tx.booksClosed(ctx, "")
}

func (tx *Tx) booksClosed(
	ctx context.Context,
	lock string,
) (ledger.Month, error) {
	var m ledger.Month
	err := tx.row(
		ctx,
		`SELECT books_closed FROM org WHERE id = $1`+lock,
		tx.org.Bytes(),
	).Scan(monthText{&m})

	return m, err
}

// monthText scans a month that is stored as text; the empty text is the zero month.
type monthText struct{ to *ledger.Month }

// Scan reads the month.
func (m monthText) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("cannot read a month from %T", src)
	}

	*m.to = ledger.Month{}

	var err error
	if text != "" {
		*m.to, err = ledger.ParseMonth(text)
	}

	return err
}

// dayOf scans a day that is stored as text.
type dayOf struct{ to *flex.Day }

// Scan reads the day.
func (d dayOf) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("cannot read a day from %T", src)
	}

	var err error
	*d.to, err = flex.ParseDay(text)

	return err
}

// CloseMonth stores a month's trial balance and closes the month. The caller has locked the
// books with LockBooks.
func (tx *Tx) CloseMonth(
	ctx context.Context,
	m ledger.Month,
	by string,
) (ClosedMonth, error) {
	b, err := tx.TrialBalance(ctx, m.First(), m.Last())
	if err != nil {
		return ClosedMonth{}, err
	}

	c := ClosedMonth{
		Month:    m,
		ClosedAt: tx.now,
		ClosedBy: by,
		Balance:  b.Text(),
	}

	c.Hash = sha256.Sum256([]byte(c.Balance))
	err = tx.row(
		ctx,
		`SELECT count(*) FROM ledger WHERE org_id = $1 AND booked_on >= $2 AND booked_on <= $3`,
		tx.org.Bytes(),
		m.First().String(),
		m.Last().String(),
	).Scan(&c.Transactions)

	if err != nil {
		return c, err
	}

	row := []value{
		{"org_id", tx.org.Bytes()},
		{"month", m.String()},
		{"closed_at", micros(c.ClosedAt)},
		{"closed_by", by},
		{"transactions", c.Transactions},
		{"trial_balance", c.Balance},
		{"hash", c.Hash[:]},
	}

	err = tx.insert(ctx, "books_month", row)
	if err != nil {
		return c, err
	}

	_, err = tx.exec(
		ctx,
		`UPDATE org SET books_closed = $2 WHERE id = $1`,
		tx.org.Bytes(),
		m.String(),
	)

	tx.books = nil

	return c, err
}

// ClosedMonths returns the organisation's closed months, the newest first.
func (tx *Tx) ClosedMonths(ctx context.Context) ([]ClosedMonth, error) {
	scan := func(s scanner) (ClosedMonth, error) {
		var hash []byte
		var c ClosedMonth
		err := s.Scan(
			monthText{&c.Month},
			instant{&c.ClosedAt},
			&c.ClosedBy,
			&c.Transactions,
			&c.Balance,
			&hash,
		)

		copy(c.Hash[:], hash)
		return c, err
	}

	return rows(
		ctx,
		tx.conn,
		scan,
		`SELECT month, closed_at, closed_by, transactions, trial_balance, hash FROM books_month
		WHERE org_id = $1 ORDER BY month DESC`,
		tx.org.Bytes(),
	)
}

// FirstBooked returns the first booking day of the books; zero if nothing is booked.
func (tx *Tx) FirstBooked(ctx context.Context) (flex.Day, error) {
	var text string
	err := tx.row(
		ctx,
		`SELECT COALESCE(MIN(booked_on), '') FROM ledger WHERE org_id = $1`,
		tx.org.Bytes(),
	).Scan(&text)
	if err != nil || text == "" {
		return flex.Day{}, err
	}

	return flex.ParseDay(text)
}

// TrialBalance returns the balances of the accounts before the first day, and their movements
// from then to the last day. The balances at the end of the newest month closed before come
// from its stored trial balance, so that only later postings are added up.
func (tx *Tx) TrialBalance(
	ctx context.Context,
	from, to flex.Day,
) (ledger.TrialBalance, error) {
	c, err := tx.closedBefore(ctx, ledger.MonthOf(from))
	if err != nil {
		return ledger.TrialBalance{}, err
	}

	return tx.balanceSince(ctx, c, from, to)
}

// closings are the balances of the accounts at the end of the last day of a closed month; zero
// if no month is closed.
type closings struct {
	last flex.Day
	held map[ledger.Account]flex.Pence
}

// noMonth comes after every month.
var noMonth = ledger.Month{Year: 9999, Month: time.December}

// closedBefore returns the balances at the end of the newest month before a month that is
// closed.
func (tx *Tx) closedBefore(
	ctx context.Context,
	month ledger.Month,
) (closings, error) {
	var m ledger.Month
	var text string
	err := tx.row(
		ctx,
		`SELECT month, trial_balance FROM books_month WHERE org_id = $1 AND month < $2 ORDER BY month DESC LIMIT 1`,
		tx.org.Bytes(),
		month.String(),
	).Scan(monthText{&m}, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return closings{}, nil
	}
	if err != nil {
		return closings{}, err
	}

	held, err := ledger.ReadClosings(text)
	if err != nil {
		return closings{}, fmt.Errorf("read how %s was closed: %w", m, err)
	}

	return closings{m.Last(), held}, nil
}

// balanceSince is TrialBalance of the postings after some closings, which are before the first
// day.
func (tx *Tx) balanceSince(
	ctx context.Context,
	c closings,
	from, to flex.Day,
) (ledger.TrialBalance, error) {
	since := "" // no day is before that
	if c.held != nil {
		since = c.last.Add(1).String()
	}

	scan := func(s scanner) (ledger.AccountTotals, error) {
		var a ledger.AccountTotals
		err := s.Scan(&a.Account, &a.Opening, &a.Debits, &a.Credits)
		return a, err
	}

	totals, err := rows(ctx, tx.conn, scan, `SELECT p.account,
			CAST(SUM(CASE WHEN l.booked_on < $2 THEN p.amount ELSE 0 END) AS BIGINT),
			CAST(SUM(CASE WHEN l.booked_on >= $2 AND p.amount > 0 THEN p.amount ELSE 0 END) AS BIGINT),
			CAST(SUM(CASE WHEN l.booked_on >= $2 AND p.amount < 0 THEN p.amount ELSE 0 END) AS BIGINT)
		FROM ledger l JOIN posting p ON p.ledger_id = l.id WHERE l.org_id = $1 AND l.booked_on >= $4 AND l.booked_on <= $3 GROUP BY p.account`,
		tx.org.Bytes(), from.String(), to.String(), since)

	for account, held := range c.held {
		i := slices.IndexFunc(totals, func(a ledger.AccountTotals) bool {
			return a.Account == account
		})
		if i < 0 {
			i = len(totals)
			totals = append(totals, ledger.AccountTotals{Account: account})
		}

		totals[i].Opening += held
	}

	return ledger.NewTrialBalance(from, to, totals), err
}

// JournalLine is one posting with its transaction.
type JournalLine struct {
	ID       flex.TransactionID
	BookedOn flex.Day
	// the settlement day that it is about; zero if none
	About        flex.Day
	RecordedAt   time.Time
	Key          string
	Kind         ledger.Kind
	SiteID       flex.SiteID // zero for money of the organisation itself
	Account      ledger.Account
	Amount       flex.Pence // a debit is positive
	Cause        ledger.Cause
	Counterparty string
	Reference    string
}

// Journal calls fn with every posting booked in the days, in the order of the books: by day,
// then as they were recorded, then by account. It has one line in memory at a time.
func (tx *Tx) Journal(
	ctx context.Context,
	from, to flex.Day,
	fn func(JournalLine) error,
) error {
	found, err := tx.query(
		ctx,
		`SELECT l.id, l.booked_on, l.settled_on, l.recorded_at, l.key, l.kind, l.site_id, p.account, p.amount,
			l.session_id, l.flex_event_id, l.run_id, l.corrects, l.follows, l.decided_by, l.counterparty, l.reference, l.reason
		FROM ledger l JOIN posting p ON p.ledger_id = l.id WHERE l.org_id = $1 AND l.booked_on >= $2 AND l.booked_on <= $3
		ORDER BY l.booked_on, l.id, p.account`,
		tx.org.Bytes(),
		from.String(),
		to.String(),
	)

	if err != nil {
		return err
	}

	defer found.Close()

	for found.Next() {
		l, err := scanJournalLine(found)
		if err != nil {
			return err
		}

		if err := fn(l); err != nil {
			return err
		}
	}

	return found.Err()
}

func scanJournalLine(s scanner) (JournalLine, error) {
	var about *string
	var l JournalLine
	err := s.Scan(
		&l.ID,
		dayOf{&l.BookedOn},
		&about,
		instant{&l.RecordedAt},
		&l.Key,
		&l.Kind,
		&l.SiteID,
		&l.Account,
		&l.Amount,
		&l.Cause.Session,
		&l.Cause.FlexEvent,
		&l.Cause.Run,
		&l.Cause.Corrects,
		&l.Cause.Follows,
		&l.Cause.By,
		&l.Counterparty,
		&l.Reference,
		&l.Cause.Reason,
	)

	if err != nil || about == nil {
		return l, err
	}

	l.About, err = flex.ParseDay(*about)

	return l, err
}

var (
	_ = law(
		"every transaction is booked on a day",
		`SELECT key AS what FROM ledger WHERE length(booked_on) <> 10`,
	)
	_ = law(
		"nothing is booked in a month after it was closed",
		`SELECT m.month AS what FROM books_month m WHERE m.transactions <>
		(SELECT count(*) FROM ledger l WHERE l.org_id = m.org_id AND l.booked_on >= m.month || '-01' AND l.booked_on <= m.month || '-31')`,
	)
	_ = law(
		"the last closed month is the one that the books say",
		`SELECT o.name AS what FROM org o
		WHERE o.books_closed <> COALESCE((SELECT MAX(m.month) FROM books_month m WHERE m.org_id = o.id), '')`,
	)
	_ = lawInGo(
		"a closed month has the trial balance that it was closed with",
		changedMonths,
	)
)

// changedMonths returns the closed months whose trial balance, computed again, differs from
// the stored one.
func changedMonths(
	ctx context.Context,
	all *All,
) ([]string, error) {
	orgs, err := all.Orgs(ctx)
	if err != nil {
		return nil, err
	}

	var changed []string
	for _, o := range orgs {
		tx, err := all.For(ctx, o.ID)
		if err != nil {
			return nil, err
		}

		months, err := tx.ClosedMonths(ctx)
		if err != nil {
			return nil, err
		}

		for _, m := range months {
			// Everything is added up again, also what earlier months were closed with.
			now, err := tx.balanceSince(
				ctx,
				closings{},
				m.Month.First(),
				m.Month.Last(),
			)
			if err != nil {
				return nil, err
			}

			hash := sha256.Sum256([]byte(now.Text()))
			if now.Text() != m.Balance || !bytes.Equal(hash[:], m.Hash[:]) {
				changed = append(
					changed,
					fmt.Sprintf("%s of %s", m.Month, o.Name),
				)
			}
		}
	}

	return changed, nil
}
