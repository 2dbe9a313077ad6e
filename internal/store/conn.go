package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"flexd/internal/flex"
)

// conn is a running transaction.
type conn struct {
	db   *DB
	run  runner
	pipe *pipe    // queued statements; nil on SQLite and in reads
	wake *[]Topic // topics to notify after the commit; nil in reads
	made *any     // the argument of Tx.SetMadeRecord; nil in reads
}

// runner runs a transaction's statements: on PostgreSQL a transaction or connection of
// database/sql, on SQLite a connection with its prepared statements.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// errOrgMissing says that the organisation is not in the database.
var errOrgMissing = flex.Fail(flex.NotFound, "organisation not found")

// OrgMissing reports whether a transaction failed because its organisation is not in the
// database, such as after a move to another cell. In production few transactions notice: only
// a sandbox reads the organisation's row, for its clock, at the beginning of each.
func OrgMissing(err error) bool { return errors.Is(err, errOrgMissing) }

// bind binds the transaction to an organisation, and sets its instant by the organisation's clock.
func (c conn) bind(
	ctx context.Context,
	org flex.OrgID,
	now time.Time,
) (*Tx, error) {
	if !Reaches(ctx, org) {
		return nil, flex.Fail(flex.NotFound, "organisation not found")
	}

	tx := &Tx{
		conn: c,
		org:  org,
		now:  now,
	}

	if c.db.Environment == flex.Sandbox {
		var offset int64
		err := c.row(
			ctx,
			`SELECT clock_offset FROM org WHERE id = $1`,
			org.Bytes(),
		).Scan(&offset)

		if errors.Is(err, sql.ErrNoRows) {
			return nil, errOrgMissing
		}

		if err != nil {
			return nil, fmt.Errorf("read the organisation's clock: %w", err)
		}

		tx.now = now.Add(time.Duration(offset) * time.Microsecond)
	}

	return tx, nil
}

// exec runs a statement that returns no rows, and returns how many rows it changed.
func (c conn) exec(
	ctx context.Context,
	query string,
	args ...any,
) (int64, error) {
	if err := cmp.Or(plainPerson(args), c.pipe.flush(ctx)); err != nil {
		return 0, err
	}

	began := c.db.slow.began()

	res, err := c.run.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}

	c.db.slow.ended(ctx, began, query, args)

	return res.RowsAffected()
}

// query runs a query for rows.
func (c conn) query(
	ctx context.Context,
	query string,
	args ...any,
) (*sql.Rows, error) {
	if err := cmp.Or(plainPerson(args), c.pipe.flush(ctx)); err != nil {
		return nil, err
	}
	return c.run.QueryContext(ctx, query, args...)
}

// row runs a query that returns at most one row.
func (c conn) row(ctx context.Context, query string, args ...any) scanner {
	if err := cmp.Or(plainPerson(args), c.pipe.flush(ctx)); err != nil {
		return failed{err}
	}

	began := c.db.slow.began()
	defer c.db.slow.ended(ctx, began, query, args)

	return c.run.QueryRowContext(ctx, query, args...)
}

type scanner interface{ Scan(dest ...any) error }

// failed is the row of a query that could not be sent.
type failed struct{ err error }

// Scan returns the reason.
func (f failed) Scan(...any) error { return f.err }

// later runs a statement whose result is not needed before the end of the transaction. On
// PostgreSQL it is queued and sent together with others, at the latest with the commit, which
// saves its round trip. Its error is returned then.
func (c conn) later(ctx context.Context, query string, args ...any) error {
	if c.pipe == nil {
		_, err := c.exec(ctx, query, args...)
		return err
	}

	if err := plainPerson(args); err != nil {
		return err
	}

	return c.pipe.put(ctx, query, args)
}

// plainPerson refuses values about a person that hide has not sealed. Reading such a value
// without opened is refused by flex.Personal itself.
func plainPerson(args []any) error {
	for i, a := range args {
		if _, plain := a.(flex.Personal); plain {
			return fmt.Errorf("value %d of a statement is about a person: write it by hide, to a column of personColumns", i+1)
		}
	}

	return nil
}

// unqueued returns the same transaction for reads of records that it has not changed: such a
// read does not have the queued statements sent before it.
func (c conn) unqueued() conn {
	c.pipe = nil
	return c
}

// scalar scans a row of one column.
func scalar[T any](s scanner) (T, error) {
	var v T
	err := s.Scan(&v)
	return v, err
}

// rows runs a query and returns its rows, each read with scan.
func rows[T any](
	ctx context.Context,
	c conn,
	scan func(scanner) (T, error),
	query string,
	args ...any,
) ([]T, error) {
	var out []T
	err := eachRow(ctx, c, func(s scanner) error {
		v, err := scan(s)
		if err == nil {
			out = append(out, v)
		}
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}

	return out, nil
}

// eachRow runs a query and calls read for each of its rows. It ends with the first error.
func eachRow(
	ctx context.Context,
	c conn,
	read func(scanner) error,
	query string,
	args ...any,
) error {
	began := c.db.slow.began()
	defer c.db.slow.ended(ctx, began, query, args)

	rs, err := c.query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rs.Close()

	for rs.Next() {
		if err := read(rs); err != nil {
			return err
		}
	}

	return rs.Err()
}

// one runs a query for a single row; a missing one is a NotFound failure with the detail.
func one[T any](
	ctx context.Context,
	c conn,
	missing string,
	scan func(scanner) (T, error),
	query string,
	args ...any,
) (T, error) {
	v, err := scan(c.row(ctx, query, args...))
	if errors.Is(err, sql.ErrNoRows) {
		return v, flex.Fail(flex.NotFound, "%s", missing)
	}

	return v, err
}

// newID makes an id that sorts after all that this process made before, even within a
// millisecond. The caller converts it to the id's type, as in flex.SiteID(tx.newID()).
func (c conn) newID() [16]byte { return c.newIDs(1) }

// newIDs makes n consecutive ids and returns the first.
func (c conn) newIDs(n int) [16]byte {
	var r [10]byte
	c.db.mu.Lock()
	defer c.db.mu.Unlock()

	if _, err := io.ReadFull(c.db.random, r[:]); err != nil {
		// without randomness no id is safe
		panic(fmt.Sprintf("no randomness: %v", err))
	}

	id := flex.MakeID[struct{}](c.db.Now(), r)
	if last := c.db.lastID; bytes.Compare(id[:], last[:]) <= 0 {
		id = following(last, 1)
	}

	c.db.lastID = following(id, n-1)

	return id
}

// following returns the n-th id after id.
func following(id [16]byte, n int) [16]byte {
	binary.BigEndian.PutUint64(
		id[8:],
		binary.BigEndian.Uint64(id[8:])+uint64(n),
	)

	return id
}

// micros returns an instant as the store writes it, in microseconds since 1970; the zero time
// is null.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// instant scans a column that micros wrote.
type instant struct{ to *time.Time }

// Scan reads microseconds since 1970; null is the zero time.
func (i instant) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*i.to = time.Time{}
	case int64:
		*i.to = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("cannot read an instant from %T", src)
	}

	return nil
}

// nullable returns null for an empty text, for columns with a unique index that must ignore it.
func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}
