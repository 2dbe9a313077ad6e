package storetest

import (
	"database/sql"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Seed is a quick way to records that a test needs and that are not its subject. It writes
// past the store, on a connection of its own.
type Seed struct {
	t   testing.TB
	db  *store.DB
	sql *sql.DB
	n   *uint32 // shared with those of other organisations
	Org flex.OrgID

	postgres bool
}

// NewSeed makes an organisation in the store at the url.
func NewSeed(t testing.TB, db *store.DB, url string) *Seed {
	t.Helper()
	s := &Seed{
		t:        t,
		db:       db,
		sql:      connect(t, url),
		n:        new(uint32),
		postgres: db.Engine() != "sqlite",
	}

	org, err := db.AddOrg(t.Context(), "seeded")
	if err != nil {
		t.Fatal(err)
	}

	s.Org = org.ID

	return s
}

// Again is the seed in a copy of the store that it has filled.
func (s *Seed) Again(t testing.TB, db *store.DB, url string) *Seed {
	t.Helper()
	return &Seed{t, db, connect(t, url), new(*s.n), s.Org, s.postgres}
}

func connect(t testing.TB, url string) *sql.DB {
	t.Helper()
	conn, done := connection(t, url)
	t.Cleanup(done)

	return conn
}

// Exec runs one statement.
func (s *Seed) Exec(query string, args ...any) {
	s.t.Helper()
	if _, err := s.sql.Exec(query, args...); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
}

// Kept returns a text about a person as the store keeps it in a column, for what is found by it.
func (s *Seed) Kept(table, column, text string) string {
	return s.db.Kept(table, column, text)
}

// seedChunk is the number of rows in one statement of Rows.
const seedChunk = 500

// Rows adds n rows to a table, each as row writes it for its number.
func (s *Seed) Rows(
	table string,
	columns []string,
	n int,
	row func(i int) []any,
) {
	s.t.Helper()
	var err error

	if s.postgres {
		err = s.copyRows(table, columns, n, row)
	} else {
		err = s.insertRows(table, columns, n, row)
	}

	if err != nil {
		s.t.Fatalf("add %d rows to %s: %v", n, table, err)
	}
}

func (s *Seed) copyRows(
	table string,
	columns []string,
	n int,
	row func(i int) []any,
) error {
	c, err := s.sql.Conn(s.t.Context())
	if err != nil {
		return err
	}

	defer c.Close()

	return c.Raw(func(driver any) error {
		source := pgx.CopyFromSlice(n, func(i int) ([]any, error) {
			return row(i), nil
		})
		_, err := driver.(*stdlib.Conn).Conn().CopyFrom(
			s.t.Context(),
			pgx.Identifier{table},
			columns,
			source,
		)

		return err
	})
}

func (s *Seed) insertRows(
	table string,
	columns []string,
	n int,
	row func(i int) []any,
) error {
	tx, err := s.sql.Begin()
	if err != nil {
		return err
	}

	defer tx.Rollback()
	// SQLite looks numbered names up one by one
	one := ", (?" + strings.Repeat(", ?", len(columns)-1) + ")"

	for from := 0; from < n; from += seedChunk {
		to := min(n, from+seedChunk)
		args := make([]any, 0, seedChunk*len(columns))

		for i := from; i < to; i++ {
			args = append(args, row(i)...)
		}

		text := "INSERT INTO " + table + " (" + strings.Join(columns, ", ") +
			") VALUES " + strings.Repeat(one, to-from)[2:]
		if _, err := tx.Exec(text, args...); err != nil {
			return err
		}
	}

	return tx.Commit()
}

// Strings returns the one column of text that a query finds.
func (s *Seed) Strings(query string, args ...any) []string {
	s.t.Helper()

	rs, err := s.sql.Query(query, args...)
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}

	defer rs.Close()

	var found []string
	for rs.Next() {
		var v string
		if err := rs.Scan(&v); err != nil {
			s.t.Fatal(err)
		}
		found = append(found, v)
	}

	if err := rs.Err(); err != nil {
		s.t.Fatal(err)
	}

	return found
}

// Count reads one number.
func (s *Seed) Count(query string, args ...any) int {
	s.t.Helper()

	var n int
	if err := s.sql.QueryRow(query, args...).Scan(&n); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}

	return n
}

// As returns a seed of another organisation's records.
func (s *Seed) As(org flex.OrgID) *Seed {
	return &Seed{s.t, s.db, s.sql, s.n, org, s.postgres}
}

func (s *Seed) id() [16]byte {
	*s.n++
	var r [10]byte
	binary.BigEndian.PutUint32(r[6:], *s.n)
	return flex.MakeID[struct{}](time.UnixMilli(1), r)
}

// Site makes a site that has consented to the methods.
func (s *Seed) Site(methods ...flex.DispatchMethod) flex.SiteID {
	id := flex.SiteID(s.id())
	s.Exec(
		`INSERT INTO site (id, org_id, created_at) VALUES ($1, $2, 0)`,
		id.Bytes(),
		s.Org.Bytes(),
	)

	for _, m := range methods {
		s.Exec(
			`INSERT INTO dispatch_method (org_id, site_id, method, consented_at) VALUES ($1, $2, $3, 0)`,
			s.Org.Bytes(),
			id.Bytes(),
			string(m),
		)
	}

	return id
}

