package storetest

import (
	"cmp"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/keyring"
	"flexd/internal/store"
)

// Env names the environment variable that holds the URL of a PostgreSQL server in which
// tests may make databases.
const Env = "FLEXD_TEST_POSTGRES"

// Each runs the test on a fresh sandbox store of each engine. Without a PostgreSQL server
// its half is skipped, or failed when FLEXD_TEST_STRICT is set, as it is in CI.
func Each(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	EachURL(t, func(t *testing.T, url string) {
		test(t, Open(t, url, store.Options{Environment: flex.Sandbox}))
	})
}

// EachURL is Each for tests that open the store themselves.
func EachURL(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, Postgres(t)) })
}

// EachBench runs a benchmark on both engines.
func EachBench(b *testing.B, bench func(b *testing.B, url string)) {
	b.Helper()
	b.Run("sqlite", func(b *testing.B) { bench(b, SQLite(b)) })
	b.Run("postgres", func(b *testing.B) { bench(b, Postgres(b)) })
}

// SQLite returns the URL of a fresh file, a copy of one whose schema is up to date.
func SQLite(t testing.TB) string {
	t.Helper()

	image, err := sqliteImage()
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "flexd.db")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}

	return "sqlite:" + path
}

var sqliteImage = sync.OnceValues(func() ([]byte, error) {
	return sqliteTemplate(context.Background())
})

// Open opens the store and, when the test ends, verifies and closes it.
func Open(t testing.TB, url string, o store.Options) *store.DB {
	t.Helper()

	if o.Keys == nil {
		o.Keys = Keys(t)
	}

	// What a test plans within a transaction takes as long as the machine does.
	o.PauseMax = cmp.Or(o.PauseMax, time.Hour)

	db, err := openPatiently(t, url, o)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { Close(t, db) })

	return db
}

// openPatiently opens the store. The first connection to a new database may take a busy server longer than the store waits for one.
func openPatiently(t testing.TB, url string, o store.Options) (*store.DB, error) {
	t.Helper()

	var db *store.DB
	var err error
	for range 12 {
		db, err = store.Open(t.Context(), throughPooler(url), o)
		if flex.KindOf(err) != flex.Unavailable {
			break
		}
	}

	return db, err
}

// Keys are what tests seal with.
func Keys(t testing.TB) *keyring.Ring {
	t.Helper()
	r, err := keyring.NewRing([keyring.KeySize]byte{1})
	if err != nil {
		t.Fatal(err)
	}

	return r
}

// Close verifies the store and closes it.
func Close(t testing.TB, db *store.DB) {
	t.Helper()

	// The test's own context is at its end when what was to be cleaned up is.
	findings, err := db.Verify(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Errorf("verify: %v", err)
	}

	for _, f := range findings {
		t.Errorf("verify: %s", f)
	}

	if err := db.Close(); err != nil {
		t.Errorf("close the store: %v", err)
	}
}

var databases atomic.Int64

// Postgres returns the URL of a database without records, a copy of one whose schema is up to date.
func Postgres(t testing.TB) string {
	t.Helper()

	s := server(t)
	d := s.take(t)
	t.Cleanup(func() { s.giveBack(t, d) })

	return d.url
}

func server(t testing.TB) *postgresServer {
	t.Helper()

	url := os.Getenv(Env)
	if url == "" {
		if os.Getenv("FLEXD_TEST_STRICT") != "" {
			t.Fatalf(
				"%s names no PostgreSQL server, and FLEXD_TEST_STRICT forbids to skip",
				Env,
			)
		}
		t.Skipf("%s names no PostgreSQL server: `make test` starts one", Env)
	}

	s, err := onlyServer()
	if err != nil {
		t.Fatal(err)
	}

	return s
}

// postgresServer is the server of Env, with one connection that lasts as long as the process.
type postgresServer struct {
	url      string
	template string
	strategy string // of a copy, as the end of CREATE DATABASE
	admin    *sql.DB

	// of the template
	fingerprint string
	lastTable   int64  // the highest number of a table
	first       string // the statements that put its rows into a store without rows

	mu   sync.Mutex
	free []*testDatabase // without records
}

