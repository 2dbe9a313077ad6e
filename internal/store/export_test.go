package store

import (
	"context"
	"database/sql"
)

// Earlier puts the schema of an earlier version into a PostgreSQL database, in the place of
// all that is there, and has fill put rows into it.
func Earlier(ctx context.Context, url string, version int64, fill func(*sql.DB) error) error {
	db := &DB{}
	if err := db.openPostgres(url); err != nil {
		return err
	}
	defer db.sql.Close()
	if _, err := db.sql.ExecContext(ctx, `DROP SCHEMA public CASCADE; CREATE SCHEMA public`); err != nil {
		return err
	}

	p, err := db.migrator()
	if err != nil {
		return err
	}
	if _, err := p.UpTo(ctx, version); err != nil {
		return err
	}
	return fill(db.sql)
}
