package app_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

var eventAssets = flag.Int("assets", 1_000, "assets of BenchmarkProvisional; 10,000 need 3 GB of disk on SQLite, 6 GB on PostgreSQL")

// BenchmarkProvisional ends an event of every asset of a fleet at once. Each waits for the
// reading of its last half-hour; these come over HTTP in batches of 1,000, from four clients.
// Of each event it is told how long after the answer to its batch the provisional result was
// there to be read. All half-hours of the 60 days before are kept, and an event of every other
// day, which waits for nothing but to become final.
func BenchmarkProvisional(b *testing.B) {
	storetest.EachBench(b, benchProvisional)
}

const (
	eventBatch = 1_000
	eventFirst = 35 // 17:00 to 19:00
	eventLast  = 38
	eventBack  = 60 // days of readings before
)

func benchProvisional(b *testing.B, database string) {
	e := eventFleet{day: flex.Day{Year: 2026, Month: time.March, Dom: 19}, acked: map[string]time.Time{}}
	e.open(b, database)
	e.fill(b)
	e.serve(b)
	e.settled(b, func(missing int) bool { return missing == len(e.assets) }) // all wait for their last reading
	began := time.Now()
	b.ResetTimer()
	var clients sync.WaitGroup
	batches := make(chan []flex.AssetID)

	for range benchWriters {
		clients.Go(func() {
			for batch := range batches {
				e.report(b, batch)
			}
		})
	}

	go func() {
		defer close(batches)
		for batch := range slices.Chunk(e.assets, eventBatch) {
			batches <- batch
		}
	}()

	took := e.watch(b)
	clients.Wait()
	at := func(share float64) float64 { return took[int(share*float64(len(took)-1))].Seconds() }
	b.ReportMetric(at(0.5), "p50-s")
	b.ReportMetric(at(0.99), "p99-s")
	b.ReportMetric(at(1), "max-s")
	b.ReportMetric(provisionalMost.Seconds(), "limit-s")
	b.ReportMetric(time.Since(began).Seconds(), "all-s")
	if at(1) > provisionalMost.Seconds() {
		b.Errorf("%d events: the last provisional result came %.1f s after its last reading", len(took), at(1))
	}
}

// eventFleet is a fleet whose events are over, in a flexd at work.
type eventFleet struct {
	*storetest.Seed
	app         *app.App
	base, token string
	day         flex.Day
	assets      []flex.AssetID
	ahead       time.Duration // of flexd's clock

	mu    sync.Mutex
	acked map[string]time.Time // by asset: when its last reading was acknowledged
}

func (e *eventFleet) open(b *testing.B, database string) {
	e.ahead = time.Until(e.day.Period(eventLast).End())
	var err error
	e.app, err = app.Open(b.Context(), app.Settings{
		Database: database, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: func() time.Time { return time.Now().Add(e.ahead) },
	})
	if err != nil {
		b.Fatal(err)
	}
	org, password, err := e.app.Access.AddOrg(b.Context(), "acme", "acme", "")
	if err != nil {
		b.Fatal(err)
	}

	e.Seed = storetest.NewSeed(b, e.app.DB, database).As(org.ID)
	err = e.app.DB.Write(b.Context(), org.ID, func(tx *store.Tx) error { return tx.PutTerm(b.Context(), flex.Term{Name: "user_share", Value: "0.5"}) })
	if err != nil {
		b.Fatal(err)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	e.base = "http://" + l.Addr().String()
	server := &http.Server{Handler: e.app.Handler(), ReadHeaderTimeout: time.Minute}
	go server.Serve(l)
	b.Cleanup(func() { server.Close(); e.app.Close() })
	e.token = logIn(b, e.base, "acme", password)
}

// fill makes the fleet, a site for each asset, with all readings but the last.
func (e *eventFleet) fill(b *testing.B) {
	n := *eventAssets
	site := func(i int) []byte { return flex.SiteID(numbered(1, i)).Bytes() }
	e.Rows("site", strings.Fields("id org_id consent_at created_at"), n, func(i int) []any { return []any{site(i), e.Org.Bytes(), 1, 0} })
	e.Rows("consent_span", strings.Fields("site_id org_id from_at known_at"), n, func(i int) []any { return []any{site(i), e.Org.Bytes(), 1, 1} })
	e.Rows("asset", strings.Fields("id org_id site_id external_id type created_at"), n, func(i int) []any {
		e.assets = append(e.assets, flex.AssetID(numbered(2, i)))
		return []any{e.assets[i].Bytes(), e.Org.Bytes(), site(i), e.assets[i].String(), string(flex.Charger), 0}
	})

	first := e.day.Add(-eventBack).Start()
	e.Readings(flex.PeriodAt(first), e.day.Period(eventLast).Sub(flex.PeriodAt(first)))
	columns := strings.Fields("id org_id site_id asset_id day first last from_at to_at meant nominated detected_at estimated look_at")
	energies := strings.TrimSpace(strings.Repeat("1000 ", eventLast-eventFirst+1))
	for back := 0; back <= eventBack; back += 2 {
		day, look := e.day.Add(-back), e.day.Add(90).Start().UnixMicro()
		if back == 0 {
			look = 0
		}
		e.Rows("flex_event", columns, n, func(i int) []any {
			return []any{flex.FlexEventID(numbered(byte(3+back), i)).Bytes(), e.Org.Bytes(), site(i), e.assets[i].Bytes(), day.String(), eventFirst, eventLast,
				day.Period(eventFirst).Start().UnixMicro(), day.Period(eventLast).End().UnixMicro(), energies, energies, 0, 0, look}
		})
	}

	var prices []flex.PricedPeriod
	for n := eventFirst; n <= eventLast; n++ {
		prices = append(prices, flex.PricedPeriod{Period: e.day.Period(n), Price: flex.FromGBPPerMWh(100), Known: true})
	}
	if err := e.app.Publish(b.Context(), "bench", time.Time{}, prices); err != nil {
		b.Fatal(err)
	}
	if e.app.DB.Engine() == "postgres" {
		e.Exec(`ANALYZE site, asset, reading, flex_event`) // as the server does by itself in time; of empty tables it does not
	}
}

func numbered(kind byte, i int) [16]byte {
	return [16]byte{0: 1, 6: 0x70, 7: kind, 8: 0x80, 12: byte(i >> 24), 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)}
}

