package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// Whether a pooler shares sessions between transactions is found out when the store is opened, each time, unless the
// URL says it.
func TestOpen_Pooler(t *testing.T) {
	direct := storetest.Postgres(t)
	open := func(at string, shared bool) {
		t.Helper()
		db, err := store.Open(t.Context(), at, store.Options{Environment: flex.Sandbox})
		if err != nil {
			t.Error(err)
			return
		}
		defer db.Close()

		if db.Shared() != shared {
			t.Errorf("sessions are shared: %v, want %v", db.Shared(), shared)
		}
	}

	open(direct, false)
	for mode, shared := range map[string]bool{"transaction": true, "session": false} {
		at := storetest.Pooler(t, direct, mode)
		for range 5 {
			open(at, shared)
		}
		open(at+"&pooler="+mode, shared)
	}

	for _, settings := range [][]string{{"default_pool_size = 1"}, {"server_round_robin = 1"}} {
		at := storetest.Pooler(t, direct, "transaction", settings...)
		for range 5 {
			open(at, true)
		}
	}

	_, err := store.Open(t.Context(), direct+"&pooler=statement", store.Options{})
	if flex.KindOf(err) != flex.Invalid {
		t.Errorf("another mode: %v", err)
	}
}

// sharing are two stores of one database, of which each makes many transactions at once.
type sharing struct {
	stores [2]*store.DB
	seed   *storetest.Seed
	assets []flex.AssetID
}

// work makes transactions of several kinds on both stores at once, and returns what failed.
func (s *sharing) work(t *testing.T, rounds int) []error {
	t.Helper()

	var mu sync.Mutex
	var failed []error
	var workers sync.WaitGroup

	for i, asset := range s.assets {
		db := s.stores[i%len(s.stores)]

		workers.Go(func() {
			for round := range rounds {
				err := s.round(t.Context(), db, asset, i*rounds+round)

				if err != nil {
					mu.Lock()
					failed = append(failed, err)
					mu.Unlock()
				}
			}
		})
	}

	workers.Wait()

	return failed
}

// round writes an event and readings by several statements in one batch, writes under an idempotency key, and reads in
// a snapshot and without a transaction.
func (s *sharing) round(ctx context.Context, db *store.DB, asset flex.AssetID, n int) error {
	key := fmt.Sprint("key ", n)
	_, claim, err := db.ClaimKey(ctx, s.seed.Org, key, [32]byte{1})
	if err != nil {
		return err
	}

	from := time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * flex.HalfHour)
	reading := flex.Reading{AssetID: asset, Span: flex.Span{From: from, To: from.Add(flex.HalfHour)}, Label: flex.ChargerEnergy, Value: 1}

	err = db.Write(claim.Context(ctx), s.seed.Org, func(tx *store.Tx) error {
		if err := tx.LockAsset(ctx, asset); err != nil {
			return err
		}
		if err := tx.AddEvent(ctx, asset, "plug_in", store.AssetEvent{}); err != nil {
			return err
		}
		return tx.PutReadings(ctx, []flex.Reading{reading})
	})
	if err != nil {
		return err
	}

	err = db.StoreAnswer(ctx, claim, flex.StoredAnswer{Status: 200, Answer: []byte("done")})
	if err != nil {
		return err
	}

	return db.Ping(ctx)
}

// share opens two stores at the URL.
func share(t *testing.T, direct, at string) *sharing {
	t.Helper()

	s := &sharing{}
	for i := range s.stores {
		s.stores[i] = storetest.Open(t, at, store.Options{})
	}

	s.seed = storetest.NewSeed(t, s.stores[0], direct)
	for range 12 {
		s.assets = append(s.assets, s.seed.Asset(s.seed.Site(flex.FullScheduleMethod), flex.Charger, 7400))
	}

	return s
}

// Two processes work behind a pooler that has fewer sessions than either of them makes transactions at once.
func TestPooler_TwoStores(t *testing.T) {
	direct := storetest.Postgres(t)
	s := share(t, direct, storetest.Pooler(t, direct, "transaction", "default_pool_size = 3"))

	for _, err := range s.work(t, 10) {
		t.Error(err)
	}

	events := s.seed.Count(`SELECT count(*) FROM asset_event WHERE org_id = $1`, s.seed.Org.Bytes())
	answers := s.seed.Count(`SELECT count(*) FROM idempotency WHERE status = 200 AND committed > 0`)
	if events != 120 || answers != 120 {
		t.Errorf("%d events and %d answers of 120 requests", events, answers)
	}
}

