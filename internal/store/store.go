package store

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"flexd/internal/flex"
	"flexd/internal/keyring"
	"flexd/internal/trace"
)

// DB is an open store.
type DB struct {
	// Environment says which of the service's two environments the store serves.
	Environment flex.Environment

	keys       *keyring.Ring  // nil: nothing can be sealed or opened
	persons    *keyring.Texts // nil: texts about persons are stored in plain text
	slow       *slowLog       // nil: slow statements are not logged
	log        *slog.Logger
	path       string // of SQLite's file
	disposable bool
	pauseMax   time.Duration    // how long a transaction on PostgreSQL may send nothing
	now        func() time.Time // the process's own clock
	random     io.Reader
	mu         sync.Mutex // guards random and lastID
	lastID     [16]byte

	d      dialect
	sql    *sql.DB
	sqlite *sqliteConns // the writer and the readers; nil on PostgreSQL
	watch  *watch       // whether PostgreSQL answers; nil on SQLite
	closed sync.Once

	followed bool         // whether the store follows PostgreSQL's clock
	ahead    atomic.Int64 // nanoseconds added to now
	off      atomic.Int64 // nanoseconds by which now was ahead when it was last compared

	wakes      wakes
	inFlight   inFlights // requests under idempotency keys
	owners     owners
	noted      noted
	registered registered
	parts      parts
	troubles   troubles
}

// Options are the settings of Open; the zero value is right for a service.
type Options struct {
	Environment flex.Environment // Production if empty
	Now         func() time.Time // nil means time.Now
	// DatabaseClock makes the store follow PostgreSQL's clock, where Now is not a test's but a
	// machine's, which may be wrong.
	DatabaseClock bool
	// nil means crypto/rand; a seeded one makes ids repeat
	Random io.Reader
	// keys that seal secrets; without them, whatever needs a secret fails
	Keys   *keyring.Ring
	Schema SchemaMode // what may be done to the schema
	// Disposable is a database that is deleted when it is closed: on SQLite nothing is brought to the disk,
	// so that a power cut loses it. The death of the process does not.
	Disposable bool
	// PauseMax is how long, on PostgreSQL, a transaction that writes may wait for its next statement;
	// 0 is DefaultPauseMax.
	PauseMax time.Duration

	// statements that take longer are logged, with their plan; never if 0
	SlowAfter time.Duration
	Log       *slog.Logger // nil means the default logger

	halfSealed bool // open a store in which the sealing of persons' texts was begun
}

// CheckURL says what is wrong with the url of a store, by its scheme alone: the rest may hold
// a password. It returns an Invalid failure.
func CheckURL(url string) error {
	scheme, _, marked := strings.Cut(url, ":")
	if marked && slices.Contains(
		[]string{"sqlite", "postgres", "postgresql"},
		scheme,
	) {
		return nil
	}

	if marked {
		scheme += ":…"
	}

	return flex.Fail(
		flex.Invalid,
		"a database is sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME, not %q",
		scheme,
	)
}

// connect makes the connections to the database at the url.
func connect(ctx context.Context, url string, o Options) (*DB, error) {
	db := &DB{
		Environment: o.Environment,
		keys:        o.Keys,
		now:         o.Now,
		random:      o.Random,
		log:         o.Log,
		disposable:  o.Disposable,
		pauseMax:    cmp.Or(o.PauseMax, DefaultPauseMax),
	}
	if db.log == nil {
		db.log = slog.Default()
	}

	if db.Environment == "" {
		db.Environment = flex.Production
	}

	if db.now == nil {
		db.now = time.Now
	}

	if db.random == nil {
		db.random = crand.Reader
	}

	db.slow = newSlowLog(db, o)

	var err error

	scheme, rest, _ := strings.Cut(url, ":")
	switch scheme {
	case "sqlite":
		err = db.openSQLite(rest)
	case "postgres", "postgresql":
		db.followed = o.DatabaseClock
		err = db.openPostgres(ctx, url)
	default:
		err = CheckURL(url)
	}

	if err != nil {
		if db.sql != nil {
			db.Close()
		}

		return nil, fmt.Errorf("open the database: %w", err)
	}

	return db, nil
}

