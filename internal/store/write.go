package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// value is a column and the value that is written to it. With both in one list their order cannot
// differ.
type value struct {
	column string
	value  any // an expression is evaluated by the database
}

// expression is SQL in the place of a value, with a ? for each of its arguments.
type expression struct {
	text string
	args []any
}

// rewrite says what an upsert does if there is a row with the same key: all columns are
// overwritten, except those of the key and those in keep.
type rewrite struct {
	key  []string // columns of the key, which has a unique index
	keep []string // columns that are written to a new row only
	also string   // further assignments, as SQL
	only string   // the condition on which the row is rewritten, as SQL
}

// insert adds a row to a table. The names of the table and its columns become SQL: they are
// constants of the caller, never input.
func (c conn) insert(
	ctx context.Context,
	table string,
	row []value,
) error {
	_, err := c.insertOr(ctx, table, row, "")
	return err
}

// insertOr is insert with an ON CONFLICT clause. It returns how many rows were written.
func (c conn) insertOr(
	ctx context.Context,
	table string,
	row []value,
	onConflict string,
) (int64, error) {
	text, args := insertion(table, row, onConflict)
	return c.exec(ctx, text, args...)
}

// insertLater is insert through later: its error is returned at the end of the transaction.
func (c conn) insertLater(
	ctx context.Context,
	table string,
	row []value,
) error {
	text, args := insertion(table, row, "")
	return c.later(ctx, text, args...)
}

// upsert adds a row to a table, or rewrites the one of the same key. It returns how many rows
// were written.
func (c conn) upsert(
	ctx context.Context,
	table string,
	row []value,
	w rewrite,
) (int64, error) {
	return c.insertOr(ctx, table, row, w.onConflict(row))
}

// upsertLater is upsert through later: its error is returned at the end of the transaction.
func (c conn) upsertLater(
	ctx context.Context,
	table string,
	row []value,
	w rewrite,
) error {
	text, args := insertion(table, row, w.onConflict(row))
	return c.later(ctx, text, args...)
}

// onConflict returns the clause that overwrites the row with the same key.
func (w rewrite) onConflict(row []value) string {
	var sets []string
	for _, v := range row {
		if !slices.Contains(w.key, v.column) && !slices.Contains(w.keep, v.column) {
			sets = append(sets, v.column+" = excluded."+v.column)
		}
	}

	if w.also != "" {
		sets = append(sets, w.also)
	}

	clause := `ON CONFLICT (` + strings.Join(w.key, ", ") + `) DO UPDATE SET ` + strings.Join(sets, ", ")
	if w.only != "" {
		clause += ` WHERE ` + w.only
	}

	return clause
}

// insertion returns the statement that adds a row, with its arguments.
func insertion(
	table string,
	row []value,
	onConflict string,
) (string, []any) {
	var args []any
	columns := make([]string, len(row))
	values := make([]string, len(row))
	for i, v := range row {
		columns[i] = v.column
		values[i], args = written(v.value, args)
	}

	text := `INSERT INTO ` + table + ` (` + strings.Join(columns, ", ") + `) VALUES (` + strings.Join(values, ", ") + `)`
	if onConflict != "" {
		text += " " + onConflict
	}

	return text, args
}

// written returns a value as SQL, and the arguments with its own appended.
func written(v any, args []any) (string, []any) {
	e, ok := v.(expression)
	if !ok {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args)), args
	}

	text := e.text
	for _, arg := range e.args {
		args = append(args, arg)
		text = strings.Replace(text, "?", fmt.Sprintf("$%d", len(args)), 1)
	}

	return text, args
}

// update writes columns of one record of the organisation, by the record's id.
func (tx *Tx) update(
	ctx context.Context,
	table string,
	id []byte,
	changed []value,
) error {
	args := []any{tx.org.Bytes(), id}
	sets := make([]string, len(changed))
	for i, v := range changed {
		var text string
		text, args = written(v.value, args)
		sets[i] = v.column + " = " + text
	}

	_, err := tx.exec(
		ctx,
		`UPDATE `+table+` SET `+strings.Join(sets, ", ")+` WHERE org_id = $1 AND id = $2`,
		args...,
	)

	return err
}
