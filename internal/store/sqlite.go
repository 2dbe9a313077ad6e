package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"flexd/internal/flex"
)

var sqliteDialect = dialect{
	name: "sqlite",
	types: strings.NewReplacer(
		" UUID",
		" BLOB",
		" BYTES",
		" BLOB",
		" CLUSTERED",
		" WITHOUT ROWID",
	),
	groupCommit: true,
	statistics:  true,

	tables:       `SELECT name, 1 FROM sqlite_master WHERE type = 'table'`,
	versionTable: `SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'goose_db_version')`,
	catalogue:    `SELECT m.name, p.name, p.type, p.pk - 1 FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`,
	idHex:        "hex(%s)",
	idSet:        "SELECT unhex(value) FROM json_each(%s)",
	maxParams:    32766,
	explain:      "EXPLAIN QUERY PLAN ",
	retryable: func(err error) bool {
		return sqliteCode(err)&0xff == sqlite3.SQLITE_BUSY
	},
	unique: func(err error) bool {
		c := sqliteCode(err)
		return c == sqlite3.SQLITE_CONSTRAINT_UNIQUE ||
			c == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	},
	fence:       fenceSQLite,
	unfence:     unfenceSQLite,
	putReadings: putReadingsValues,
	addRows: func(ctx context.Context, c conn, table string, columns []string, args []any) error {
		return c.addValues(ctx, table, columns, args)
	},
	down: func(err error) bool {
		switch sqliteCode(err) & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN:
			return true
		}
		return false
	},
}

// putReadingsValues writes readings as rows of values. The instant at which they are known is
// passed once in each statement.
func putReadingsValues(
	ctx context.Context,
	c conn,
	rs []flex.Reading,
	known int64,
) error {
	args := make([]any, 0, 5*min(len(rs), readingsChunk)+1)
	for len(rs) > 0 {
		n := min(len(rs), readingsChunk)
		args = append(args[:0], known)

		for _, r := range rs[:n] {
			at, label, seconds, value := readingArgs(r)
			args = append(args, at, r.AssetID.Bytes(), label, seconds, value)
		}

		if _, err := c.exec(ctx, readingsText(n), args...); err != nil {
			return err
		}

		rs = rs[n:]
	}

	return nil
}

// readingsChunk is the number of readings in one statement.
const readingsChunk = 500

var wholeChunk = sync.OnceValue(func() string {
	return makeReadingsText(readingsChunk)
})

func readingsText(n int) string {
	if n == readingsChunk {
		return wholeChunk()
	}
	return makeReadingsText(n)
}

func makeReadingsText(n int) string {
	var b strings.Builder
	b.WriteString("INSERT INTO reading (" + readingColumns + ") VALUES ")

	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		p := 5*i + 2
		fmt.Fprintf(&b, "($%d,$%d,$%d,$%d,$%d,$1)", p, p+1, p+2, p+3, p+4)
	}

	b.WriteString(" " + readingUpsert)

	return b.String()
}

func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// readersMax is the number of connections for reading, in addition to SQLite's one writer.
const readersMax = 4

// SQLitePragmas are the settings of every connection to SQLite. With anything less than
// synchronous(FULL) a power cut loses acknowledged commits, as the crash tests show.
var SQLitePragmas = []string{
	"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "secure_delete(1)",
	"cache_size(-65536)", "temp_store(MEMORY)", "wal_autocheckpoint(8000)",
}

func (db *DB) openSQLite(path string) error {
	db.d = sqliteDialect
	q := url.Values{"_pragma": slices.Clone(SQLitePragmas)}
	if db.disposable {
		q.Add("_pragma", "synchronous(OFF)") // the last one counts
	}

	path = strings.TrimPrefix(path, "//")
	if err := ownerOnly(path); err != nil {
		return err
	}

	// SQLite has its write-ahead log in the folder of the file that a link leads to.
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("find the database's file: %w", err)
	}

	db.path = path
	file := url.URL{Path: path} // a # or ? of the path is its own
	db.sql, err = sql.Open("sqlite", "file:"+file.EscapedPath()+"?"+q.Encode())

	return err
}

