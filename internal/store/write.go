package store

import (
	"context"
	"fmt"
	"strings"
)

// value is what is written to a column. Columns and values are one list, so that neither can move
// without the other.
type value struct {
	column string
	value  any
}

// insert adds a row to a table. The caller names the table and the columns; they are no input.
func (c conn) insert(ctx context.Context, table string, row []value) error {
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

// update writes columns of a record of the organisation, by its id.
func (tx *Tx) update(ctx context.Context, table string, id []byte, changed []value) error {
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
