package storetest

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/store"
)

// Gate holds writes to a PostgreSQL store back, by locks on its tables: whoever writes waits until it is opened. What
// only reads, or locks rows, passes.
type Gate struct {
	t      testing.TB
	locks  *sql.Tx
	watch  *sql.Conn
	closed bool
}

// ShutGate holds back what is written to some tables, or to all if none is named.
func (s *Seed) ShutGate(tables ...string) *Gate {
	s.t.Helper()
	if len(tables) == 0 {
		tables = s.Tables()
	}

	watch, err := s.sql.Conn(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}

	locks, err := s.sql.BeginTx(context.Background(), nil)
	if err != nil {
		s.t.Fatal(err)
	}

	_, err = locks.Exec(`LOCK TABLE ` + strings.Join(tables, ", ") + ` IN SHARE MODE`)
	if err != nil {
		s.t.Fatal(err)
	}

	return &Gate{t: s.t, locks: locks, watch: watch}
}

// betweenLooks is how long Waiting takes at least: it is asked until somebody waits, and to ask it takes the server from those who are to come so far.
const betweenLooks = time.Millisecond

// Waiting is the number of the store's transactions that wait for a lock, of the gate or of each other.
func (g *Gate) Waiting() int {
	g.t.Helper()
	time.Sleep(betweenLooks)

	var n int
	err := g.watch.QueryRowContext(
		context.Background(),
		`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND wait_event_type = 'Lock'`,
	).Scan(&n)
	if err != nil {
		g.t.Fatal(err)
	}

	return n
}

// Open lets everybody write.
func (g *Gate) Open() {
	if g.closed {
		return
	}

	g.closed = true
	_ = g.locks.Rollback()
	_ = g.watch.Close()
}

// Tables are the store's tables in the order of their names, those that hold a part of another left out.
func (s *Seed) Tables() []string {
	s.t.Helper()
	query := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`
	if s.postgres {
		query = `SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition`
	}

	tables := s.Strings(query)
	slices.Sort(tables)

	return tables
}

// Columns are the columns of each table, in the order of their names.
func (s *Seed) Columns() map[string][]string {
	s.t.Helper()
	query := `SELECT m.name || '.' || p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table'`
	if s.postgres {
		query = `SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public'`
	}

	of := map[string][]string{}
	for _, c := range s.Strings(query) {
		table, column, _ := strings.Cut(c, ".")
		of[table] = append(of[table], column)
	}

	for _, columns := range of {
		slices.Sort(columns)
	}

	return of
}

// Copy is a copy of all records of a PostgreSQL store, in the same database.
type Copy struct {
	seed *Seed
}

// Keep copies the store's records, so that they can be brought back.
func (s *Seed) Keep() *Copy {
	s.t.Helper()
	s.Exec(`CREATE SCHEMA kept`)
	var again strings.Builder
	again.WriteString(`SET LOCAL session_replication_role = replica;`) // no triggers, no foreign keys
	for _, table := range s.Tables() {
		if table == "goose_db_version" {
			continue
		}

		again.WriteString(`DELETE FROM ` + table + `;`)
		if s.Count(`SELECT count(*) FROM `+table) > 0 {
			s.Exec(`CREATE TABLE kept.` + table + ` AS TABLE ` + table)
			again.WriteString(`INSERT INTO ` + table + ` SELECT * FROM kept.` + table + `;`)
		}
	}

	// a function's statements are planned once for a connection
	s.Exec(`CREATE FUNCTION kept.back() RETURNS void LANGUAGE plpgsql AS $back$ BEGIN ` + again.String() + ` END $back$`)

	return &Copy{seed: s}
}

// Back brings the records back that were there when they were kept.
func (c *Copy) Back() {
	c.seed.t.Helper()
	c.seed.Exec(`SELECT kept.back()`)
}

// Fresh opens a store without the checks of Open at the end: for one whose state is held against others.
func Fresh(t testing.TB, url string, o store.Options) *store.DB {
	t.Helper()
	if o.Keys == nil {
		o.Keys = Keys(t)
	}

	db, err := store.Open(t.Context(), throughPooler(url), o)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = db.Close() })

	return db
}
