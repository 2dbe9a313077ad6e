package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

var sqliteDialect = dialect{
	name:        "sqlite",
	types:       strings.NewReplacer(" UUID", " BLOB", " BYTES", " BLOB", " CLUSTERED", " WITHOUT ROWID"),
	groupCommit: true,
	maxParams:   32766,
	retryable:   func(err error) bool { return sqliteCode(err)&0xff == sqlite3.SQLITE_BUSY },
	unique: func(err error) bool {
		c := sqliteCode(err)
		return c == sqlite3.SQLITE_CONSTRAINT_UNIQUE || c == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	},
	down: func(err error) bool {
		switch sqliteCode(err) & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN:
			return true
		}
		return false
	},
}

func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// readersMax is the number of connections that read beside SQLite's one writer.
const readersMax = 4

func (db *DB) openSQLite(path string) (err error) {
	db.d = sqliteDialect
	q := url.Values{"_pragma": {
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		"cache_size(-65536)", "temp_store(MEMORY)",
	}}
	db.sql, err = sql.Open("sqlite", "file:"+strings.TrimPrefix(path, "//")+"?"+q.Encode())
	return err
}

// sqliteConns are SQLite's one writer, fed by jobs, and its readers.
type sqliteConns struct {
	writer  *link
	jobs    chan *job
	done    chan struct{} // closed when the writer has stopped
	readers chan *link
}

func (db *DB) startSQLite(ctx context.Context) error {
	s := &sqliteConns{jobs: make(chan *job, groupMax), done: make(chan struct{}), readers: make(chan *link, readersMax)}
	for i := range readersMax + 1 {
		c, err := db.sql.Conn(ctx)
		if err != nil {
			return fmt.Errorf("connect to SQLite: %w", err)
		}
		l := &link{c, map[string]*sql.Stmt{}}
		if i == 0 {
			s.writer = l
		} else {
			s.readers <- l
		}
	}
	db.sqlite = s
	go db.commitGroups()
	return nil
}

func (s *sqliteConns) close() {
	close(s.jobs)
	<-s.done
	s.writer.close()
	for range readersMax {
		(<-s.readers).close()
	}
}

func (db *DB) readSQLite(ctx context.Context, fn func(conn, time.Time) error) error {
	var l *link
	select {
	case l = <-db.sqlite.readers:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { db.sqlite.readers <- l }()
	if _, err := l.ExecContext(ctx, "BEGIN DEFERRED"); err != nil {
		return fmt.Errorf("begin read: %w", unavailable(err))
	}
	defer l.ExecContext(ctx, "ROLLBACK")
	return unavailable(fn(conn{db: db, run: l}, db.Now()))
}

// link is a connection to SQLite with the statements prepared on it. One goroutine uses it
// at a time.
type link struct {
	c     *sql.Conn
	stmts map[string]*sql.Stmt
}

// statementsMax bounds the statements kept; beyond it one is prepared for its one use.
const statementsMax = 1000

func (l *link) stmt(query string) (*sql.Stmt, error) {
	if st := l.stmts[query]; st != nil || len(l.stmts) >= statementsMax {
		return st, nil
	}
	st, err := l.c.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}
	l.stmts[query] = st
	return st, nil
}

// A cancelled context does not interrupt a statement: each is short, and watching for it
// would cost a goroutine a statement.

// ExecContext runs a statement without rows.
func (l *link) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	st, err := l.stmt(query)
	if err != nil {
		return nil, err
	}
	if st == nil {
		return l.c.ExecContext(context.Background(), query, args...)
	}
	return st.ExecContext(context.Background(), args...)
}

// QueryContext runs a query.
func (l *link) QueryContext(_ context.Context, query string, args ...any) (*sql.Rows, error) {
	st, err := l.stmt(query)
	if err != nil {
		return nil, err
	}
	if st == nil {
		return l.c.QueryContext(context.Background(), query, args...)
	}
	return st.QueryContext(context.Background(), args...)
}

// QueryRowContext runs a query for one row.
func (l *link) QueryRowContext(_ context.Context, query string, args ...any) *sql.Row {
	st, err := l.stmt(query)
	if err != nil || st == nil {
		return l.c.QueryRowContext(context.Background(), query, args...) // meets the same error
	}
	return st.QueryRowContext(context.Background(), args...)
}

func (l *link) close() {
	for _, st := range l.stmts {
		st.Close()
	}
	l.c.Close()
}

// groupMax is the number of writes that share one commit at most.
const groupMax = 256

// groupTime is how long a group may run before it commits, so that a long write does not
// hold the others' answers.
const groupTime = 20 * time.Millisecond

// job is a write that waits for the shared commit.
type job struct {
	ctx  context.Context
	fn   func(conn, time.Time) error
	wake []Topic
	err  error
	done chan struct{}
}

var errClosed = errors.New("the store is closed")

func (db *DB) enqueue(ctx context.Context, fn func(conn, time.Time) error) (err error) {
	j := &job{ctx: ctx, fn: fn, done: make(chan struct{})}
	defer func() {
		if recover() != nil { // the channel was closed under a late writer
			err = errClosed
		}
	}()
	select {
	case db.sqlite.jobs <- j:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-j.done
	return unavailable(j.err)
}

// commitGroups is SQLite's one writer. Each round it takes the writes that are waiting,
// runs each in a savepoint of its own, and commits them together: one sync serves them all.
func (db *DB) commitGroups() {
	defer close(db.sqlite.done)
	for first := range db.sqlite.jobs {
		group := []*job{first}
		err := db.runGroup(&group)
		for _, j := range group {
			if j.err == nil {
				j.err = err
			}
			if j.err == nil {
				db.wakes.signal(j.wake)
			}
			close(j.done)
		}
	}
}

func (db *DB) runGroup(group *[]*job) error {
	ctx := context.Background()
	w, committed := db.sqlite.writer, false
	if _, err := w.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin write: %w", err)
	}
	defer func() {
		if !committed {
			w.ExecContext(ctx, "ROLLBACK")
		}
	}()
	start, live := time.Now(), 0
	for next := (*group)[0]; next != nil; {
		if err := db.runJob(ctx, next); err != nil {
			return err
		}
		if next.err == nil {
			live++
		}
		next = nil
		if len(*group) < groupMax && time.Since(start) < groupTime {
			select {
			case j, ok := <-db.sqlite.jobs:
				if ok {
					next = j
					*group = append(*group, j)
				}
			default:
			}
		}
	}
	if live == 0 {
		return nil
	}
	if _, err := w.ExecContext(ctx, "COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	committed = true
	return nil
}

// runJob runs one write in a savepoint. Its own failure is the job's; an error returned
// means that the whole group is lost.
func (db *DB) runJob(ctx context.Context, j *job) error {
	c := conn{db: db, run: db.sqlite.writer, wake: &j.wake}
	if _, err := c.exec(ctx, "SAVEPOINT job"); err != nil {
		return fmt.Errorf("savepoint: %w", err)
	}
	j.err = func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic in a transaction: %v", p)
			}
		}()
		if err := j.ctx.Err(); err != nil {
			return err
		}
		return j.fn(c, db.Now())
	}()
	if j.err != nil {
		if _, err := c.exec(ctx, "ROLLBACK TO job"); err != nil {
			return fmt.Errorf("roll back: %w", err)
		}
	}
	if _, err := c.exec(ctx, "RELEASE job"); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}
