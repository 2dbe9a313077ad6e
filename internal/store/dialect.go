package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"flexd/internal/flex"
)

// dialect holds everything in which the two engines differ.
type dialect struct {
	name  string
	types *strings.Replacer // type words of the migrations
	// there is one writer, and the writes that wait for it share a commit
	groupCommit    bool
	forUpdate      string // clause that locks the rows that a SELECT finds
	forNoKeyUpdate string // the same, but others may add rows that refer to them
	forKeyShare    string // clause that blocks forUpdate of others, and nothing else
	// forUpdate that skips the rows that another transaction has locked
	skipLocked string
	// locks the flex events of asset $1 for the transaction; "" where there is one writer
	lockEventsOf string
	// query: whether the table of the schema's versions exists
	versionTable string
	// query of every table's columns: the table, the column, its type, its place in the
	// primary key from 0
	catalogue string
	// query of every table, and whether it may have rows
	tables  string
	byBytes string // collation that orders texts by their bytes
	// writes an id of the engine's type as 32 hexadecimal digits
	idHex     string
	idSet     string // the ids of a JSON array of such digits
	maxParams int    // parameters in one statement
	// prefix of a statement that returns its plan instead of running it
	explain string
	weekly  bool // readings are in a table for each week
	// flexd itself writes the statistics by which indexes are chosen
	statistics bool
	// condition that finds only idempotency keys whose process is gone; "" where none can be
	// at work
	holderGone string
	// whether the transaction failed because of another and may be run again
	retryable func(error) bool
	// statements that create and drop a table's triggers that refuse writes for a moving
	// organisation
	fence   func(fencePost) []string
	unfence func(fencePost) []string
	// whether a value that must be unique exists already
	unique func(error) bool
	// whether the engine cannot be reached or is not ready
	down        func(error) bool
	putReadings func(
		ctx context.Context,
		c conn,
		rs []flex.Reading,
		known int64,
	) error
	// addRows adds new rows to a table; args are the values of all rows, one row after the other.
	addRows func(
		ctx context.Context,
		c conn,
		table string,
		columns []string,
		args []any,
	) error
}

// unavailable marks errors that say that the engine cannot be reached, so that the transport
// answers 503.
func unavailable(err error) error {
	if err == nil {
		return nil
	}

	if _, ok := errors.AsType[*flex.Error](err); ok {
		return err
	}

	if moves := fenced(err); moves != err { //nolint:errorlint // the very same
		return moves
	}

	gone := sqliteDialect.down(err) || postgresDialect.down(err)
	if gone || sqliteTrouble(err)+postgresTrouble(err) != "" {
		return errors.Join(
			&flex.Error{
				Kind:   flex.Unavailable,
				Detail: "the database is not available; try again",
			},
			err,
		)
	}

	return err
}

// unavailable is the function unavailable, and also marks what fails while the database hangs.
func (db *DB) unavailable(err error) error {
	db.noteTrouble(err)
	err = unavailable(err)
	_, ok := errors.AsType[*flex.Error](err)
	if err == nil || ok || !db.watch.hanging() {
		return err
	}

	return errors.Join(
		&flex.Error{
			Kind:   flex.Unavailable,
			Detail: "the database does not answer; try again",
		},
		err,
	)
}

// rowsMax is the number of rows in one statement: a longer one costs more to prepare than it
// saves.
const rowsMax = 500

// bulk writes many rows with as few statements as the engine's parameter limit allows. The
// head is the SQL before VALUES, the tail that after the values; args are the values of all
// rows, one row after the other, cols to a row.
func (c conn) bulk(
	ctx context.Context,
	head, tail string,
	cols int,
	args []any,
) error {
	step := min(c.db.d.maxParams/cols, rowsMax) * cols
	for len(args) > 0 {
		n := min(step, len(args))
		err := c.later(ctx, valuesText(head, tail, cols, n/cols), args[:n]...)
		if err != nil {
			return err
		}
		args = args[n:]
	}

	return nil
}

// addValues adds rows to a table by INSERT … VALUES.
func (c conn) addValues(
	ctx context.Context,
	table string,
	columns []string,
	args []any,
) error {
	return c.bulk(
		ctx,
		"INSERT INTO "+table+" ("+strings.Join(columns, ", ")+")",
		"",
		len(columns),
		args,
	)
}

// texts caches the statements of rowsMax rows, which are needed most often.
var texts sync.Map // of valuesKey to string

type valuesKey struct {
	head string
	tail string
	cols int
	rows int
}

func valuesText(head, tail string, cols, rows int) string {
	key := valuesKey{head, tail, cols, rows}
	if text, ok := texts.Load(key); ok {
		return text.(string)
	}

	text := writeValues(head, tail, cols, rows)
	if rows >= rowsMax {
		texts.Store(key, text)
	}

	return text
}

func writeValues(head, tail string, cols, rows int) string {
	var b strings.Builder
	b.WriteString(head)
	b.WriteString(" VALUES ")

	for r := range rows {
		if r > 0 {
			b.WriteByte(',')
		}

		b.WriteByte('(')

		for i := range cols {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "$%d", r*cols+i+1)
		}

		b.WriteByte(')')
	}

	b.WriteByte(' ')
	b.WriteString(tail)

	return b.String()
}
