package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"slices"

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
	err = all.row(ctx, keptEnvironment).Scan(&name)
	kept = err == nil

	if errors.Is(err, sql.ErrNoRows) {
		var turned int
		err = all.row(ctx, turnedClocks).Scan(&turned)
		name = all.db.environmentByClocks(turned)
	}

	if err != nil {
		return kept, err
	}

	return kept, all.db.mustBeOf(name)
}

const (
	keptEnvironment = `SELECT name FROM environment`
	turnedClocks    = `SELECT count(*) FROM org WHERE clock_offset <> 0 OR clock_held`
)

// environmentMigration made the table that keeps the environment.
const environmentMigration = "00327_environment.sql"

// checkBefore is CheckEnvironment on a database whose schema waits to be migrated. A store that was
// opened for no environment may be of any.
func (db *DB) checkBefore(ctx context.Context, status SchemaStatus) error {
	if db.Environment == "" {
		return nil
	}

	var name flex.Environment
	waits := func(file string) bool { return path.Base(file) == environmentMigration }
	if !slices.ContainsFunc(status.Pending, waits) {
		err := db.sql.QueryRowContext(ctx, keptEnvironment).Scan(&name)
		if err == nil {
			return db.mustBeOf(name)
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("read the database's environment: %w", err)
		}
	}

	var turned int
	err := db.sql.QueryRowContext(ctx, turnedClocks).Scan(&turned)
	if err != nil {
		return fmt.Errorf("read the organisations' clocks: %w", err)
	}

	return db.mustBeOf(db.environmentByClocks(turned))
}

// CheckEnvironmentAt is CheckEnvironment of the database at the url, of whatever schema, and changes
// nothing. One that is empty, or of a newer schema than this program knows, may be of any.
func CheckEnvironmentAt(
	ctx context.Context,
	url string,
	as flex.Environment,
) error {
	db, err := connect(ctx, url, Options{Environment: as})
	if err != nil {
		return err
	}
	defer db.Close()

	status, err := db.SchemaStatus(ctx)
	if err != nil || status.Version == 0 || status.Newer() {
		return err
	}

	return db.checkBefore(ctx, status)
}

// environmentByClocks is the environment of a database that kept none: the sandbox if any clocks were turned in it.
func (db *DB) environmentByClocks(turned int) flex.Environment {
	if turned > 0 {
		return flex.Sandbox
	}
	return db.Environment
}

// mustBeOf fails with Conflict if the database was opened for another environment than it is of.
func (db *DB) mustBeOf(name flex.Environment) error {
	if name == db.Environment {
		return nil
	}

	return flex.Fail(
		flex.Conflict,
		"the database is of the %s environment, and not of %s: add --environment %s, or name another with --database",
		name,
		db.Environment,
		name,
	)
}
