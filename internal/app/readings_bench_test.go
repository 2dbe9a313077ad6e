package app_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// The fleet that the readings of the benchmarks are of.
const (
	benchAssets  = 1000
	benchWriters = 4
)

// spent is the processor time that this process has used, and the bytes that it has had
// written.
type spent struct{ cpu, written float64 }

func spentSoFar() spent {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return spent{float64(u.Utime.Nano() + u.Stime.Nano()), 512 * float64(u.Oublock)}
}

// fleets counts the organisations made.
var fleets atomic.Int64

// fleet opens a flexd with assets and a token, and serves it.
func fleet(b testing.TB, database string) (base, token string, assets []flex.AssetID) {
	b.Helper()
	ctx := b.Context()
	h, err := app.Open(ctx, app.Settings{Database: database, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		b.Fatal(err)
	}

	name := fmt.Sprintf("acme %d", fleets.Add(1))
	org, password, err := h.Access.AddOrg(ctx, name, name, "")
	if err != nil {
		b.Fatal(err)
	}
	err = h.DB.Write(ctx, org.ID, func(tx *store.Tx) error {
		site := flex.Site{MPAN: "1234567890126"}
		if err := tx.AddSite(ctx, &site, ""); err != nil {
			return err
		}

		for i := range benchAssets {
			a := flex.Asset{SiteID: site.ID, ExternalID: fmt.Sprint(i), Type: flex.Charger}
			if err := tx.AddAsset(ctx, &a); err != nil {
				return err
			}
			assets = append(assets, a.ID)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	serving, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); h.Serve(serving, l) }()
	b.Cleanup(func() { stop(); <-done; h.Close() })
	base = "http://" + l.Addr().String()
	return base, logIn(b, base, name, password), assets
}

// logIn returns a token of the organisation's.
func logIn(b testing.TB, base, username string, password flex.Secret) (token string) {
	b.Helper()
	a, err := http.PostForm(base+"/auth/token-form", url.Values{"username": {username}, "password": {password.Reveal()}})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Body.Close()

	var answer struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(a.Body).Decode(&answer); err != nil || answer.Token == "" {
		b.Fatal(a.Status, err)
	}
	return answer.Token
}

// BenchmarkReadings posts batches of 1,000 half-hourly readings of 1,000 assets from four
// clients, generator and database on the same machine, and beside it in the same run writes
// the same rows with the driver alone.
func BenchmarkReadings(b *testing.B) {
	engines := []struct {
		name string
		open func(testing.TB) string
	}{{"sqlite", storetest.SQLite}, {"postgres", storetest.Postgres}}
	for _, e := range engines {
		b.Run("http/"+e.name, func(b *testing.B) { benchHTTP(b, e.open(b)) })
	}
	b.Run("driver/sqlite", benchSQLite)
	b.Run("copy/postgres", benchCopy)
}

var rowsBelow = flag.Int("rows", 1_000_000, "readings below those of BenchmarkReadingsOnTop; 100,000,000 need 6 GB on SQLite, 20 GB on PostgreSQL")

// BenchmarkReadingsOnTop is the same on an empty store and on top of many readings of
// another fleet, 400 days of it, in one run.
func BenchmarkReadingsOnTop(b *testing.B) {
	const periods = 400 * 48
	engines := []struct {
		name string
		open func(testing.TB) string
	}{{"sqlite", storetest.SQLite}, {"postgres", storetest.Postgres}}

	for _, e := range engines {
		b.Run(e.name+"/empty", func(b *testing.B) { benchHTTP(b, e.open(b)) })
		b.Run(e.name, func(b *testing.B) {
			full := e.open(b)
			db, err := store.Open(b.Context(), full, store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			began := time.Now()
			seed := storetest.NewSeed(b, db, full)
			site := seed.Site()

			for range max(1, *rowsBelow/periods) {
				seed.Asset(site, flex.Charger, 0)
			}
			seed.Readings(flex.PeriodAt(time.Now()).Add(-1-periods), periods)
			if db.Engine() == "sqlite" {
				seed.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
			}
			syscall.Sync() // what was written so far shall not be waited for later
			b.Logf("%d readings were there after %v", seed.Count(`SELECT count(*) FROM reading`), time.Since(began).Round(time.Second))
			b.Run("full", func(b *testing.B) { benchHTTP(b, full) })
		})
	}
}

func benchHTTP(b *testing.B, database string) {
	base, token, assets := fleet(b, database)
	now := flex.PeriodAt(time.Now())
	var next, accepted atomic.Int64
	body := func(n int) []byte {
		p := now.Add(-2 - n%18000)
		from, to := p.Start().Format(time.RFC3339), p.End().Format(time.RFC3339)
		var s bytes.Buffer
		s.WriteString(`{"readings":[`)

		for i, a := range assets {
			if i > 0 {
				s.WriteByte(',')
			}
			fmt.Fprintf(&s, `{"asset_id":"%s","start_timestamp":"%s","end_timestamp":"%s","value":%d.%03d,"label":"charger_consumption_energy_kwh"}`, a, from, to, n%7, i)
		}
		s.WriteString(`]}`)
		return s.Bytes()
	}

	used := spentSoFar()
	b.ResetTimer()
	var wg sync.WaitGroup

	for range benchWriters {
		wg.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= b.N {
					return
				}

				r, _ := http.NewRequest("POST", base+"/data/readings", bytes.NewReader(body(n)))
				r.Header.Set("Authorization", "Bearer "+token)
				r.Header.Set("Content-Type", "application/json")
				a, err := http.DefaultClient.Do(r)
				if err != nil {
					b.Error(err)
					return
				}

				answer, err := io.ReadAll(a.Body)
				a.Body.Close()
				if err != nil || a.StatusCode != 200 {
					b.Errorf("%s %v %.200s", a.Status, err, answer)
					return
				}
				accepted.Add(int64(bytes.Count(answer, []byte(`"accepted":true`))))
			}
		})
	}

	wg.Wait()
	b.StopTimer()
	if got := accepted.Load(); got != int64(b.N)*benchAssets {
		b.Errorf("%d accepted, want %d", got, b.N*benchAssets)
	}
	perSecond(b, used)
}

