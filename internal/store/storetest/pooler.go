package storetest

import (
	"errors"
	"net/url"
	"os"
	"testing"

	"flexd/test/postgres"
)

// PoolerEnv names the environment variable that has the host and port of a pooler before that server. With it Open and
// Fresh open their stores through it.
const PoolerEnv = "FLEXD_TEST_POOLER_AT"

// throughPooler is the URL of a store through the pooler, if there is one, and if the store is on its server: a test may
// have a server or a proxy of its own.
func throughPooler(at string) string {
	pooler := os.Getenv(PoolerEnv)
	u, err := url.Parse(at)
	if pooler == "" || err != nil {
		return at
	}

	server, err := url.Parse(os.Getenv(Env))
	if err != nil || u.Host == "" || u.Host != server.Host {
		return at
	}

	u.Host = pooler

	return u.String()
}

// Pooler starts a PgBouncer of a mode (session or transaction) before a database, with further settings, each "name =
// value", and returns the database's URL through it. It ends with the test. Where it is not installed the test is
// skipped, or failed when FLEXD_TEST_STRICT is set.
func Pooler(t testing.TB, database, mode string, settings ...string) string {
	t.Helper()

	direct, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}

	p, err := postgres.StartPooler(t.Context(), mode, direct, settings...)
	if errors.Is(err, postgres.ErrNoPooler) && os.Getenv("FLEXD_TEST_STRICT") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)

	return p.URL
}