// Consent has every site consent to the use of its boundary meter at an instant.
func (s *Seed) Consent(at time.Time) {
	s.Exec(`UPDATE site SET consent_at = $1`, at.UnixMicro())
	s.Exec(
		`INSERT INTO consent_span (site_id, org_id, from_at, known_at) SELECT id, org_id, $1, $1 FROM site`,
		at.UnixMicro(),
	)
}

// NoConsent has it that no site ever consented.
func (s *Seed) NoConsent() {
	s.Exec(`UPDATE site SET consent_at = NULL`)
	s.Exec(`DELETE FROM consent_span`)
}

// Asset makes an asset at the site; a power of 0 is not known.
func (s *Seed) Asset(
	site flex.SiteID,
	typ flex.AssetType,
	power flex.Watts,
) flex.AssetID {
	id := flex.AssetID(s.id())
	var w any

	if power > 0 {
		w = int64(power)
	}

	s.Exec(
		`INSERT INTO asset (id, org_id, site_id, external_id, type, power_w, created_at) VALUES ($1, $2, $3, $4, $5, $6, 0)`,
		id.Bytes(),
		s.Org.Bytes(),
		site.Bytes(),
		"x"+id.String(),
		string(typ),
		w,
	)

	return id
}

// QueueEnded queues the settlement of the sessions that were put in with their end.
func (s *Seed) QueueEnded() {
	s.Exec(`INSERT INTO reckoning (session_id, org_id, asset_id, site_id, from_at, to_at)
		SELECT id, org_id, asset_id, site_id, plugged_in_at, plugged_out_at FROM session s
		WHERE plugged_out_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM reckoning r WHERE r.session_id = s.id)`)
}

// Readings gives every asset of the organisation a charger's energy of so many half-hours,
// which the database makes by itself.
func (s *Seed) Readings(from flex.Period, periods int) {
	s.t.Helper()
	err := s.db.WriteAll(s.t.Context(), func(all *store.All) error {
		return all.MakePartitions(s.t.Context(), flex.Span{
			From: from.Start(),
			To:   from.Add(periods).Start(),
		})
	})
	if err != nil {
		s.t.Fatal(err)
	}

	assets := s.Count(
		`SELECT count(*) FROM asset WHERE org_id = $1`,
		s.Org.Bytes(),
	)

	// of rows that are put in order in memory
	chunk := max(1, 200_000/max(1, assets))

	for n := 0; n < periods; n += chunk {
		s.Exec(
			`INSERT INTO reading (at, asset_id, label, seconds, value, known_at)
			WITH RECURSIVE period (n) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT n + 1 FROM period WHERE n + 1 < $3)
			SELECT CAST($2 AS BIGINT) + 1800000000 * n, id, 1, 1800, 1000 * ((n * 7919) % 5000), CAST($2 AS BIGINT) + 1800000000 * (n + 1)
			FROM period CROSS JOIN asset WHERE org_id = $1 ORDER BY n, id`,
			s.Org.Bytes(),
			from.Add(n).Start().UnixMicro(),
			min(chunk, periods-n),
		)
	}
}

// assets are the organisation's assets, and the site of each.
func (s *Seed) assets() ([]flex.AssetID, []flex.SiteID) {
	s.t.Helper()
	rs, err := s.sql.Query(
		`SELECT id, site_id FROM asset WHERE org_id = $1 ORDER BY id`,
		s.Org.Bytes(),
	)
	if err != nil {
		s.t.Fatal(err)
	}

	var (
		assets []flex.AssetID
		sites  []flex.SiteID
	)

	for rs.Next() {
		var asset flex.AssetID
		var site flex.SiteID
		if err := rs.Scan(&asset, &site); err != nil {
			s.t.Fatal(err)
		}

		assets = append(assets, asset)
		sites = append(sites, site)
	}

	if err := rs.Close(); err != nil {
		s.t.Fatal(err)
	}

	return assets, sites
}

// Events gives every asset of the organisation a flex event on the day.
func (s *Seed) Events(day flex.Day, first, last int) {
	s.t.Helper()
	energies := strings.TrimSpace(strings.Repeat("1000 ", last-first+1))
	assets, sites := s.assets()

	tx, err := s.sql.Begin()
	if err != nil {
		s.t.Fatal(err)
	}

	defer tx.Rollback()

	for i := range assets {
		id := flex.FlexEventID(s.id())
		_, err := tx.Exec(
			`INSERT INTO flex_event (id, org_id, site_id, asset_id, day, first, last, from_at, to_at, meant, nominated, detected_at, estimated)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, 0, 0)`,
			id.Bytes(),
			s.Org.Bytes(),
			sites[i].Bytes(),
			assets[i].Bytes(),
			day.String(),
			first,
			last,
			day.Period(first).Start().UnixMicro(),
			day.Period(last).End().UnixMicro(),
			energies,
		)

		if err != nil {
			s.t.Fatal(err)
		}
	}

	if err := tx.Commit(); err != nil {
		s.t.Fatal(err)
	}
}

// At is a seed in a store that has its records already.
func At(t testing.TB, db *store.DB, url string) *Seed {
	t.Helper()
	return &Seed{
		t:        t,
		db:       db,
		sql:      connect(t, url),
		n:        new(uint32),
		postgres: db.Engine() != "sqlite",
	}
}
