package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"flexd/internal/flex"
)

// An organisation's register is its sites, assets and dispatch consents. It is read page
// after page, and changes seldom beside sessions, readings and schedules. Every change of it
// changes its version in the same transaction, so that what was read at a version can be
// remembered for as long as that version is the newest, on every machine.

// registeredMax bounds the rows that are remembered in all; when full, all are forgotten.
const registeredMax = 20_000

// registered remembers what was read of registers.
type registered struct {
	mu   sync.Mutex
	rows int
	held map[registerKey]registerEntry
}

type registerKey struct {
	org  flex.OrgID
	what any // comparable: a filter, or the text of a query
}

type registerEntry struct {
	at    registerVersion
	value any
}

// registerVersion is a register's own version and that of the list of meters.
type registerVersion struct{ register, meters int64 }

func (r *registered) get(key registerKey, at registerVersion) (any, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.held[key]
	return e.value, ok && e.at == at
}

func (r *registered) put(
	key registerKey,
	at registerVersion,
	value any,
	rows int,
) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.held == nil || r.rows+rows > registeredMax {
		r.held, r.rows = map[registerKey]registerEntry{}, 0
	}

	if rows <= registeredMax {
		r.held[key] = registerEntry{at, value}
		// one that is replaced is counted again: all are forgotten the sooner
		r.rows += rows
	}
}

// touchRegister says that the organisation's register is changed by this transaction.
func (tx *Tx) touchRegister(ctx context.Context) error {
	if tx.touched {
		return nil
	}
	tx.touched = true
	_, err := tx.exec(
		ctx,
		`UPDATE org SET register = register + 1 WHERE id = $1`,
		tx.org.Bytes(),
	)

	return err
}

// asRegistered returns what read returns, from memory if the register has not changed since
// it was read. What is returned may be shared and is not to be changed.
func asRegistered[T any](
	ctx context.Context,
	tx *Tx,
	what any,
	rows func(T) int,
	read func() (T, error),
) (T, error) {
	if tx.wake != nil { // a transaction that writes sees what is not committed
		return read()
	}

	var at registerVersion
	err := tx.row(
		ctx,
		`SELECT o.register, m.n FROM org o, meter_version m WHERE o.id = $1`,
		tx.org.Bytes(),
	).Scan(&at.register, &at.meters)
	if errors.Is(err, sql.ErrNoRows) {
		return read()
	}

	var v T
	if err != nil {
		return v, err
	}

	key := registerKey{tx.org, what}
	if kept, ok := tx.db.registered.get(key, at); ok {
		return kept.(T), nil
	}

	v, err = read()
	if err == nil {
		tx.db.registered.put(key, at, v, rows(v))
	}

	return v, err
}

// count returns how many rows of the register a query counts. Counting costs a walk over all
// of them, which a page of a hundred should not wait for.
func (tx *Tx) count(ctx context.Context, query string) (int, error) {
	one := func(int) int { return 1 }
	return asRegistered(ctx, tx, query, one, func() (int, error) {
		var n int
		err := tx.row(ctx, query, tx.org.Bytes()).Scan(&n)
		return n, err
	})
}
