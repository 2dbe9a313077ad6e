package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"sync"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/house"
	"flexd/internal/push"
	"flexd/internal/seal"
	records "flexd/internal/store"
	"flexd/internal/worker"
)

// benchWaveCommand times a wave: new prices, every plugged-in car planned anew, and what
// changed stored with its place in the outbox; and then the way to the client's endpoint.
type benchWaveCommand struct {
	Database string `help:"An empty store to run on; a temporary SQLite file if not given." aliases:"db" placeholder:"URL"`
	Cars     int    `help:"Plugged-in cars." default:"100000"`
	Houses   int    `help:"Share the work as so many processes on one PostgreSQL would: each with connections, rounds and post room of its own." default:"1"`
	JSON     bool   `name:"json" help:"Print JSON in place of a table."`
}

// What a wave of 100,000 may take, on either engine. A fleet of another size may take its
// share of the time, and no less memory.
const (
	benchWaveSQLite   = 3 * time.Second
	benchWavePostgres = 4 * time.Second
	benchWaveCars     = 100_000
	benchWaveMiB      = 300
)

// waveBench is a benchmark under way.
type waveBench struct {
	houses []*house.House // on one store
	org    flex.OrgID
	cars   []flex.AssetID
}

// Run prints the table.
func (b *benchWaveCommand) Run(ctx context.Context, c console) (err error) {
	database := b.Database
	if b.Cars < 1 || b.Cars > 1_000_000 || b.Houses < 1 || b.Houses > 16 {
		return flex.Fail(flex.Invalid, "--cars is 1 to 1000000 and --houses 1 to 16, not %d and %d", b.Cars, b.Houses)
	}
	if b.Houses > 1 && !strings.HasPrefix(database, "postgres") {
		return flex.Fail(flex.Invalid, "several houses share a store on PostgreSQL: give --database postgres://…")
	}
	if database == "" {
		dir, err := os.MkdirTemp("", "flexd-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		database = "sqlite:" + filepath.Join(dir, "flexd.db")
	}
	keys, err := seal.NewRing([seal.KeySize]byte{1}) // of a store that ends with this process
	if err != nil {
		return err
	}
	var w waveBench
	for range b.Houses {
		h, err := house.Open(ctx, house.Settings{
			Database: database, Keys: keys, Environment: flex.Sandbox, AllowPrivateEndpoints: true, RateLimit: push.RateMax,
			Log: slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		if err != nil {
			return err
		}
		defer h.Close()
		w.houses = append(w.houses, h)
	}
	rows, err := w.measure(ctx, b.Cars)
	if err != nil {
		return err
	}
	if b.JSON {
		return c.json(rows)
	}
	return printBench(c.out, rows)
}

func (w *waveBench) measure(ctx context.Context, n int) ([]benchRow, error) {
	if err := w.prepare(ctx, n); err != nil {
		return nil, err
	}
	engine := w.houses[0].DB.Engine()
	took, changed, mib, err := w.wave(ctx)
	if err != nil {
		return nil, err
	}
	target := benchWaveSQLite
	if engine == "postgres" {
		target = benchWavePostgres
	}
	target = target * time.Duration(n) / benchWaveCars
	rows := []benchRow{{
		What:   fmt.Sprintf("wave: %d plugged-in cars planned anew on %s by %d, %d changed and stored", n, engine, len(w.houses), changed),
		Target: fmt.Sprintf("<= %v", target),
		Here:   took.Round(time.Millisecond).String(),
		Met:    took <= target,
	}, {
		What:   "its memory at the most",
		Target: fmt.Sprintf("<= %d MiB", benchWaveMiB),
		Here:   fmt.Sprintf("%d MiB", mib),
		Met:    mib <= benchWaveMiB,
	}}
	s, took, err := w.deliver(ctx)
	if err != nil {
		return nil, err
	}
	per := float64(len(s.got)) / took.Seconds()
	return append(rows, benchRow{
		What:   fmt.Sprintf("%d pushes delivered by %d", len(s.got), len(w.houses)),
		Target: fmt.Sprintf(">= %d a second", benchDeliverTarget),
		Here:   fmt.Sprintf("%.0f a second", per), Met: per >= benchDeliverTarget,
	}, benchRow{What: "of them twice", Target: "0", Here: fmt.Sprint(s.twice), Met: s.twice == 0}), nil
}

// prepare plugs n cars in, each with a need of its own, and plans them on level prices.
func (w *waveBench) prepare(ctx context.Context, n int) error {
	h := w.houses[0]
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- h.Serve(serving, l) }()
	made := &pushBench{house: h, base: "http://" + l.Addr().String(), http: &http.Client{Timeout: 30 * time.Second}}
	if w.org, err = made.prepare(ctx, n); err != nil {
		return err
	}
	stop()
	if err := <-served; err != nil {
		return err
	}
	if w.cars = made.assets; len(w.cars) != n {
		return fmt.Errorf("%d cars of %d", len(w.cars), n)
	}
	if err := w.publish(ctx, func(int) float64 { return 60 }); err != nil {
		return err
	}
	return w.plugIn(ctx)
}

// benchNight is the time for which the cars are plugged in.
const benchNight = 12 * time.Hour

// plugIn has the cars plugged in, by many hands.
func (w *waveBench) plugIn(ctx context.Context) error {
	const hands = 64
	var wait sync.WaitGroup
	errs := make([]error, hands)
	ready := flex.WallTime(time.Duration(time.Now().Add(benchNight).In(flex.London).Hour()) * time.Hour)
	for hand := range hands {
		wait.Go(func() {
			for i := hand; i < len(w.cars) && errs[hand] == nil; i += hands {
				in := flex.Intent{Need: flex.WattHours(5000 + 100*(i*7919%200)), ReadyByLocal: &ready, ReadyBy: time.Now().Add(benchNight), Mode: flex.Minimise}
				errs[hand] = w.houses[i%len(w.houses)].Control.Event(ctx, w.org, w.cars[i], control.Event{Kind: control.PlugIn, Intent: &in})
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// publish makes prices known from now on, in £/MWh by half-hour.
func (w *waveBench) publish(ctx context.Context, price func(i int) float64) error {
	var ps []flex.PricedPeriod
	for i := range 2 * int(benchNight/flex.HalfHour) {
		ps = append(ps, flex.PricedPeriod{Period: flex.PeriodAt(time.Now()).Add(i), Price: flex.FromGBPPerMWh(price(i)), Known: true})
	}
	return w.houses[0].Publish(ctx, "bench", time.Time{}, ps)
}

// wave makes prices known that fall through the night, and returns how long all houses
// together take to plan the fleet anew, how many schedules change, and the memory of this
// process at the most.
func (w *waveBench) wave(ctx context.Context) (took time.Duration, changed, mib int, err error) {
	if err := w.publish(ctx, func(i int) float64 { return 100 - float64(i) }); err != nil {
		return 0, 0, 0, err
	}
	watching, stop := context.WithCancel(ctx)
	peak := make(chan int, 1)
	go func() { peak <- peakMemory(watching) }()
	var wait sync.WaitGroup
	errs, did := make([]error, len(w.houses)), make([]int, len(w.houses))
	start := time.Now()
	for i, h := range w.houses {
		wait.Go(func() {
			var r worker.Report
			r, errs[i] = h.Control.Round(ctx)
			did[i] = r.Did
		})
	}
	wait.Wait()
	took = time.Since(start)
	stop()
	for _, n := range did {
		changed += n
	}
	return took, changed, <-peak, errors.Join(errs...)
}

// peakMemory returns the most memory that the process held until the context ended, in MiB.
func peakMemory(ctx context.Context) (mib int) {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for ctx.Err() == nil {
		metrics.Read(s)
		mib = max(mib, int((s[0].Value.Uint64()-s[1].Value.Uint64())>>20))
		time.Sleep(10 * time.Millisecond)
	}
	return mib
}

// waveSink counts the pushes of a wave.
type waveSink struct {
	mu    sync.Mutex
	want  int
	got   map[string]struct{} // webhook ids
	twice int
	all   chan struct{}
}

// ServeHTTP takes a push.
func (s *waveSink) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	id := r.Header.Get("webhook-id")
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.got[id]; again {
		s.twice++
		return
	}
	s.got[id] = struct{}{}
	if len(s.got) == s.want {
		close(s.all)
	}
}

// deliver sends the newest schedule of every car to an endpoint, all houses at once.
func (w *waveBench) deliver(ctx context.Context) (*waveSink, time.Duration, error) {
	s := &waveSink{want: len(w.cars), got: make(map[string]struct{}, len(w.cars)), all: make(chan struct{})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, 0, err
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(l)
	defer server.Close()
	set := push.Settings{URL: "http://" + l.Addr().String() + "/{external_id}", Rate: push.RateMax, Concurrency: 256}
	if _, _, err := w.houses[0].Push.SetEndpoint(ctx, w.org, records.ScheduleEndpoint, set); err != nil {
		return nil, 0, err
	}
	start := time.Now()
	var wait sync.WaitGroup
	errs := make([]error, len(w.houses))
	for i, h := range w.houses {
		wait.Go(func() { errs[i] = h.Push.Settle(ctx, w.org) })
	}
	select {
	case <-s.all:
	case <-time.After(5 * time.Minute):
		err = errors.New("not every push came within five minutes")
	case <-ctx.Done():
		err = ctx.Err()
	}
	took := time.Since(start)
	wait.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, took, errors.Join(append(errs, err)...)
}