// Open opens the store at url and returns it. What is done to its schema the options say; a
// schema that this program cannot work with is a Conflict. The url is "sqlite:PATH" or
// "postgres://…".
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	db, err := connect(ctx, url, o)
	if err != nil {
		return nil, err
	}

	if err := db.compareClocks(ctx); err != nil {
		db.Close()
		return nil, err
	}

	if err := db.prepareSchema(ctx, o.Schema); err != nil {
		db.Close()
		return nil, fmt.Errorf("open the database: %w", err)
	}

	if db.d.groupCommit {
		if err := db.startSQLite(ctx); err != nil {
			db.Close()
			return nil, err
		}
	}

	if err := db.checkKeys(ctx); err != nil {
		db.Close()
		return nil, err
	}

	if err := db.loadPersonKey(ctx, o.halfSealed); err != nil {
		db.Close()
		return nil, err
	}

	if err := db.fillAccountHashes(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf(
			"fix the accounts of payments under way: %w",
			err,
		)
	}

	return db, nil
}

// Close waits for the writes under way and closes the store.
func (db *DB) Close() error {
	db.closed.Do(func() {
		if db.sqlite != nil {
			db.sqlite.close()
		}
	})

	return db.sql.Close()
}

// Ping reports whether the store answers.
func (db *DB) Ping(ctx context.Context) error {
	return db.ReadAll(ctx, func(all *All) error {
		var one int
		return all.row(ctx, `SELECT 1`).Scan(&one)
	})
}

// Engine returns "sqlite" or "postgres".
func (db *DB) Engine() string { return db.d.name }

// Tx is a transaction of one organisation. All its queries are bound to the organisation, and all
// records that it writes have its one instant.
type Tx struct {
	conn
	org     flex.OrgID
	now     time.Time
	touched bool // the register's version was changed

	books  *openBooks // what posting needs to know; nil until it was read
	agenda agenda     // what is due, as AskDue found it

	readCache map[cacheKey]any // of a transaction that only reads: see readOnce
}

// Now returns the instant of this transaction by the organisation's clock.
func (tx *Tx) Now() time.Time { return tx.now }

// All is a transaction over every organisation, for background jobs, console and command line.
type All struct {
	conn
	now time.Time
}

// Now returns the instant of this transaction by the true clock.
func (all *All) Now() time.Time { return all.now }

// For returns the same transaction bound to one organisation, with its clock.
func (all *All) For(ctx context.Context, org flex.OrgID) (*Tx, error) {
	return all.conn.bind(ctx, org, all.now)
}

// Write runs fn in a transaction of the organisation and commits it, or rolls it back if fn returns
// an error. On PostgreSQL fn may run again after a serialisation failure, so it must have no effect
// outside the transaction.
func (db *DB) Write(
	ctx context.Context,
	org flex.OrgID,
	fn func(*Tx) error,
) error {
	return db.write(ctx, func(c conn, now time.Time) error {
		tx, err := c.bind(ctx, org, now)
		if err != nil {
			return err
		}
		return fn(tx)
	})
}

// WriteAll is Write without an organisation.
func (db *DB) WriteAll(ctx context.Context, fn func(*All) error) error {
	return db.write(ctx, func(c conn, now time.Time) error {
		return fn(&All{c, now})
	})
}

// Read runs fn on one snapshot of the store, bound to the organisation.
func (db *DB) Read(
	ctx context.Context,
	org flex.OrgID,
	fn func(*Tx) error,
) error {
	return db.read(ctx, func(c conn, now time.Time) error {
		tx, err := c.bind(ctx, org, now)
		if err != nil {
			return err
		}

		tx.readCache = map[cacheKey]any{}

		return fn(tx)
	})
}

// ReadAll is Read without an organisation.
func (db *DB) ReadAll(ctx context.Context, fn func(*All) error) error {
	return db.read(ctx, func(c conn, now time.Time) error {
		return fn(&All{c, now})
	})
}

func (db *DB) read(
	ctx context.Context,
	fn func(conn, time.Time) error,
) (err error) {
	ctx, span := trace.Within(ctx, "read")
	defer func() { span.End(err) }()

	if db.sqlite != nil {
		return db.readSQLite(ctx, fn)
	}

	t, err := db.beginRead(ctx)
	if err != nil {
		return fmt.Errorf("begin read: %w", db.unavailable(err))
	}

	defer t.Rollback()

	return db.unavailable(fn(conn{db: db, run: t}, db.Now()))
}

