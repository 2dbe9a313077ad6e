package console_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// BenchmarkFleet measures the fleet page for 100,000 plugged-in assets, each time computed
// anew.
func BenchmarkFleet(b *testing.B) {
	for engine, url := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(engine, func(b *testing.B) {
			if engine == "postgres" && os.Getenv(storetest.Env) == "" {
				b.Skip("no PostgreSQL server: make bench starts one")
			}
			d := openConsole(b, url(b), "2026-01-14T21:40:00Z")
			d.large(engine, 100_000)
			d.login()
			b.ResetTimer()

			for b.Loop() {
				d.wait(time.Minute)
				r := httptest.NewRequest("GET", "http://localhost/console/fleet", nil)
				r.AddCookie(d.cookie)
				w := httptest.NewRecorder()
				d.handler.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}

// large registers n cars that are plugged in and planned, each at a site of its own.
func (d *service) large(engine string, n int) {
	d.Helper()
	first := "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " + strconv.Itoa(n) + ") "
	id := map[string]string{
		"sqlite":   "CAST(printf('%016d', i) AS BLOB)",
		"postgres": "CAST(lpad(CAST(i AS TEXT), 32, '0') AS UUID)",
	}[engine]
	org := d.Org.Bytes()
	d.Exec(first+`INSERT INTO site (id, org_id, postcode, created_at) SELECT `+id+`, $1, 'AB' || i % 97, 0 FROM n`, org)
	d.Exec(first+`INSERT INTO dispatch_method (org_id, site_id, method, consented_at) SELECT $1, `+id+`, $2, 0 FROM n`, org, string(flex.FullScheduleMethod))
	d.Exec(first+`INSERT INTO asset (id, org_id, site_id, external_id, type, power_w, created_at)
		SELECT `+id+`, $1, `+id+`, 'big' || i, 'charger', 7400, 0 FROM n`, org)

	d.Exec(first+`INSERT INTO schedule (event_id, org_id, asset_id, session_id, generation, cause, made_at, from_at, to_at, steps,
			ready_by, need_wh, delivered_wh, power_w, may_charge_peak, mode, off_peak, zone, tariff_type, origins, count_from, running, value)
		SELECT `+id+`, $1, `+id+`, `+id+`, 1, 'plug-in', $2, $2, $3, '9000x0 3600x99999 7200x0 5400x99999 9600x0',
			$3, 20000, 0, 7400, FALSE, 'minimise_charging_time', '00:30-05:30', 'Europe/London', 'dual_rate', 'event asset event', $2, FALSE, 0 FROM n`,
		org, at("2026-01-14T21:20:00Z").UnixMicro(), at("2026-01-15T07:00:00Z").UnixMicro())
	d.Exec(first+`INSERT INTO session (id, org_id, asset_id, site_id, number, plugged_in_at, ready_by, generation, event_id)
		SELECT `+id+`, $1, `+id+`, `+id+`, 1, $2, $3, 1, `+id+` FROM n`, org, at("2026-01-14T21:20:00Z").UnixMicro(), at("2026-01-15T07:00:00Z").UnixMicro())
	d.Exec(first+`INSERT INTO outbox (subject, org_id, endpoint, kind, asset_id, event_id, generation, queued_at, expires_at, accepted)
		SELECT `+id+`, $1, 'schedule', 'schedule', `+id+`, `+id+`, 1, $2, $3, 1 FROM n`,
		org, at("2026-01-14T21:20:00Z").UnixMicro(), at("2026-01-15T07:00:00Z").UnixMicro())
	if engine == "postgres" {
		d.Exec("ANALYZE")
	}
}

// largeIDs are the asset "big777" of large, and its site.
var largeIDs = map[string]string{
	"sqlite":   "30303030-3030-3030-3030-303030373737",
	"postgres": "00000000-0000-0000-0000-000000000777",
}

// BenchmarkPages measures pages of the console for 100,000 sites with a plugged-in car each.
func BenchmarkPages(b *testing.B) {
	for engine, url := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		if engine == "postgres" && os.Getenv(storetest.Env) == "" {
			continue
		}
		d := openConsole(b, url(b), "2026-01-14T21:40:00Z")
		d.large(engine, 100_000)
		d.login()
		asset := "assets/" + largeIDs[engine]

		for _, path := range []string{
			"fleet", "assets", "assets?sort=-power", "assets?sort=ready_by", "assets?cause=short", "assets?state=plugged_in", "assets?gsp_group=_C",
			asset, strings.Replace(asset, "assets", "sites", 1), "deliveries", "deliveries?state=pending", "deliveries?sort=took", "prices", "readings", "readings/held",
			"settlement", "engine", "alerts", "audit", "safety", "limits", "ahead", "offers", "instructions", "programs", "developer", "operators", "past", "search?q=big777", "search?q=AB42",
		} {
			b.Run(engine+"/"+path, func(b *testing.B) {
				for b.Loop() {
					d.page("/console/" + path)
				}
			})
		}
	}
}

// counted drops what is written and notes how much memory is in use meanwhile.
type counted struct {
	rows int
	heap uint64
}

func (*counted) Header() http.Header { return http.Header{} }
func (*counted) WriteHeader(int)     {}

func (c *counted) Write(text []byte) (int, error) {
	c.rows += bytes.Count(text, []byte("\n"))
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c.heap = max(c.heap, m.HeapInuse)
	return len(text), nil
}

// BenchmarkExport downloads a list of 1,000,000 assets as CSV, the newest first and in a
// chosen order.
func BenchmarkExport(b *testing.B) {
	d := openConsole(b, storetest.SQLite(b), "2026-01-14T21:40:00Z")
	d.large("sqlite", 1_000_000)
	d.login()

	for _, query := range []string{"", "?sort=-power", "?sort=asset"} {
		b.Run("assets.csv"+query, func(b *testing.B) {
			for b.Loop() {
				runtime.GC()
				r := httptest.NewRequest("GET", "http://localhost/console/assets.csv"+query, nil)
				r.AddCookie(d.cookie)
				w := &counted{}
				d.handler.ServeHTTP(w, r)
				if w.rows != 1_000_001 {
					b.Fatal(w.rows)
				}

				b.ReportMetric(float64(w.heap)/(1<<20), "MiB")
			}
		})
	}
}

// BenchmarkCountPast counts half a day of 100,000 cars' past, and shows it.
func BenchmarkCountPast(b *testing.B) {
	for engine, url := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		if engine == "postgres" && os.Getenv(storetest.Env) == "" {
			continue
		}

		d := openConsole(b, url(b), "2026-01-14T21:40:00Z")
		d.large(engine, 100_000)
		d.Exec(`UPDATE asset SET created_at = $1`, at("2026-01-14T21:20:00Z").UnixMicro())
		d.Exec(`UPDATE org SET name = 'Large' WHERE id = $1`, d.Org.Bytes())
		d.login()
		d.goTo("2026-01-15T08:10:00Z")

		b.Run(engine+"/count", func(b *testing.B) {
			for b.Loop() {
				d.Exec(`DELETE FROM fleet_half_hour`)
				if done, err := d.server.Operations.CountPast(b.Context()); err != nil || done.Count != 22 {
					b.Fatal(done.Count, err)
				}
			}
		})

		for _, path := range []string{"past", "readings/fleet"} {
			b.Run(engine+"/"+path, func(b *testing.B) {
				for b.Loop() {
					d.page("/console/" + path)
				}
			})
		}
	}
}
