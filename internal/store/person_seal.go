package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/keyring"
)

// sealBatch is how many rows one transaction seals.
const sealBatch = 500

// SealPersons seals what the database at the url holds of persons in plain text, and returns in how
// many rows. Nothing else may use the database meanwhile: a text is found by its sealed form
// alone as soon as the first is sealed. If it is cut off, it continues where it was; until it has
// come to its end the database opens for nothing else.
func SealPersons(ctx context.Context, url string, o Options) (int, error) {
	o.halfSealed = true

	db, err := Open(ctx, url, o)
	if err != nil {
		return 0, err
	}
	defer db.Close()

	if db.keys == nil {
		return 0, errNoKey
	}

	if o.Environment != "" {
		if err := db.CheckEnvironment(ctx); err != nil {
			return 0, err
		}
	}

	if err := db.startSealing(ctx); err != nil {
		return 0, err
	}

	tables, err := db.personTables(ctx)
	if err != nil {
		return 0, err
	}

	var n int
	for _, t := range tables {
		done, err := db.sealTable(ctx, t)
		n += done
		if err != nil {
			return n, fmt.Errorf("seal what %s holds of persons: %w", t.name, err)
		}
	}

	err = db.WriteAll(ctx, func(all *All) error {
		_, err := all.exec(ctx, `UPDATE person_key SET whole = TRUE`)
		return err
	})
	if err != nil {
		return n, err
	}

	return n, db.wipePlain(ctx, tables)
}

// startSealing makes the key, if there is none, and uses it.
func (db *DB) startSealing(ctx context.Context) error {
	err := db.WriteAll(ctx, func(all *All) error {
		if err := all.checkNotServed(ctx); err != nil {
			return err
		}
		return all.makePersonKey(ctx, false)
	})
	if err != nil {
		return err
	}

	key, err := db.personKey(ctx)
	if err != nil {
		return err
	}

	return db.usePersonKey(ctx, key)
}

// checkNotServed fails if a flexd serve uses the database. On PostgreSQL each of them has a lock, or,
// behind a pooler that shares sessions, a session that was used a moment ago. On SQLite the file
// beside the database says so.
func (all *All) checkNotServed(ctx context.Context) error {
	if all.db.d.name == "sqlite" {
		return nil
	}

	if all.db.Shared() {
		return flex.Fail(
			flex.Invalid,
			"--database is a pooler in transaction mode, through which it is not seen whether a flexd serve uses the database: give the address of PostgreSQL itself",
		)
	}

	var n int
	err := all.row(
		ctx,
		`SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
		+ (SELECT count(*) FROM (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1
			AND (state <> 'idle' OR state_change > clock_timestamp() - $2 * interval '1 second') LIMIT 1) s)`,
		sharedName,
		sharedRecent.Seconds(),
	).Scan(&n)

	if err == nil && n > 0 {
		err = flex.Fail(
			flex.Conflict,
			"%d flexd serve use the database: stop every one of them first",
			n,
		)
	}

	return err
}

// personTable is a table with columns of texts about persons.
type personTable struct {
	name    string
	key     []string
	columns []string
}

func (db *DB) personTables(ctx context.Context) ([]personTable, error) {
	var tables []personTable
	err := db.ReadAll(ctx, func(all *All) error {
		by, err := all.catalogue(ctx)
		if err != nil {
			return err
		}

		for _, c := range personColumns {
			n := len(tables)
			if n > 0 && tables[n-1].name == c.table {
				tables[n-1].columns = append(tables[n-1].columns, c.column)
				continue
			}

			t := personTable{name: c.table, columns: []string{c.column}}
			for _, k := range (portableTable{columns: by[c.table]}).key() {
				t.key = append(t.key, k.name)
			}
			tables = append(tables, t)
		}

		return nil
	})

	return tables, err
}

// sealTable seals the plain texts of a table, some rows in each transaction, in the order of its
// key.
func (db *DB) sealTable(ctx context.Context, t personTable) (int, error) {
	var last []any

	var n int
	for {
		var keys [][]any
		err := db.WriteAll(ctx, func(all *All) error {
			var err error
			keys, err = all.sealRows(ctx, t, last)
			return err
		})

		n += len(keys)
		if err != nil || len(keys) < sealBatch {
			return n, err
		}
		last = keys[len(keys)-1]
	}
}

// sealRows seals the plain texts of some rows after a key, and returns their keys as they were.
func (all *All) sealRows(
	ctx context.Context,
	t personTable,
	after []any,
) ([][]any, error) {
	width := len(t.key) + len(t.columns)
	scan := func(s scanner) ([]any, error) {
		row := make([]any, width)
		into := make([]any, width)
		for i := range row {
			into[i] = &row[i]
		}

		return row, s.Scan(into...)
	}

	found, err := rows(
		ctx,
		all.conn,
		scan,
		t.query(len(after) > 0),
		append(after, sealBatch)...,
	)
	if err != nil {
		return nil, err
	}

	update := t.update()

	var keys [][]any
	for _, row := range found {
		key := row[:len(t.key)]
		keys = append(keys, key)

		sealed := all.sealedValues(t, row[len(t.key):])
		if err := all.later(ctx, update, append(sealed, key...)...); err != nil {
			return nil, err
		}
	}

	return keys, nil
}

// sealedValues seals what is plain of a row's texts.
func (all *All) sealedValues(t personTable, texts []any) []any {
	sealed := make([]any, 0, len(texts)+len(t.key))

	for i, v := range texts {
		if text, ok := v.(string); ok && !keyring.SealedText(text) {
			v = all.hidden(t.name, t.columns[i], text)
		}
		sealed = append(sealed, v)
	}

	return sealed
}

// query reads rows with a plain text in the order of the key, those after a key alone if there is
// one.
func (t personTable) query(after bool) string {
	plain := make([]string, len(t.columns))
	for i, c := range t.columns {
		plain[i] = c + " <> '' AND substr(" + c + ", 1, 2) <> '" + keyring.TextMark + "'"
	}

	key := strings.Join(t.key, ", ")
	where, n := "("+strings.Join(plain, " OR ")+")", 0

	if after {
		n = len(t.key)
		where += " AND (" + key + ") > (" + places(1, n) + ")"
	}

	return `SELECT ` + strings.Join(
		slices.Concat(t.key, t.columns),
		", ",
	) + ` FROM ` + t.name +
		` WHERE ` + where + ` ORDER BY ` + key + ` LIMIT ` + places(n+1, 1)
}

func (t personTable) update() string {
	set := make([]string, len(t.columns))
	for i, c := range t.columns {
		set[i] = c + " = " + places(i+1, 1)
	}

	where := make([]string, len(t.key))
	for i, c := range t.key {
		where[i] = c + " = " + places(len(t.columns)+i+1, 1)
	}

	return `UPDATE ` + t.name + ` SET ` + strings.Join(set, ", ") +
		` WHERE ` + strings.Join(where, " AND ")
}

// places are n places for values from $first on.
func places(first, n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("$%d", first+i)
	}

	return strings.Join(names, ", ")
}

// wipePlain rewrites the tables, so that no plain text is left where a row was before.
func (db *DB) wipePlain(ctx context.Context, tables []personTable) error {
	if db.d.name == "sqlite" {
		return db.Scrub(ctx)
	}

	for _, t := range tables {
		if _, err := db.sql.ExecContext(ctx, `VACUUM FULL `+t.name); err != nil {
			return fmt.Errorf("rewrite %s: %w", t.name, err)
		}
	}

	return nil
}
