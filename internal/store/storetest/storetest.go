package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

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
	dir, err := os.MkdirTemp("", "flexd-template-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "flexd.db")
	db, err := store.Open(context.Background(), "sqlite:"+path, store.Options{})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path) // closing moved everything into the one file
})

// Open opens the store and, when the test ends, verifies and closes it.
func Open(t testing.TB, url string, o store.Options) *store.DB {
	t.Helper()

	if o.Keys == nil {
		o.Keys = Keys(t)
	}

	db, err := store.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { Close(t, db) })

	return db
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

var (
	template     sync.Once
	templateErr  error
	templateName string
	databases    atomic.Int64
)

// Postgres returns the URL of a fresh database, a copy of one whose schema is up to date.
func Postgres(t testing.TB) string {
	t.Helper()

	server := os.Getenv(Env)
	if server == "" {
		if os.Getenv("FLEXD_TEST_STRICT") != "" {
			t.Fatalf(
				"%s names no PostgreSQL server, and FLEXD_TEST_STRICT forbids to skip",
				Env,
			)
		}
		t.Skipf("%s names no PostgreSQL server: `make test` starts one", Env)
	}

	template.Do(func() { templateErr = makeTemplate(t, server) })

	if templateErr != nil {
		t.Fatal(templateErr)
	}

	name := fmt.Sprintf("t%d_%d", os.Getpid(), databases.Add(1))
	admin(t, server, "CREATE DATABASE "+name+" TEMPLATE "+templateName)
	t.Cleanup(func() {
		admin(t, server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	})

	return database(server, name)
}

func makeTemplate(t testing.TB, server string) error {
	templateName = fmt.Sprintf("template%d", os.Getpid())
	admin(t, server, "CREATE DATABASE "+templateName)
	db, err := store.Open(
		t.Context(),
		database(server, templateName),
		store.Options{},
	)
	if err != nil {
		return err
	}

	return db.Close()
}

func database(server, name string) string {
	u, err := url.Parse(server)
	if err != nil {
		panic(err)
	}
	u.Path = "/" + name

	return u.String()
}

// adminLock keeps one CREATE DATABASE at a time in this process; copying the template
// needs it to itself.
var adminLock sync.Mutex

func admin(t testing.TB, server, statement string) {
	t.Helper()
	adminLock.Lock()
	defer adminLock.Unlock()

	db, err := sql.Open("pgx", server)
	if err != nil {
		t.Fatal(err)
	}

	defer db.Close()

	_, err = db.Exec(statement)
	if err != nil && !strings.Contains(err.Error(), "closed") {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Exec runs one statement on the store at the url, past the store: to plant a fault, or a
// record whose own way in is not what is tested.
func Exec(t testing.TB, url, statement string, args ...any) error {
	t.Helper()
	driver, name := "pgx", url

	if path, sqlite := strings.CutPrefix(url, "sqlite:"); sqlite {
		driver, name = "sqlite", "file:"+strings.ReplaceAll(path, "#", "%23")+"?_pragma=busy_timeout(10000)"
	}

	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}

	defer db.Close()
	_, err = db.Exec(statement, args...)

	return err
}