func perSecond(b *testing.B, used spent) {
	rows, now := float64(b.N)*benchAssets, spentSoFar()
	b.ReportMetric(rows/b.Elapsed().Seconds(), "readings/s")
	b.ReportMetric((now.cpu-used.cpu)/1000/rows, "cpu-µs/reading")
	b.ReportMetric((now.written-used.written)/rows, "B-written/reading")
}

// rows makes the n-th batch as the store keeps it.
func benchRows(n int) [][]any {
	at := flex.PeriodAt(time.Now()).Add(-2 - n%18000).Start().UnixMicro()
	batch := make([][]any, benchAssets)
	for i := range batch {
		id := flex.AssetID{0: 1, 14: byte(i >> 8), 15: byte(i)}
		batch[i] = []any{at, id.Bytes(), int16(1), int32(1800), int64(1000 * i), at}
	}
	return batch
}

func benchSQLite(b *testing.B) {
	database := storetest.SQLite(b)
	storetest.Open(b, database, store.Options{})
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(database, "sqlite:")+"?_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()

	db.SetMaxOpenConns(1)
	values := strings.TrimSuffix(strings.Repeat("(?,?,?,?,?,?),", benchAssets/2), ",")
	st, err := db.Prepare("INSERT INTO reading (at, asset_id, label, seconds, value, known_at) VALUES " + values)
	if err != nil {
		b.Fatal(err)
	}

	used := spentSoFar()
	b.ResetTimer()

	for n := range b.N {
		tx, err := db.Begin()
		if err != nil {
			b.Fatal(err)
		}

		batch := benchRows(n)
		for _, half := range [][][]any{batch[:benchAssets/2], batch[benchAssets/2:]} {
			var args []any
			for _, row := range half {
				args = append(args, row...)
			}
			if _, err := tx.Stmt(st).Exec(args...); err != nil {
				b.Fatal(err)
			}
		}

		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}

	b.StopTimer()
	perSecond(b, used)
}

func benchCopy(b *testing.B) {
	database := storetest.Postgres(b)
	storetest.Open(b, database, store.Options{})
	db, err := sql.Open("pgx", database)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()

	c, err := db.Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	used := spentSoFar()
	b.ResetTimer()

	for n := range b.N {
		err := c.Raw(func(raw any) error {
			_, err := raw.(*stdlib.Conn).Conn().CopyFrom(b.Context(), pgx.Identifier{"reading"},
				[]string{"at", "asset_id", "label", "seconds", "value", "known_at"}, pgx.CopyFromRows(benchRows(n)))
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	perSecond(b, used)
}