// serve has flexd's background jobs run until the benchmark ends.
func (e *eventFleet) serve(b *testing.B) {
	ctx, stop := context.WithCancel(b.Context())
	served, nobody := make(chan error, 1), make(unused)
	go func() { served <- e.app.Serve(ctx, nobody) }()
	b.Cleanup(func() { stop(); <-served })
}

// settled waits until so many of the day's events wait for a reading.
func (e *eventFleet) settled(b *testing.B, enough func(missing int) bool) {
	for !enough(e.Count(`SELECT count(*) FROM flex_event WHERE day = $1 AND missing = 1`, e.day.String())) {
		time.Sleep(100 * time.Millisecond)
	}
}

// report posts the last readings of some assets.
func (e *eventFleet) report(b *testing.B, assets []flex.AssetID) {
	var body bytes.Buffer
	span, sep := e.day.Period(eventLast).Span(), `{"readings":[`
	for _, id := range assets {
		fmt.Fprintf(&body, `%s{"asset_id":"%s","start_timestamp":"%s","end_timestamp":"%s","value":0.25,"label":"charger_consumption_energy_kwh"}`,
			sep, id, span.From.Format(time.RFC3339), span.To.Format(time.RFC3339))
		sep = ","
	}
	body.WriteString("]}")
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, e.base+"/data/readings", &body)
	if err != nil {
		b.Error(err)
		return
	}

	r.Header.Set("Authorization", "Bearer "+e.token)
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Error(err)
		return
	}
	defer a.Body.Close()
	answer, err := io.ReadAll(a.Body)
	if n := bytes.Count(answer, []byte(`"accepted":true`)); err != nil || n != len(assets) {
		b.Errorf("%d of %d readings accepted: %s %v", n, len(assets), a.Status, err)
	}

	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range assets {
		e.acked[id.String()] = now
	}
}

// watch looks for provisional results until all are there, and returns how long after the
// acknowledgement each was found, in order. A result may be there before its batch is answered.
func (e *eventFleet) watch(b *testing.B) (took []time.Duration) {
	const look, most = 50 * time.Millisecond, 10 * time.Minute
	seen := map[string]time.Time{}

	for began := time.Now(); len(seen) < len(e.assets); time.Sleep(look) {
		found := e.Strings(`SELECT a.external_id FROM ledger l JOIN asset a ON a.site_id = l.site_id`)
		now := time.Now()
		for _, id := range found {
			if _, before := seen[id]; !before {
				seen[id] = now
			}
		}
		if time.Since(began) > most {
			b.Fatalf("%d of %d results after %v", len(seen), len(e.assets), most)
		}
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	for id, at := range seen {
		took = append(took, max(0, at.Sub(e.acked[id])))
	}
	slices.Sort(took)
	return took
}
