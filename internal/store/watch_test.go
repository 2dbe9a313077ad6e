package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A database that stops to confirm commits while keys are given up that could not be before is
// noticed all the same, and they are given up when it confirms again.
func TestWatch_HangsWhileKeysAreFreed(t *testing.T) {
	server := storetest.Server(t) // of its own: all that use it stand still

	db, err := store.Open(t.Context(), server.URL, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	org, err := db.AddOrg(t.Context(), "Acme")
	if err != nil {
		t.Fatal(err)
	}
	unlock := keyThatCannotBeFreed(t, db, server.URL, org.ID)

	ctx, stop := context.WithCancel(t.Context())
	ended, news := make(chan struct{}), make(chan error, 8)
	go func() {
		defer close(ended)
		db.Watch(ctx, func() {}, func(err error) { news <- err })
	}()
	defer func() {
		stop()
		<-ended
	}()
	await(t, "a key is given up", func() bool {
		return count(
			t,
			server.URL,
			`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`,
		) > 0
	})

	confirmBy(t, server.URL, "nobody")
	if err := heard(t, news); err == nil {
		t.Error("a database that confirms no commit answers, by the watch")
	}

	confirmBy(t, server.URL, "")
	if err := heard(t, news); err != nil {
		t.Errorf("it confirms again: %v", err)
	}
	unlock()
	await(t, "the key is free", func() bool {
		return count(
			t,
			server.URL,
			`SELECT count(*) FROM idempotency`,
		) == 0
	})
}

// keyThatCannotBeFreed claims an idempotency key, which another transaction then locks, and
// fails to give it up. It returns what ends that transaction.
func keyThatCannotBeFreed(t *testing.T, db *store.DB, url string, org flex.OrgID) (unlock func()) {
	t.Helper()
	ctx := t.Context()

	_, claim, err := db.ClaimKey(ctx, org, "key", [32]byte{})
	if err != nil {
		t.Fatal(err)
	}

	other, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close(context.Background()) })
	if _, err := other.Exec(ctx, `BEGIN; SELECT 1 FROM idempotency FOR UPDATE`); err != nil {
		t.Fatal(err)
	}

	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := db.FreeKey(gone, claim); !errors.Is(err, context.Canceled) {
		t.Fatalf("given up by a request that is gone: %v", err)
	}

	return func() {
		if _, err := other.Exec(ctx, `ROLLBACK`); err != nil {
			t.Fatal(err)
		}
	}
}

// confirmBy has commits wait for a replica of that name; for none if it is empty.
func confirmBy(t *testing.T, url, name string) {
	t.Helper()
	for _, s := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + name + "'", "SELECT pg_reload_conf()"} {
		if err := storetest.Exec(t, url, s); err != nil {
			t.Fatal(err)
		}
	}
}

// heard returns what the watch says next.
func heard(t *testing.T, news <-chan error) error {
	t.Helper()
	select {
	case err := <-news:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the watch notices nothing")
		return nil
	}
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func count(t *testing.T, url, query string) (n int) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())

	if err := c.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}

	return n
}