// ownerOnly makes the file, empty, if there is none yet, readable by its owner alone: SQLite
// itself would let everybody read it, and it gives its journals the same mode.
func ownerOnly(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}

	return f.Close()
}

// sqliteConns are SQLite's one writer, which takes the queued writes, and its readers.
type sqliteConns struct {
	writer  *sqliteConn
	lazy    bool // the writer's commits are not synced to the disk
	writes  chan *queuedWrite
	done    chan struct{} // closed when the writer has stopped
	sending sync.RWMutex  // locked for reading while a write is queued, for writing while closed is set
	closed  bool          // no write is queued any more
	readers chan *sqliteConn
	// the reader that was used last, if it is free: it is taken first, because its cache is
	// still valid unless something was committed since
	warm chan *sqliteConn
	wal  string // path of the write-ahead log
}

func (db *DB) startSQLite(ctx context.Context) error {
	s := &sqliteConns{
		writes:  make(chan *queuedWrite, groupMax),
		done:    make(chan struct{}),
		readers: make(chan *sqliteConn, readersMax),
		warm:    make(chan *sqliteConn, 1),
		wal:     db.path + "-wal",
	}

	s.writer = &sqliteConn{}
	if err := s.writer.connect(ctx, db.sql); err != nil {
		return err
	}

	for range readersMax {
		s.readers <- &sqliteConn{}
	}

	db.sqlite = s
	go db.commitGroups()

	return nil
}

func (s *sqliteConns) close() {
	s.sending.Lock()
	s.closed = true
	close(s.writes)
	s.sending.Unlock()

	<-s.done
	s.writer.close()
	for range readersMax {
		select {
		case l := <-s.warm:
			l.close()
		case l := <-s.readers:
			l.close()
		}
	}
	close(s.readers)
}

