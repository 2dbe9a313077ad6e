package store

import (
	"context"
	"database/sql"
	"errors"

	"flexd/internal/flex"
)

// CheckEnvironment fails with Conflict if the database is for another environment than it was opened as: by what
// KeepEnvironment kept, or without that for the sandbox, if the clock of an organisation was turned.
func (db *DB) CheckEnvironment(ctx context.Context) error {
	return db.ReadAll(ctx, func(all *All) error {
		_, err := all.checkEnvironment(ctx)
		return err
	})
}

// KeepEnvironment is CheckEnvironment, and has the database be for the environment that it was opened as.
func (db *DB) KeepEnvironment(ctx context.Context) error {
	return db.WriteAll(ctx, func(all *All) error {
		kept, err := all.checkEnvironment(ctx)
		if err != nil || kept {
			return err
		}

		_, err = all.exec(
			ctx,
			`INSERT INTO environment (id, name) VALUES (1, $1) ON CONFLICT (id) DO NOTHING`,
			string(db.Environment),
		)
		if err != nil {
			return err
		}

		_, err = all.checkEnvironment(ctx) // another process may have been first

		return err
	})
}

// checkEnvironment is CheckEnvironment, and reports whether an environment was kept.
func (all *All) checkEnvironment(ctx context.Context) (kept bool, err error) {
	var name flex.Environment
	err = all.row(ctx, `SELECT name FROM environment`).Scan(&name)
	kept = err == nil
	if errors.Is(err, sql.ErrNoRows) {
		name = all.db.Environment

		var turned int
		err = all.row(
			ctx,
			`SELECT count(*) FROM org WHERE clock_offset <> 0 OR clock_held`,
		).Scan(&turned)
		if turned > 0 {
			name = flex.Sandbox
		}
	}

	if err != nil || name == all.db.Environment {
		return kept, err
	}

	return kept, flex.Fail(
		flex.Conflict,
		"the database is of the %s environment, and not of %s: add --environment %s, or name another with --database",
		name,
		all.db.Environment,
		name,
	)
}
