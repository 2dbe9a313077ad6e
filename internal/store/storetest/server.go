package storetest

import (
	"os"
	"testing"

	"flexd/test/postgres"
)

// Server starts a PostgreSQL server of the test's own with settings, each "name=value". It ends
// with the test. Where PostgreSQL is not installed the test is skipped, or failed when
// FLEXD_TEST_STRICT is set.
func Server(t testing.TB, settings ...string) *postgres.Server {
	t.Helper()
	if postgres.Binaries() == "" && os.Getenv("FLEXD_TEST_STRICT") == "" {
		t.Skip("PostgreSQL is not installed")
	}

	s, err := postgres.Start(t.Context(), settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)

	return s
}