// single is WriteAll for a single statement, which commits by itself: on PostgreSQL it takes one round
// trip. Other statements of fn are not in its transaction.
func (db *DB) single(ctx context.Context, fn func(*All) error) error {
	if db.sqlite != nil {
		return db.WriteAll(ctx, fn)
	}
	return db.unavailable(fn(&All{conn{db: db, run: db.sql}, db.Now()}))
}

// readSingle runs fn without a transaction, for a single query: on PostgreSQL that saves the
// round trips of its beginning and its end.
func (db *DB) readSingle(ctx context.Context, fn func(conn) error) error {
	if db.sqlite != nil {
		return db.readSQLite(ctx, func(c conn, _ time.Time) error {
			return fn(c)
		})
	}

	return db.unavailable(fn(conn{db: db, run: db.sql}))
}

func (db *DB) write(
	ctx context.Context,
	fn func(conn, time.Time) error,
) (err error) {
	ctx, span := trace.Within(ctx, "write")
	defer func() { span.End(err) }()

	run, committed := counted(ctx, fn)

	err = db.commit(ctx, run)
	if errors.Is(err, errUndone) {
		return nil
	}
	if err == nil {
		committed()
	}

	return err
}

func (db *DB) commit(
	ctx context.Context,
	fn func(conn, time.Time) error,
) error {
	if db.sqlite != nil {
		return db.enqueue(ctx, fn)
	}

	for try := 0; ; try++ {
		err := db.writeOnce(ctx, fn)
		if err == nil || try == retryMax || !db.d.retryable(err) {
			return db.unavailable(err)
		}

		db.log.DebugContext(ctx, "a write lost to another and is run again", "error", err)
	}
}

// retryMax is how often a transaction that failed because of another is run again at most.
const retryMax = 8

func (db *DB) writeOnce(
	ctx context.Context,
	fn func(conn, time.Time) error,
) error {
	l, err := db.begin(ctx)
	if err != nil {
		return fmt.Errorf("begin write: %w", err)
	}

	defer l.Close()
	committed := false
	defer func() {
		if !committed { // a connection that cannot roll back is not used again: its driver sees to that
			_, _ = l.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()

	var wake []Topic

	p := &pipe{link: l}
	err = fn(conn{
		db:   db,
		run:  l,
		pipe: p,
		wake: &wake,
	}, db.Now())

	if err != nil {
		return err
	}

	if err := p.commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}

	committed = true
	db.wakes.signal(wake)

	return nil
}

// beginMax is how many connections are tried: after a restart of the server those that were
// open are dead.
const beginMax = 3

// DefaultPauseMax is how long a transaction that writes may wait for its next statement before PostgreSQL
// ends it: a process that was cut off, or stopped, holds its locks for no longer.
const DefaultPauseMax = 5 * time.Second

// PlanPause is how long a transaction that plans a fleet may wait for its next statement: 100,000 cars
// take some 4 s on two cores.
const PlanPause = time.Minute

// MayPause lets the transaction wait for its next statement for longer than others, for what plans a fleet
// or reads a file meanwhile; 0 is for ever.
func (c conn) MayPause(ctx context.Context, most time.Duration) error {
	if c.db.sqlite != nil {
		return nil
	}

	_, err := c.exec(ctx, fmt.Sprintf(
		`SET LOCAL idle_in_transaction_session_timeout = %d`,
		most.Milliseconds(),
	))

	return err
}

// begin opens a transaction on a connection of its own.
func (db *DB) begin(ctx context.Context) (*sql.Conn, error) {
	begin := fmt.Sprintf(
		"BEGIN; SET LOCAL idle_in_transaction_session_timeout = %d",
		db.pauseMax.Milliseconds(),
	)
	if db.Shared() {
		begin += "; " + sharedSettings
	}

	for try := 1; ; try++ {
		l, err := db.sql.Conn(ctx)
		if err != nil {
			return nil, err
		}

		_, err = l.ExecContext(ctx, begin)
		if err == nil {
			return l, nil
		}

		l.Close()

		// A pooler has let it wait for as long as it lets anybody.
		if try == beginMax || ctx.Err() != nil || poolerFull(err) {
			return nil, err
		}
	}
}
