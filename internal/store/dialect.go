package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"flexd/internal/flex"
)

// dialect is all that the two engines differ in.
type dialect struct {
	name  string
	types *strings.Replacer // type words of the migrations
	// one writer, whose waiting jobs share a commit
	groupCommit    bool
	forUpdate      string // locks the rows that a SELECT finds
	forNoKeyUpdate string // the same, but lets others refer to them
	forKeyShare    string // keeps others from forUpdate alone
	// locks them too, passing over rows that another holds
	skipLocked string
	// keeps the flex events of asset $1 to one transaction; "" where there is one writer
	lockEventsOf string
	// asks whether the table of the schema's versions is there
	versionTable string
	// every table's columns: the table, the column, its type, its place in the primary key from 0
	catalogue string
	// every table, and whether it may have rows
	tables  string
	byBytes string // orders texts by their bytes
	// writes an id of the engine's type as 32 hexadecimal digits
	idHex     string
	idSet     string // the ids of a JSON array of such digits
	maxParams int    // parameters in one statement
	// before a statement asks how it would be run
	explain string
	weekly  bool // readings lie in a table for each week
	// flexd writes the statistics by which indexes are chosen
	statistics bool
	// finds keys alone whose process is gone; "" where that is known at the start
	holderGone string
	// the transaction lost to another and may be run again
	retryable func(error) bool
	// makes and drops the triggers of a table that keep a moving organisation as it is
	fence   func(fencePost) []string
	unfence func(fencePost) []string
	// a value that must be unique is there already
	unique func(error) bool
	// the engine cannot be reached or is not ready
	down        func(error) bool
	putReadings func(
		ctx context.Context,
		c conn,
		rs []flex.Reading,
		known int64,
	) error
	// addRows adds new rows to a table, their values in one run.
	addRows func(
		ctx context.Context,
		c conn,
		table string,
		columns []string,
		args []any,
	) error
}

// unavailable marks errors that say the engine is gone, so that the transport answers 503.
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

// unavailable is the same, and knows that what fails while the database hangs failed for that.
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

// bulk writes many rows with as few statements as the engine's parameter limit allows.
// The head ends before VALUES, the tail begins after it; args are the rows' values in one
// run, cols to a row.
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

// addValues adds rows to a table by statements that name their values.
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

// texts keeps the statements of whole steps, which are many and the same.
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
