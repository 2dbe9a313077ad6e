package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"flexd/internal/flex"
)

// Earlier puts the schema of an earlier version into a PostgreSQL database, in the place of
// all that is there, and has fill put rows into it.
func Earlier(ctx context.Context, url string, version int64, fill func(*sql.DB) error) error {
	db := &DB{}
	if err := db.openPostgres(ctx, url); err != nil {
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

// RowsPlaced are the tables of which it is said that few rows, or very many, are in them.
func RowsPlaced() []string { return append(slices.Clone(fewRows), manyRows...) }

// Exec runs a statement at once, ExecLater when the transaction ends, and ReadValue one for a value.
func Exec(ctx context.Context, all *All, query string, args ...any) error {
	_, err := all.exec(ctx, query, args...)
	return err
}

func ExecLater(ctx context.Context, all *All, query string, args ...any) error {
	return all.later(ctx, query, args...)
}

func ReadValue(ctx context.Context, all *All, to any, query string, args ...any) error {
	return all.row(ctx, query, args...).Scan(to)
}

// ScrubAtOnce is DB.Scrub that does not wait for others.
func ScrubAtOnce(ctx context.Context, db *DB) error {
	c, err := db.sql.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()

	if _, err := c.ExecContext(ctx, `PRAGMA busy_timeout = 0`); err != nil {
		return err
	}
	scrubbed := scrub(ctx, c)
	_, err = c.ExecContext(ctx, `PRAGMA busy_timeout = 10000`)

	return errors.Join(scrubbed, err)
}

// BeginErasure is what DB.Erase does before any reading is removed.
func BeginErasure(ctx context.Context, all *All, site flex.SiteID) error {
	if _, _, err := all.beginErasure(ctx, site); err != nil {
		return err
	}
	_, err := all.endSettlement(ctx, site)

	return err
}

// FoundBy are the statements by which what is stored of a site, or of one of its assets, is found, by table.
func FoundBy(ctx context.Context, all *All) (map[string][]string, error) {
	tables, err := all.columns(ctx)
	found := map[string][]string{}

	for table, columns := range tables {
		h, _ := siteRowsOf(table, columns)
		for _, where := range []string{h.bySite, h.byAsset, h.also} {
			if where != "" {
				found[table] = append(found[table], `SELECT * FROM `+table+` WHERE `+where)
			}
		}
	}

	return found, err
}

// jobBench is a kind of job for a benchmark alone.
const jobBench JobKind = "bench"

// QueueSessions queues a job for each session.
func QueueSessions(ctx context.Context, all *All, org flex.OrgID, sessions []flex.SessionID) error {
	jobs := make([]Job, len(sessions))
	for i, s := range sessions {
		jobs[i] = Job{Kind: jobBench, Org: org, Subject: s.Bytes(), Cause: "market"}
	}
	return all.queueJobs(ctx, all.now, jobs...)
}

// ClaimAndFinish claims jobs and takes them out of the queue, all with one statement each, which
// is the least that it takes. It returns how many.
func ClaimAndFinish(ctx context.Context, all *All, org flex.OrgID, limit int) (int, error) {
	jobs, err := all.claimJobs(ctx, jobBench, org, all.now, limit, time.Minute)
	if err != nil {
		return 0, err
	}

	subjects := make([]flex.SessionID, len(jobs))
	for i, j := range jobs {
		subjects[i] = flex.SessionID(j.Subject)
	}

	list, args := in([]any{string(jobBench), org.Bytes(), micros(all.now.Add(time.Minute))}, subjects)
	n, err := all.exec(ctx, `DELETE FROM job WHERE kind = $1 AND org_id = $2 AND due_at = $3 AND subject IN `+list, args...)

	return int(n), err
}

// TakeSessions takes the jobs of an organisation's sessions out of the queue, which is their claim and their end, and
// returns how many they were.
func TakeSessions(ctx context.Context, all *All, org flex.OrgID) (int, error) {
	taken, err := rows(ctx, all.conn, scalar[flex.SessionID], `DELETE FROM job WHERE (kind, org_id, subject) IN
		(SELECT kind, org_id, subject FROM job WHERE kind = $1 AND due_at <= $3 AND org_id = $2 ORDER BY due_at, subject LIMIT $4`+all.db.d.skipLocked+`)
		RETURNING subject`, string(jobBench), org.Bytes(), micros(all.now), 1000)

	return len(taken), err
}

// FillCarried gives an organisation rows in every table that goes with it. Every id of a row's is
// the same one, so that rows refer to each other as they must; nothing else of them makes sense.
func FillCarried(ctx context.Context, all *All, org flex.OrgID, rows []int) error {
	return fill(ctx, all, portableFormat, org, rows)
}

// FillMoved is FillCarried, for every table that goes to another cell.
func FillMoved(ctx context.Context, all *All, org flex.OrgID, rows []int) error {
	return fill(ctx, all, movedFormat, org, rows)
}

func fill(ctx context.Context, all *All, format string, org flex.OrgID, rows []int) error {
	tables, err := all.portableTables(ctx, format)
	if err != nil {
		return err
	}

	for _, t := range tables[1:] { // the organisation is there
		of := rows
		if key := t.key(); len(key) == 1 && key[0].name == "org_id" {
			of = rows[:1]
		}

		var batch [][]any
		for _, n := range of {
			batch = append(batch, t.row(org, n))
		}
		if err := all.takeRows(ctx, t, org, batch); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// row makes up the row of a number.
func (t portableTable) row(org flex.OrgID, n int) []any {
	id := flex.SiteID{0: byte(n), 15: byte(n)}
	from, prices := int64(n), strconv.Itoa(n)
	curve := nameCurve(from, prices)
	row := make([]any, len(t.columns))

	for i, c := range t.columns {
		switch {
		case c.name == "org_id":
			row[i] = org.Bytes()
		case c.name == "curve_id", t.name == "curve" && c.name == "id":
			row[i] = curve.Bytes()
		case t.name == "curve" && c.name == "from_at":
			row[i] = from
		case t.name == "curve" && c.name == "prices":
			row[i] = prices
		case c.name == "sealed":
			row[i] = fmt.Appendf(nil, "opened %d", n)

		case t.name == "reading" && c.name == "at":
			row[i] = int64(n) * week.Microseconds() // each in a table of its own
		case c.kind == ofBytes:
			row[i] = id.Bytes()
		case c.kind == ofText:
			row[i] = fmt.Sprintf("%s <%d> ü\n\"%s\"", c.name, n, org)

		case c.kind == ofFlag:
			row[i] = n%2 == 0
		default:
			row[i] = int64(n)*1000 + int64(i)
		}
	}
	return row
}

// TakeOrg is the part of an import that holds the rows against no law.
func TakeOrg(ctx context.Context, all *All, from io.Reader) error {
	_, err := all.takeOrg(ctx, portableFormat, from)
	return err
}

// QueuedWrites is how many writes wait for SQLite's writer.
func QueuedWrites(db *DB) int { return len(db.sqlite.writes) }

// Run runs a statement in the transaction.
func (all *All) Run(ctx context.Context, statement string) error {
	_, err := all.exec(ctx, statement)
	return err
}

// SyncMode is SQLite's synchronous of the connection that a transaction is on.
func SyncMode(ctx context.Context, tx *Tx) (mode int, err error) {
	err = tx.row(ctx, `PRAGMA synchronous`).Scan(&mode)
	return mode, err
}

// SyncGroup brings writes of one commit to the disk, as the writer does.
func SyncGroup(db *DB, ctxs ...context.Context) error {
	var group []*queuedWrite
	for _, ctx := range ctxs {
		group = append(group, &queuedWrite{ctx: ctx})
	}
	return db.syncFor(group)
}

// LoseLog has the store take something for its log that cannot be brought to the disk.
func LoseLog(db *DB, path string) { db.sqlite.wal = path }

// LogFile is the file that Sync brings to the disk.
func LogFile(db *DB) string { return db.sqlite.wal }

// StaysBehind reports whether a table's rows stay when their organisation goes to another flexd.
func StaysBehind(table string) bool { return stays[table] != "" }

// ExportMoved is what goes of an organisation to another cell.
func ExportMoved(ctx context.Context, all *All, org flex.OrgID, to io.Writer) error {
	_, err := all.exportOrg(ctx, org, movedFormat, to)
	return err
}

// WithoutLaws has no law be held against the records until the function that it returns is called.
func WithoutLaws() (again func()) {
	were := laws
	laws = nil
	return func() { laws = were }
}

// Moved are the tables that go to another cell, each with the condition by which rows are an
// organisation's, $1, and whether the fence keeps it.
func Moved() map[string]string {
	found := map[string]string{}
	for _, t := range movedTables() {
		if _, fenced := fenceColumn(t.name); fenced {
			found[t.name] = t.ownerCondition()
		}
	}
	return found
}

// SameValue is a statement that writes a row of a table as it is, where it is an organisation's.
func SameValue(table, of string) string {
	column, _ := fenceColumn(table)
	return `UPDATE ` + table + ` SET ` + column + ` = ` + column + ` WHERE ` + of
}

// VerifyEmpty holds each law against the records, as Verify does, and those too that are only of empty tables.
func (db *DB) VerifyEmpty(ctx context.Context) ([]string, error) {
	var findings []string
	err := db.ReadAll(ctx, func(all *All) error {
		for _, l := range laws {
			found, err := l.broken(ctx, all)
			if err != nil {
				return err
			}

			findings = append(findings, found...)
		}

		return nil
	})

	return findings, err
}

// FreeLate gives up a key once the database answers again, as the watch does.
func (db *DB) FreeLate(ctx context.Context, cl *KeyClaim) { db.freeKeys(ctx, []*KeyClaim{cl}) }

// Answering reports whether this process counts a key among those of the requests that it answers.
func (db *DB) Answering(org flex.OrgID, key string) bool {
	db.inFlight.mu.Lock()
	defer db.inFlight.mu.Unlock()

	return db.inFlight.all[inFlight{org, key}]
}

// StoreAssetKeys does again what the migration of that name did.
func StoreAssetKeys(ctx context.Context, db *DB) error {
	tx, err := db.sql.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()

	if err := storeAssetKeys(ctx, tx); err != nil {
		return err
	}

	return tx.Commit()
}
