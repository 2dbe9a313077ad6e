package delivery_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/delivery"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/worker"
)

// bench is a store with the delivery service at work on real sockets.
type bench struct {
	testing.TB
	*storetest.Seed
	db      *store.DB
	service *delivery.Service
}

func openBench(b *testing.B, url string, receive http.HandlerFunc) *bench {
	b.Helper()
	y := &bench{TB: b}
	y.db = storetest.Open(b, url, store.Options{})
	y.Seed = storetest.NewSeed(b, y.db, url)
	out := egress.New(egress.Options{Allow: egress.Private})
	y.service = &delivery.Service{DB: y.db, Out: out, PlainHTTP: true, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	l := httptest.NewServer(receive)
	s := delivery.Settings{URL: l.URL + "/chargers/{external_id}", Rate: delivery.RateMax, Concurrency: 256}
	if _, _, err := y.service.SetEndpoint(b.Context(), y.Org, flex.ScheduleEndpoint, s); err != nil {
		b.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	w := &worker.Worker{Name: "push", Every: time.Second, Wake: y.db.Waker(store.WakePush), Job: y.service.DispatchDue}
	var done sync.WaitGroup
	done.Go(func() { w.Run(ctx) })
	b.Cleanup(func() { cancel(); done.Wait(); y.service.Close(); out.Close(); l.Close() })

	return y
}

func (y *bench) write(fn func(ctx context.Context, tx *store.Tx) error) {
	if err := y.db.Write(context.Background(), y.Org, func(tx *store.Tx) error { return fn(context.Background(), tx) }); err != nil {
		y.Error(err)
	}
}

// chargers makes n chargers at one site.
func (y *bench) chargers(n int) (ids []flex.AssetID) {
	site := y.Site(flex.FullScheduleMethod)
	for chunk := range slices.Chunk(make([]struct{}, n), 1000) {
		var text []string
		var args []any
		for range chunk {
			id := flex.AssetID(flex.MakeID[struct{}](time.Now(), [10]byte{7: byte(len(ids) >> 16), 8: byte(len(ids) >> 8), 9: byte(len(ids))}))
			ids = append(ids, id)
			args = append(args, id.Bytes(), y.Org.Bytes(), site.Bytes(), id.String())
			k := len(args)
			text = append(text, fmt.Sprintf("($%d, $%d, $%d, $%d, 'charger', 7400, 0)", k-3, k-2, k-1, k))
		}

		y.Exec(`INSERT INTO asset (id, org_id, site_id, external_id, type, power_w, created_at) VALUES `+strings.Join(text, ", "), args...)
	}

	return ids
}

// plan commits the next schedule of each asset and returns their pushes.
func (y *bench) plan(assets []flex.AssetID) (ps []store.Push) {
	y.write(func(ctx context.Context, tx *store.Tx) error {
		ps = nil
		for _, a := range assets {
			s, err := schedule(ctx, tx, a, time.Hour)
			if err != nil {
				return err
			}
			ps = append(ps, store.Push{AssetID: a, EventID: s.EventID, Kind: store.SchedulePush, Generation: s.Generation, ExpiresAt: s.End()})
		}
		return nil
	})
	return ps
}

// BenchmarkDeliveries has one endpoint on this machine take b.N pushes that are all due.
func BenchmarkDeliveries(b *testing.B) {
	storetest.EachBench(b, func(b *testing.B, url string) {
		var got atomic.Int64
		all := make(chan struct{})
		want := int64(b.N)
		y := openBench(b, url, func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if got.Add(1) == want {
				close(all)
			}
		})

		assets := y.chargers(b.N)
		var ps []store.Push
		for chunk := range slices.Chunk(assets, 1000) {
			ps = append(ps, y.plan(chunk)...)
		}

		b.ResetTimer()
		y.write(func(ctx context.Context, tx *store.Tx) error { return tx.Enqueue(ctx, ps...) })
		<-all
		b.StopTimer()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
	})
}

// BenchmarkLatency commits 500 schedules a second, each in a transaction of its own, and
// measures from before the transaction to the push's arrival.
func BenchmarkLatency(b *testing.B) {
	storetest.EachBench(b, func(b *testing.B, url string) {
		var mu sync.Mutex
		begun := map[string]time.Time{}
		var took []time.Duration
		var wait sync.WaitGroup
		y := openBench(b, url, func(_ http.ResponseWriter, r *http.Request) {
			now := time.Now()
			io.Copy(io.Discard, r.Body)
			mu.Lock()
			took = append(took, now.Sub(begun[r.Header.Get("Flexd-Asset-Id")]))
			mu.Unlock()
			wait.Done()
		})

		assets := y.chargers(b.N)
		b.ResetTimer()
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()

		for _, a := range assets {
			<-tick.C
			mu.Lock()
			begun[a.String()] = time.Now()
			mu.Unlock()
			wait.Add(1)
			go y.write(func(ctx context.Context, tx *store.Tx) error {
				s, err := schedule(ctx, tx, a, time.Hour)
				if err != nil {
					return err
				}

				return tx.Enqueue(ctx, store.Push{AssetID: a, EventID: s.EventID, Kind: store.SchedulePush, Generation: s.Generation,
					Value: store.Urgent, ExpiresAt: s.End()})
			})
		}

		wait.Wait()
		b.StopTimer()
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	})
}
