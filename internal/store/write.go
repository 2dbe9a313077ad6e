package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// value is what is written to a column. Columns and values are one list, so that neither can move
// without the other.
type value struct {
	column string
	value  any
}

// rewrite is what an upsert does if there is a row with the same key: the columns of the row are written anew, all but
// those of the key and those in keep.
type rewrite struct {
	key  []string
	keep []string
	also string // further assignments, as SQL
	only string // the condition on which the row is rewritten, as SQL
}

// insert adds a row to a table. The caller names the table and the columns; they are no input.
func (c conn) insert(
	ctx context.Context,
	table string,
	row []value,
) error {
	_, err := c.insertOr(ctx, table, row, "")
	return err
}

// insertOr is insert with what is done instead if there is such a row, as ON CONFLICT says. It returns how many rows
// were written.
func (c conn) insertOr(
	ctx context.Context,
	table string,
	row []value,
	onConflict string,
) (int64, error) {
	columns := make([]string, len(row))
	params := make([]string, len(row))
	args := make([]any, len(row))
	for i, v := range row {
		columns[i], params[i] = v.column, fmt.Sprintf("$%d", i+1)
		args[i] = v.value
	}

	return c.exec(
		ctx,
		`INSERT INTO `+table+` (`+strings.Join(columns, ", ")+`) VALUES (`+strings.Join(params, ", ")+`) `+onConflict,
		args...,
	)
}

// upsert adds a row to a table, or rewrites the one of the same key. It returns how many rows were written.
func (c conn) upsert(
	ctx context.Context,
	table string,
	row []value,
	w rewrite,
) (int64, error) {
	var sets []string
	for _, v := range row {
		if !slices.Contains(w.key, v.column) && !slices.Contains(w.keep, v.column) {
			sets = append(sets, v.column+" = excluded."+v.column)
		}
	}

	if w.also != "" {
		sets = append(sets, w.also)
	}

	onConflict := `ON CONFLICT (` + strings.Join(w.key, ", ") + `) DO UPDATE SET ` + strings.Join(sets, ", ")
	if w.only != "" {
		onConflict += ` WHERE ` + w.only
	}

	return c.insertOr(ctx, table, row, onConflict)
}

// update writes columns of a record of the organisation, by its id.
func (tx *Tx) update(
	ctx context.Context,
	table string,
	id []byte,
	changed []value,
) error {
	args := []any{tx.org.Bytes(), id}
	sets := make([]string, len(changed))
	for i, v := range changed {
		args = append(args, v.value)
		sets[i] = fmt.Sprintf("%s = $%d", v.column, len(args))
	}

	_, err := tx.exec(
		ctx,
		`UPDATE `+table+` SET `+strings.Join(sets, ", ")+` WHERE org_id = $1 AND id = $2`,
		args...,
	)

	return err
}