// The same work fails where it is done as on a connection of its own: its statements have names, which others have
// taken, or which are not there.
func TestPooler_NamesAreLost(t *testing.T) {
	direct := storetest.Postgres(t)
	s := share(t, direct, storetest.Pooler(t, direct, "transaction", "default_pool_size = 3")+"&pooler=transaction")
	named := storetest.Pooler(t, direct, "transaction", "default_pool_size = 3") + "&pooler=session"

	var failed []error
	for i := range s.stores {
		db, err := store.Open(t.Context(), named, store.Options{})
		if err != nil {
			failed = append(failed, err)
			continue
		}
		defer db.Close()
		s.stores[i] = db
	}

	failed = append(failed, s.work(t, 10)...)
	if !strings.Contains(fmt.Sprint(failed), "prepared statement") {
		t.Errorf("names of statements were never lost, so that this test finds nothing: %v", failed)
	}
}

// The settings of a transaction are those of every other connection, and no session has them afterwards.
func TestPooler_Settings(t *testing.T) {
	direct := storetest.Postgres(t)
	at := storetest.Pooler(t, direct, "transaction", "default_pool_size = 1")
	db := storetest.Open(t, at, store.Options{})

	const settings = `SELECT concat_ws(' ', current_setting('jit'), current_setting('random_page_cost'), current_setting('TimeZone'))`
	for what, do := range map[string]func(context.Context, func(*store.All) error) error{
		"read": db.ReadAll, "write": db.WriteAll,
	} {
		err := do(t.Context(), func(all *store.All) error {
			var is string
			err := store.ReadValue(t.Context(), all, &is, settings)

			if is != "off 1.1 UTC" {
				t.Errorf("a %s has %q", what, is)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}

	var cost string
	err := otherClient(t, at).QueryRow(t.Context(), `SELECT current_setting('random_page_cost')`).Scan(&cost)
	if err != nil || cost != "4" {
		t.Errorf("another client of the pooler has a random_page_cost of %s, %v", cost, err)
	}
}

// otherClient is a connection through the pooler that is no store's.
func otherClient(t *testing.T, at string) *pgx.Conn {
	t.Helper()

	cfg, err := pgx.ParseConfig(at)
	if err != nil {
		t.Fatal(err)
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol

	c, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })

	return c
}

// A pooler whose sessions others use refuses after its query_wait_timeout. That is said, and over as soon as one is
// free.
func TestPooler_Exhausted(t *testing.T) {
	direct := storetest.Postgres(t)
	at := storetest.Pooler(t, direct, "transaction", "default_pool_size = 1", "query_wait_timeout = 1")
	db := storetest.Open(t, at, store.Options{})

	other := otherClient(t, at)

	for _, name := range []string{"Acme", "Other"} {
		if _, err := other.Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}

		refused(t, db, name, "its pooler has no connection")
		if err := db.Ping(t.Context()); flex.KindOf(err) != flex.Unavailable {
			t.Errorf("a read: %v", err)
		}

		if _, err := other.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		addOrg(t, db, name)
	}
}

// A process behind a pooler leaves no lock on sessions that are others' afterwards, and is noticed all the same by what
// must not be done while one serves.
func TestPooler_Serves(t *testing.T) {
	direct := storetest.Postgres(t)
	at := storetest.Pooler(t, direct, "transaction", "default_pool_size = 2")
	o := store.Options{Keys: storetest.Keys(t)}

	db, err := store.Open(t.Context(), at, o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	refuseWhileServing(t, db, direct, o)
	ctx, stop := context.WithCancel(t.Context())
	began, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		db.Watch(ctx, func() { close(began) }, func(err error) { t.Errorf("the database does not answer: %v", err) })
	}()
	<-began

	if n := count(t, direct, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'`); n > 0 {
		t.Errorf("%d locks on sessions of others", n)
	}
	if _, err := store.SealPersons(t.Context(), at, o); flex.KindOf(err) != flex.Invalid {
		t.Errorf("sealed through the pooler: %v", err)
	}

	stop()
	<-ended
}

// After a restart of the server behind the pooler the store works again by itself.
func TestPooler_ServerRestarts(t *testing.T) {
	server := storetest.Server(t)

	at := storetest.Pooler(t, server.URL, "transaction", "default_pool_size = 2", "server_login_retry = 1")
	db := storetest.Open(t, at, store.Options{})
	addOrg(t, db, "before")
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	await(t, "it is written to again", func() bool {
		err := db.WriteAll(t.Context(), func(all *store.All) error {
			_, err := all.AddOrg(t.Context(), "after")
			return err
		})
		if err != nil && flex.KindOf(err) != flex.Unavailable {
			t.Fatal(err)
		}
		return err == nil
	})

	if n := count(t, server.URL, `SELECT count(*) FROM org`); n != 2 {
		t.Errorf("%d organisations", n)
	}
}
