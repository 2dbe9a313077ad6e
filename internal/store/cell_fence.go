package store

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"flexd/internal/flex"
)

// fenceCode is the error of PostgreSQL's fence, in the migration that makes its function, and
// fenceText begins SQLite's.
const (
	fenceCode = "FX001"
	fenceText = "the organisation moves"
)

// sqliteFence reports whether SQLite's fence refused a statement.
func sqliteFence(err error) bool {
	return sqliteCode(err) == sqlite3.SQLITE_CONSTRAINT_TRIGGER &&
		strings.Contains(err.Error(), fenceText)
}

// fenceWait bounds how long others wait behind the making of a trigger, and fenceTries how
// often it is tried: for a minute, as long as a transaction may plan a fleet.
const (
	fenceWait  = 500 * time.Millisecond
	fenceTries = 120
)

// lockTimeout is PostgreSQL's error of a lock that was not got in time.
const lockTimeout = "55P03"

// fence makes the triggers that refuse writes to the records of an organisation as long as it is
// marked as one that moves. On PostgreSQL the making of each waits for the transactions that have
// written to its table: afterwards none is under way that did not see the mark.
func (db *DB) fence(ctx context.Context, org flex.OrgID) error {
	return db.eachFence(ctx, org, db.d.fence, func(*All) error { return nil })
}

// unfence drops the triggers, unless the organisation is marked as one that moves in another state
// than the given one: then another mover relies on them. They are dropped first, which holds the
// table: a mover that sets its mark after it was looked for makes the trigger after it was dropped.
func (db *DB) unfence(ctx context.Context, org flex.OrgID, in CellState) error {
	return db.eachFence(ctx, org, db.d.unfence, func(all *All) error {
		var n int
		err := all.row(
			ctx,
			`SELECT count(*) FROM cell_move WHERE org_id = $1 AND state <> $2`,
			org.Bytes(),
			string(in),
		).Scan(&n)
		if err == nil && n > 0 {
			err = errOtherMove
		}

		return err
	})
}

// eachFence runs the statements for each table, a table a transaction, which last ends.
func (db *DB) eachFence(
	ctx context.Context,
	org flex.OrgID,
	statements func(fencePost) []string,
	last func(*All) error,
) error {
	for _, t := range movedTables() {
		column, fenced := fenceColumn(t.name)
		if !fenced {
			continue
		}

		post := fencePost{t.name, column, org}
		if err := db.runFence(ctx, statements(post), last); err != nil {
			return fmt.Errorf("fence %s: %w", t.name, err)
		}
	}

	return nil
}

func (db *DB) runFence(
	ctx context.Context,
	statements []string,
	last func(*All) error,
) error {
	if !db.d.groupCommit {
		wait := fmt.Sprintf(`SET LOCAL lock_timeout = %d`, fenceWait.Milliseconds())
		statements = append([]string{wait}, statements...)
	}

	var err error

	for range fenceTries {
		err = db.WriteAll(ctx, func(all *All) error {
			for _, statement := range statements {
				if _, err := all.exec(ctx, statement); err != nil {
					return err
				}
			}
			return last(all)
		})
		if postgresCode(err) != lockTimeout {
			return err
		}
	}

	return err
}

// fenceColumn is the column by which the fence knows an organisation's rows of a table. Prices
// that plans were made on are no organisation's.
func fenceColumn(table string) (column string, fenced bool) {
	switch table {
	case "curve":
		return "", false
	case "org":
		return "id", true
	case "binding", "reading", "reading_history", "register", "register_reset":
		return "asset_id", true
	case "adr_target":
		return "object_id", true
	default:
		return "org_id", true
	}
}

// fencePost is the fence of one table.
type fencePost struct {
	table  string
	column string
	org    flex.OrgID
}

// verbs are the statements that a fence refuses.
var verbs = []string{"INSERT", "UPDATE", "DELETE"}

// name is a trigger's.
func (p fencePost) name(verb string) string {
	return "cell_" + hex.EncodeToString(p.org.Bytes()) + "_" +
		strings.ToLower(verb)
}

// direct reports whether a row names its organisation itself.
func (p fencePost) direct() bool {
	return p.column == "org_id" || p.column == "id"
}

// rowOf is how a trigger calls the row that a verb concerns.
func rowOf(verb string) string {
	if verb == "INSERT" {
		return "NEW."
	}
	return "OLD."
}

func fencePostgres(p fencePost) []string {
	var statements []string
	for _, verb := range verbs {
		when, args := "", fmt.Sprintf(`'%s', '%s'`, p.org, p.column)
		if p.direct() {
			when = fmt.Sprintf(`WHEN (%s%s = '%s')`, rowOf(verb), p.column, p.org)
		}

		statements = append(statements, fmt.Sprintf(
			`CREATE OR REPLACE TRIGGER %s BEFORE %s ON %s FOR EACH ROW %s EXECUTE FUNCTION cell_fence(%s)`,
			p.name(verb),
			verb,
			p.table,
			when,
			args,
		))
	}

	return statements
}

func unfencePostgres(p fencePost) []string {
	var statements []string
	for _, verb := range verbs {
		statements = append(statements, fmt.Sprintf(
			`DROP TRIGGER IF EXISTS %s ON %s`,
			p.name(verb),
			p.table,
		))
	}

	return statements
}

func fenceSQLite(p fencePost) []string {
	var statements []string
	org := "X'" + hex.EncodeToString(p.org.Bytes()) + "'"

	for _, verb := range verbs {
		states := "1 = 1"
		if verb == "DELETE" {
			states = "state <> 'gone'"
		}

		refuse := func(name, also, how string) {
			statements = append(statements, fmt.Sprintf(
				`CREATE TRIGGER IF NOT EXISTS %s_%s BEFORE %s ON %s
				WHEN %s AND EXISTS (SELECT 1 FROM cell_move WHERE org_id = %s AND %s) %s BEGIN SELECT RAISE(%s); END`,
				p.name(verb),
				name,
				verb,
				p.table,
				p.ownSQLite(rowOf(verb), org),
				org,
				states,
				also,
				how,
			))
		}

		abort := "ABORT, '" + fenceText + "'"
		if p.table == "job" && verb == "UPDATE" {
			// A claim takes the jobs of others alone.
			refuse("job_claim", "AND NEW.attempts > OLD.attempts", "IGNORE")
			refuse(p.table, "AND NEW.attempts <= OLD.attempts", abort)
			continue
		}

		refuse(p.table, "", abort)
	}

	return statements
}

// ownSQLite is the condition that a row is the organisation's.
func (p fencePost) ownSQLite(row, org string) string {
	const exists = `EXISTS (SELECT 1 FROM %s WHERE id = %s AND org_id = %s)`
	at := row + p.column

	switch p.column {
	case "asset_id":
		return "(" + fmt.Sprintf(exists, "asset", at, org) + " OR " +
			fmt.Sprintf(exists, "former_asset", at, org) + ")"
	case "object_id":
		return fmt.Sprintf(exists, "adr_object", at, org)
	default:
		return at + " = " + org
	}
}

func unfenceSQLite(p fencePost) []string {
	var statements []string
	for _, verb := range verbs {
		for _, name := range []string{p.table, "job_claim"} {
			statements = append(
				statements,
				`DROP TRIGGER IF EXISTS `+p.name(verb)+`_`+name,
			)
		}
	}

	return statements
}
