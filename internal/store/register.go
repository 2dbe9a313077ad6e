package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"flexd/internal/flex"
)

// An organisation's register is its sites, assets and dispatch consents. It is read page after
// page, and changes rarely compared with sessions, readings and schedules. Every change of it
// increments its version in the same transaction. A cached result is therefore valid as long
// as its version is the newest, on every machine.

// registeredMax bounds the rows that are cached in all; when the cache is full, it is emptied.
const registeredMax = 20_000

// registered is a cache of what was read of registers.
type registered struct {
	mu      sync.Mutex
	rows    int
	entries map[registerKey]registerEntry
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
	e, ok := r.entries[key]
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

	if r.entries == nil || r.rows+rows > registeredMax {
		r.entries, r.rows = map[registerKey]registerEntry{}, 0
	}

	if rows <= registeredMax {
		r.entries[key] = registerEntry{at, value}
		// An entry that is replaced is counted twice: the cache is only emptied sooner.
		r.rows += rows
	}
}

// touchRegister increments the version of the organisation's register, once in a transaction.
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

// asRegistered returns the result of read, from the cache if the register has not changed
// since it was read. The result may be shared and must not be changed. The function rows
// counts its rows.
func asRegistered[T any](
	ctx context.Context,
	tx *Tx,
	what any,
	rows func(T) int,
	read func() (T, error),
) (T, error) {
	if tx.wake != nil { // a transaction that writes sees its own changes, which are not committed
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
	if cached, ok := tx.db.registered.get(key, at); ok {
		return cached.(T), nil
	}

	v, err = read()
	if err == nil {
		tx.db.registered.put(key, at, v, rows(v))
	}

	return v, err
}

// count returns the result of a query that counts rows of the register, from the cache if it can.
// Counting reads all of them, for which a page of a hundred should not wait.
func (tx *Tx) count(ctx context.Context, query string) (int, error) {
	one := func(int) int { return 1 }
	return asRegistered(ctx, tx, query, one, func() (int, error) {
		var n int
		err := tx.row(ctx, query, tx.org.Bytes()).Scan(&n)
		return n, err
	})
}
