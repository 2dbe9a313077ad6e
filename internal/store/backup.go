package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"flexd/internal/flex"
)

// Backup writes a consistent copy of the store to a new file while the store is in use. Only
// SQLite's is ours to copy: PostgreSQL has a tool of its own for it.
func (db *DB) Backup(ctx context.Context, file string) error {
	if db.d.name != "sqlite" {
		return flex.Fail(
			flex.Unsupported,
			"a PostgreSQL store is copied by its own tool: pg_dump --format=custom --file=%s DATABASE",
			file,
		)
	}

	// SQLite itself would let everybody read it. It is made by this call alone, so that this call may remove it.
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return flex.Fail(flex.Conflict, "%s exists already", file)
	}
	if err != nil {
		return fmt.Errorf("copy the store: %w", err)
	}

	err = f.Close()
	if err == nil {
		_, err = db.sql.ExecContext(ctx, `VACUUM INTO $1`, file)
	}

	if err == nil {
		err = syncFile(file)
	}

	if err != nil { // a part of a copy, or an empty file, would be taken for one
		return errors.Join(
			fmt.Errorf("copy the store to %s: %w", file, err),
			os.Remove(file),
		)
	}

	return nil
}

// BackupAt is Backup of the database at the url, of whatever schema.
func BackupAt(ctx context.Context, url, file string) error {
	db, err := connect(ctx, url, Options{})
	if err != nil {
		return err
	}
	defer db.Close()

	return db.Backup(ctx, file)
}

// syncFile brings a file to the disk.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}

	return errors.Join(f.Sync(), f.Close())
}

// Weakness says in which way the engine is set not to keep what it acknowledges, or "".
func (db *DB) Weakness(ctx context.Context) (string, error) {
	var weak string
	err := db.ReadAll(ctx, func(all *All) error {
		if db.d.name == "sqlite" {
			var mode int
			if err := all.row(ctx, `PRAGMA synchronous`).Scan(&mode); err != nil {
				return err
			}

			if mode < 2 {
				weak = fmt.Sprintf("synchronous is %d, less than FULL", mode)
			}

			return nil
		}

		for _, name := range []string{
			"fsync",
			"synchronous_commit",
			"full_page_writes",
		} {
			var value string
			if err := all.row(
				ctx,
				`SELECT current_setting($1)`,
				name,
			).Scan(&value); err != nil {
				return err
			}

			if value == "off" {
				weak = name + " is off"
			}
		}

		return nil
	})

	return weak, err
}