var onlyServer = sync.OnceValues(func() (*postgresServer, error) {
	url := os.Getenv(Env)

	template, err := postgresTemplate(context.Background(), url)
	if err != nil {
		return nil, err
	}

	admin, err := sql.Open("pgx", url)
	if err != nil {
		return nil, err
	}

	// One CREATE DATABASE at a time: a copy needs the template to itself.
	admin.SetMaxOpenConns(1)

	s := &postgresServer{url: url, template: template, admin: admin}

	if err := s.lookAt(template); err != nil {
		return nil, err
	}

	if err := admin.QueryRow(fastCopy).Scan(&s.strategy); err != nil {
		return nil, err
	}

	return s, nil
})

// lookAt reads what tells whether a database is as the template, and leaves no connection to it.
func (s *postgresServer) lookAt(template string) error {
	db, err := sql.Open("pgx", database(s.url, template))
	if err != nil {
		return err
	}

	defer db.Close()

	one := context.Background()
	c, err := db.Conn(one)
	if err != nil {
		return err
	}

	defer c.Close()

	err = c.QueryRowContext(one, `SELECT max(oid::bigint) FROM pg_class`).Scan(&s.lastTable)
	if err != nil {
		return err
	}

	if err := c.QueryRowContext(one, fingerprint).Scan(&s.fingerprint); err != nil {
		return err
	}

	if _, err := c.ExecContext(one, firstRecords); err != nil {
		return err
	}

	return c.QueryRowContext(
		one,
		`SELECT COALESCE(string_agg(statement, ' '), '') FROM first_record`,
	).Scan(&s.first)
}

// fastCopy asks for the strategy that copies files. From version 15 on PostgreSQL writes a copy to its log
// by default, at five times the cost; earlier ones copy files and know no other.
const fastCopy = `SELECT CASE WHEN current_setting('server_version_num')::int >= 150000
	THEN ' STRATEGY file_copy' ELSE '' END`

func (s *postgresServer) exec(t testing.TB, statement string) {
	t.Helper()

	admin := s.admin
	if inBubble() {
		own, err := sql.Open("pgx", s.url)
		if err != nil {
			t.Fatal(err)
		}

		defer own.Close()
		admin = own
	}

	_, err := admin.Exec(statement)
	if err != nil && !strings.Contains(err.Error(), "closed") {
		t.Fatalf("%s: %v", statement, err)
	}
}

// started is when the process began, by the true clock.
var started = time.Now()

// inBubble reports whether the caller is in a bubble of synctest, whose clock begins in the year 2000. A connection that was
// opened in a bubble has timers of its own there: it cannot be kept for those outside it.
func inBubble() bool { return time.Now().Before(started) }

// kept are the connections past the stores that last as long as their database, or on SQLite as the test that asked
// first, by its URL: to make one costs more than most of what is asked on it.
var kept sync.Map

func keepConnection(t testing.TB, url string) *sql.DB {
	t.Helper()

	db := connectPast(t, url)
	kept.Store(url, db)
	t.Cleanup(func() {
		kept.CompareAndDelete(url, db)
		db.Close()
	})

	return db
}

// connection returns a connection to the store at the url, past the store, and what gives it back.
func connection(t testing.TB, url string) (*sql.DB, func()) {
	t.Helper()
	if inBubble() {
		db := connectPast(t, url)
		return db, func() { db.Close() }
	}

	if db, ok := kept.Load(url); ok {
		return db.(*sql.DB), func() {}
	}

	return keepConnection(t, url), func() {}
}

// connectPast opens a connection to the store at the url, past the store.
func connectPast(t testing.TB, url string) *sql.DB {
	t.Helper()

	driver, name := "pgx", url
	if path, sqlite := strings.CutPrefix(url, "sqlite:"); sqlite {
		driver, name = "sqlite", "file:"+strings.ReplaceAll(path, "#", "%23")+
			"?_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)"
	}

	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}

	return db
}

// Exec runs one statement on the store at the url, past the store: to plant a fault, or a
// record whose own way in is not what is tested.
func Exec(t testing.TB, url, statement string, args ...any) error {
	t.Helper()
	db, done := connection(t, url)
	defer done()
	_, err := db.Exec(statement, args...)

	return err
}
