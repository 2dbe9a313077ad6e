package store

import (
	"context"
	"fmt"

	"flexd/internal/flex"
)

// SchemaMode says what Open may do to the schema of the database.
type SchemaMode int

// The modes. None opens a schema that is newer than this program knows: an older program would
// write records that the newer one's rules forbid.
const (
	SchemaMigrate SchemaMode = iota // bring it up to date
	// make it in an empty database; leave another as it is
	SchemaCreate
	SchemaAsIs // leave it as it is
)

// SchemaStatus compares the schema of a database with the one that this program needs.
type SchemaStatus struct {
	Version int64    // of the database; 0 if it is empty
	Needed  int64    // by this program
	Pending []string // migrations to be applied, in order
}

// Newer reports whether the schema is newer than this program knows.
func (s SchemaStatus) Newer() bool { return s.Version > s.Needed }

// SchemaStatus reads the status. It changes nothing.
func (db *DB) SchemaStatus(ctx context.Context) (SchemaStatus, error) {
	p, err := db.migrator()
	if err != nil {
		return SchemaStatus{}, err
	}

	sources := p.ListSources()
	status := SchemaStatus{Needed: sources[len(sources)-1].Version}

	// The table of versions is not there before the first migration, and asking the migrator
	// would make it.
	var present bool
	if err := db.sql.QueryRowContext(ctx, db.d.versionTable).Scan(&present); err != nil {
		return status, unavailable(fmt.Errorf(
			"look for the schema's version: %w",
			err,
		))
	}

	applied := map[int64]bool{}
	if present {
		applied, err = db.appliedMigrations(ctx)
		if err != nil {
			return status, err
		}
	}

	for version := range applied {
		status.Version = max(status.Version, version)
	}

	for _, source := range sources {
		if !applied[source.Version] {
			status.Pending = append(status.Pending, source.Path)
		}
	}

	return status, nil
}

// appliedMigrations reads which migrations the database has had.
func (db *DB) appliedMigrations(ctx context.Context) (map[int64]bool, error) {
	found, err := db.sql.QueryContext(
		ctx,
		`SELECT version_id FROM goose_db_version WHERE is_applied`,
	)
	if err != nil {
		return nil, unavailable(fmt.Errorf(
			"read the schema's version: %w",
			err,
		))
	}

	defer found.Close()

	applied := map[int64]bool{}

	for found.Next() {
		var version int64
		if err := found.Scan(&version); err != nil {
			return nil, err
		}
		applied[version] = true
	}

	return applied, found.Err()
}

// prepareSchema does to the schema what the mode allows, and refuses a schema that this program
// cannot work with.
func (db *DB) prepareSchema(ctx context.Context, mode SchemaMode) error {
	status, err := db.SchemaStatus(ctx)
	if err != nil {
		return err
	}

	if status.Newer() {
		return flex.Fail(
			flex.Conflict,
			"the database's schema has version %d, and this flexd knows versions up to %d: "+
				"run the newer flexd that upgraded it, or restore the copy made before the upgrade",
			status.Version,
			status.Needed,
		)
	}

	if len(status.Pending) == 0 {
		return nil
	}

	empty := status.Version == 0
	if mode == SchemaMigrate && !empty {
		if err := db.checkBefore(ctx, status); err != nil {
			return err
		}
	}

	if mode == SchemaMigrate || mode == SchemaCreate && empty {
		return db.migrate(ctx)
	}
	if empty {
		return flex.Fail(
			flex.NotFound,
			"the database is empty: flexd migrate makes its tables, and so does flexd serve",
		)
	}

	return flex.Fail(
		flex.Conflict,
		"the database's schema has version %d and this flexd needs %d (%d migrations): "+
			"back it up and run flexd migrate, or start the new flexd serve; see the upgrade section of docs/operating.md",
		status.Version,
		status.Needed,
		len(status.Pending),
	)
}

// ReadSchemaStatus reads the status of the database at the url, and changes nothing.
func ReadSchemaStatus(ctx context.Context, url string) (SchemaStatus, error) {
	db, err := connect(ctx, url, Options{})
	if err != nil {
		return SchemaStatus{}, err
	}
	defer db.Close()

	return db.SchemaStatus(ctx)
}

// CountOrgs returns how many organisations are in the database at the url, of whatever schema, and
// changes nothing.
func CountOrgs(ctx context.Context, url string) (int, error) {
	db, err := connect(ctx, url, Options{})
	if err != nil {
		return 0, err
	}
	defer db.Close()

	status, err := db.SchemaStatus(ctx)
	if err != nil || status.Version == 0 {
		return 0, err
	}

	var n int
	err = db.sql.QueryRowContext(ctx, `SELECT count(*) FROM org`).Scan(&n)
	if err != nil {
		err = fmt.Errorf("count the organisations: %w", err)
	}

	return n, err
}