// send queues a write for the writer. It fails once the store is closed.
func (s *sqliteConns) send(ctx context.Context, q *queuedWrite) error {
	s.sending.RLock()
	defer s.sending.RUnlock()

	if s.closed {
		return errClosed
	}

	select {
	case s.writes <- q:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reader returns a free reader; nil if the store is closed. The caller returns it with free.
func (s *sqliteConns) reader(ctx context.Context) (*sqliteConn, error) {
	select {
	case l := <-s.warm:
		return l, nil
	default:
	}

	select {
	case l := <-s.warm:
		return l, nil
	case l := <-s.readers:
		return l, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// free makes a reader available again.
func (s *sqliteConns) free(l *sqliteConn) {
	select {
	case s.warm <- l:
	default:
		s.readers <- l
	}
}

func (db *DB) readSQLite(
	ctx context.Context,
	fn func(conn, time.Time) error,
) error {
	l, err := db.sqlite.reader(ctx)
	if err != nil {
		return err
	}
	if l == nil {
		return errClosed
	}

	defer db.sqlite.free(l)

	if err := l.connect(ctx, db.sql); err != nil {
		return db.unavailable(err)
	}
	if _, err := l.ExecContext(ctx, "BEGIN DEFERRED"); err != nil {
		return fmt.Errorf("begin read: %w", db.unavailable(err))
	}

	defer func() { _, _ = l.ExecContext(ctx, "ROLLBACK") }()

	return db.unavailable(fn(conn{db: db, run: l}, db.Now()))
}

// sqliteConn is a connection to SQLite with the statements prepared on it. One goroutine uses
// it at a time. A reader is connected when it is first used: connecting reads the whole
// schema, and a store that is opened for one command or a test rarely needs more than one
// reader.
type sqliteConn struct {
	c     *sql.Conn // nil until it is connected
	stmts map[string]*statement
}

// connect opens the connection, if it is not open yet.
func (l *sqliteConn) connect(ctx context.Context, from *sql.DB) error {
	if l.c != nil {
		return nil
	}

	c, err := from.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to SQLite: %w", err)
	}

	l.c, l.stmts = c, map[string]*statement{}

	return nil
}

// statement is a query prepared with positional parameters. To SQLite $1 is a name, which the
// driver looks up in a list of names: in a statement with many parameters that costs more than
// running it.
type statement struct {
	*sql.Stmt
	text  string
	order []int // of the arguments, by their index; nil if they are used in the given order
}

// statementsMax is how many prepared statements a connection has at most; others are prepared
// for one use.
const statementsMax = 1000

// stmt returns the statement of the query, prepared unless there are statementsMax already.
func (l *sqliteConn) stmt(query string) (*statement, error) {
	if st := l.stmts[query]; st != nil {
		return st, nil
	}

	st := &statement{}
	st.text, st.order = nameless(query)

	if len(l.stmts) >= statementsMax {
		return st, nil
	}

	var err error
	st.Stmt, err = l.c.PrepareContext(context.Background(), st.text)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}

	l.stmts[query] = st

	return st, nil
}

// nameless replaces $1, $2 and so on by ?, and returns the order of the arguments, or nil if
// it is the given one. A LIMIT or OFFSET that is a bare parameter would have SQLite plan the
// statement again at every use, as the number may change the plan. Adding 0 to it avoids that.
func nameless(query string) (string, []int) {
	var b strings.Builder
	plain := true

	var order []int
	for i := 0; i < len(query); i++ {
		n := 0

		end := i + 1
		for query[i] == '$' && end < len(query) && '0' <= query[end] && query[end] <= '9' {
			n = 10*n + int(query[end]-'0')
			end++
		}

		if n == 0 {
			b.WriteByte(query[i])
			continue
		}

		b.WriteByte('?')

		before := query[:i]
		if strings.HasSuffix(before, "LIMIT ") ||
			strings.HasSuffix(before, "OFFSET ") {
			b.WriteString(" + 0")
		}

		order = append(order, n-1)
		plain = plain && n == len(order)
		i = end - 1
	}

	if plain {
		return b.String(), nil
	}

	return b.String(), order
}

// ordered returns the arguments in the statement's order.
func (st *statement) ordered(args []any) []any {
	if st.order == nil {
		return args
	}

	out := make([]any, len(st.order))
	for i, n := range st.order {
		if n >= len(args) {
			return args // too few: the driver returns the error
		}
		out[i] = args[n]
	}

	return out
}

// A cancelled context does not interrupt a statement: each is short, and watching the context would
// cost a goroutine for each.

// ExecContext runs a statement without rows.
func (l *sqliteConn) ExecContext(
	_ context.Context,
	query string,
	args ...any,
) (sql.Result, error) {
	st, err := l.stmt(query)
	if err != nil {
		return nil, err
	}
	if st.Stmt == nil {
		return l.c.ExecContext(context.Background(), st.text, st.ordered(args)...)
	}

	return st.ExecContext(context.Background(), st.ordered(args)...)
}

// QueryContext runs a query.
func (l *sqliteConn) QueryContext(
	_ context.Context,
	query string,
	args ...any,
) (*sql.Rows, error) {
	st, err := l.stmt(query)
	if err != nil {
		return nil, err
	}
	if st.Stmt == nil {
		return l.c.QueryContext(context.Background(), st.text, st.ordered(args)...)
	}

	return st.QueryContext(context.Background(), st.ordered(args)...)
}

// QueryRowContext runs a query for one row.
func (l *sqliteConn) QueryRowContext(
	_ context.Context,
	query string,
	args ...any,
) *sql.Row {
	st, err := l.stmt(query)
	if err != nil { // the query fails with the same error
		return l.c.QueryRowContext(context.Background(), query, args...)
	}
	if st.Stmt == nil {
		return l.c.QueryRowContext(
			context.Background(),
			st.text,
			st.ordered(args)...,
		)
	}

	return st.QueryRowContext(context.Background(), st.ordered(args)...)
}

func (l *sqliteConn) close() {
	if l.c == nil {
		return
	}

	for _, st := range l.stmts {
		st.Close()
	}
	l.c.Close()
}

// groupMax is the number of writes that share one commit at most.
const groupMax = 256

// groupTime is how long a group collects writes before it commits, so that many writes do not
// delay the answers to the first.
const groupTime = 20 * time.Millisecond

// queuedWrite is a write that waits for the shared commit.
type queuedWrite struct {
	ctx  context.Context
	fn   func(conn, time.Time) error
	wake []Topic
	err  error
	done chan struct{}
}

var errClosed = errors.New("the store is closed")

// enqueue has the writer run a function, and returns when it is committed.
func (db *DB) enqueue(
	ctx context.Context,
	fn func(conn, time.Time) error,
) error {
	q := &queuedWrite{
		ctx:  ctx,
		fn:   fn,
		done: make(chan struct{}),
	}

	if err := db.sqlite.send(ctx, q); err != nil {
		return err
	}

	<-q.done

	return db.unavailable(q.err)
}

// commitGroups is SQLite's one writer, a loop until the store is closed. It takes the writes
// that are waiting, runs each in a savepoint of its own, and commits them together: one sync
// serves them all.
func (db *DB) commitGroups() {
	defer close(db.sqlite.done)

	for first := range db.sqlite.writes {
		group := []*queuedWrite{first}
		err := db.runGroup(&group)

		for _, q := range group {
			if q.err == nil {
				q.err = err
			}

			if q.err == nil {
				db.wakes.signal(q.wake)
			}

			close(q.done)
		}
	}
}

// runGroup runs the first write of a group and those that are queued meanwhile, and commits
// them. The error that it returns is that of every write in the group.
func (db *DB) runGroup(group *[]*queuedWrite) error {
	ctx := context.Background()

	w, committed := db.sqlite.writer, false
	if err := db.setSync(ctx, !unsynced((*group)[0].ctx)); err != nil {
		return err
	}
	if _, err := w.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin write: %w", err)
	}

	defer func() {
		if !committed {
			_, _ = w.ExecContext(ctx, "ROLLBACK")
		}
	}()

	start, live := time.Now(), 0
	for next := (*group)[0]; next != nil; {
		if err := db.runWrite(ctx, next, live == 0); err != nil {
			return err
		}

		if next.err == nil {
			live++
		}

		next = nil
		if len(*group) < groupMax && time.Since(start) < groupTime {
			select {
			case q, ok := <-db.sqlite.writes:
				if ok {
					next = q
					*group = append(*group, q)
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

	return db.syncFor(*group)
}

// runWrite runs one write in a savepoint. If the write fails, its error is stored in it. An
// error that runWrite returns means that the whole group is lost. The first write of a group
// needs no savepoint: if it fails, the group's transaction begins again.
func (db *DB) runWrite(
	ctx context.Context,
	q *queuedWrite,
	first bool,
) error {
	c := conn{
		db:   db,
		run:  db.sqlite.writer,
		wake: &q.wake,
	}

	if !first {
		if _, err := c.exec(ctx, "SAVEPOINT write"); err != nil {
			return fmt.Errorf("savepoint: %w", err)
		}
	}

	q.err = func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf(
					"panic in a transaction: %v\n%s",
					p,
					debug.Stack(),
				)
			}
		}()

		if err := q.ctx.Err(); err != nil {
			return err
		}

		return q.fn(c, db.Now())
	}()

	if first {
		return c.endFirst(ctx, q.err != nil)
	}

	if q.err != nil {
		_, err := c.exec(ctx, "ROLLBACK TO write")

		// On a full or failing disk SQLite has rolled back the whole transaction, with the writes
		// before: they fail for that cause.
		if err != nil && sqliteTrouble(q.err) != "" {
			return fmt.Errorf("roll back: %w", errors.Join(q.err, err))
		}
		if err != nil {
			return fmt.Errorf("roll back: %w", err)
		}
	}

	if _, err := c.exec(ctx, "RELEASE write"); err != nil {
		return fmt.Errorf("release: %w", err)
	}

	return nil
}

// endFirst begins the group's transaction again, if its first write failed.
func (c conn) endFirst(ctx context.Context, failed bool) error {
	if !failed {
		return nil
	}

	if _, err := c.exec(ctx, "ROLLBACK"); err != nil {
		return fmt.Errorf("roll back: %w", err)
	}
	if _, err := c.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin again: %w", err)
	}

	return nil
}
