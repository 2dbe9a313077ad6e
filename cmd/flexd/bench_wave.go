package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"time"

	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/lab/bench"
	records "flexd/internal/store"
)

// benchWaveCommand measures a wave: after new prices every plugged-in car is planned again,
// and the changes are stored and put into the outbox. It then measures the delivery to the
// client's endpoint.
type benchWaveCommand struct {
	Database  string `help:"An empty store to run on; a temporary SQLite file if not given." aliases:"db" placeholder:"URL"`
	Cars      int    `help:"How many cars are plugged in." default:"100000"`
	Processes int    `name:"processes" aliases:"houses" help:"Share the work of a second wave among so many processes on one PostgreSQL: this one, and others that it starts." default:"1"`
	JSON      bool   `name:"json" help:"Print JSON instead of a table."`
}

// The greatest time and memory for a wave of 100,000 cars, on either engine. For a fleet of
// another size the time is scaled, and the memory is not.
const (
	benchWaveSQLite   = 3 * time.Second
	benchWavePostgres = 4 * time.Second
	benchWaveCars     = 100_000
	benchWaveMiB      = 300
)

// waveBench is a benchmark under way.
type waveBench struct {
	ownWorker
	others []*process // on the same store
	cars   []flex.AssetID
	sink   waveSink
}

// Run prints the table.
func (b *benchWaveCommand) Run(ctx context.Context, c console) error {
	carsInReach := b.Cars >= 1 && b.Cars <= 1_000_000
	processesInReach := b.Processes >= 1 && b.Processes <= 16
	if !carsInReach || !processesInReach {
		return flex.Fail(
			flex.Invalid,
			"--cars is 1 to 1000000 and --processes 1 to 16, not %d and %d",
			b.Cars,
			b.Processes,
		)
	}

	if b.Processes > 1 && !strings.HasPrefix(b.Database, "postgres") {
		return flex.Fail(
			flex.Invalid,
			"several processes share a store on PostgreSQL: give --database postgres://…",
		)
	}

	h, done, err := openEmptyBench(ctx, b.Database, c)
	if err != nil {
		return err
	}

	defer done()

	w := &waveBench{ownWorker: ownWorker{App: h}}
	if err := w.fill(ctx, b.Cars); err != nil {
		return err
	}

	rows, err := w.measure(ctx, b, c)
	if err != nil {
		return err
	}

	if b.JSON {
		return c.json(rows)
	}

	return bench.Print(c.out, rows)
}

// measure runs a wave that is planned and delivered by this process alone. If there are to be
// more processes, it then runs another wave with all of them.
func (w *waveBench) measure(
	ctx context.Context,
	b *benchWaveCommand,
	c console,
) ([]bench.Row, error) {
	stop, err := w.listen(ctx)
	if err != nil {
		return nil, err
	}

	defer stop()
	falling := func(i int) float64 { return 100 - float64(i) }
	rising := func(i int) float64 { return 50 + float64(i) }

	single, err := w.wave(ctx, falling)
	if err != nil || b.Processes == 1 {
		return w.rows(single, nil), err
	}

	workersCtx, stopWorkers := context.WithCancel(ctx)
	defer func() {
		stopWorkers()
		for _, p := range w.others {
			p.cmd.Wait()
		}
	}()

	for len(w.others) < b.Processes-1 {
		p, err := startWorker(workersCtx, b.Database, w.org, c)
		if err != nil {
			return nil, err
		}
		w.others = append(w.others, p)
	}

	if err := w.rest(ctx); err != nil {
		return nil, err
	}

	parallel, err := w.wave(ctx, rising)
	for _, p := range w.others {
		err = errors.Join(err, p.end())
	}

	return w.rows(parallel, &single), err
}

// waveResult is a wave that was planned and delivered.
type waveResult struct {
	planned   time.Duration
	delivered time.Duration
	by        []waveShare // each process's
}

func (v *waveResult) sum() waveShare {
	var s waveShare
	for _, p := range v.by {
		s.Changed += p.Changed
		s.Tried += p.Tried
		s.MiB = max(s.MiB, p.MiB)
	}

	return s
}

// list writes something of each process's share.
func (v *waveResult) list(of func(waveShare) int) string {
	var parts []string
	for _, p := range v.by {
		parts = append(parts, fmt.Sprint(of(p)))
	}

	return strings.Join(parts, " + ")
}

// rows is the table; with several processes it also has the time that one process took.
func (w *waveBench) rows(v waveResult, single *waveResult) []bench.Row {
	n, sum := len(w.cars), v.sum()
	target := benchWaveSQLite

	if w.DB.Engine() == "postgres" {
		target = benchWavePostgres
	}

	target = target * time.Duration(n) / benchWaveCars
	rows := []bench.Row{{
		What: fmt.Sprintf(
			"wave: %d plugged-in cars planned again on %s by %d, %d changed and stored",
			n,
			w.DB.Engine(),
			len(v.by),
			sum.Changed,
		),
		Target: fmt.Sprintf("each changed, <= %v", target),
		Here:   v.planned.Round(time.Millisecond).String(),
		Met:    v.planned <= target && sum.Changed == n,
	}}

	rows = append(rows, w.resources(n, v)...)
	if single != nil {
		rows = append(rows, compareToSingle(n, v, single)...)
	}

	return rows
}

// resources describes the memory that the wave used, and the results of its n pushes.
func (w *waveBench) resources(n int, v waveResult) []bench.Row {
	sum := v.sum()
	return []bench.Row{{
		What:   "memory of a process at the most",
		Target: fmt.Sprintf("<= %d MiB", benchWaveMiB),
		Here:   fmt.Sprintf("%d MiB", sum.MiB),
		Met:    sum.MiB <= benchWaveMiB,
	}, {
		What:   fmt.Sprintf("%d pushes delivered by %d", n, len(v.by)),
		Target: fmt.Sprintf(">= %d a second", benchDeliverTarget),
		Here:   fmt.Sprintf("%.0f a second", float64(n)/v.delivered.Seconds()),
		Met:    float64(n) >= benchDeliverTarget*v.delivered.Seconds(),
	}, {

		What:   "of them twice",
		Target: "0",
		Here:   fmt.Sprint(w.sink.duplicates),
		Met:    w.sink.duplicates == 0,
	}, {
		What:   "an older schedule after a newer",
		Target: "0",
		Here:   fmt.Sprint(w.sink.older),
		Met:    w.sink.older == 0,
	}}
}

// compareToSingle compares a wave of several processes with one of a single process.
func compareToSingle(n int, v waveResult, single *waveResult) []bench.Row {
	sum := v.sum()
	times := func(one, all time.Duration) string {
		return fmt.Sprintf(
			"%v, %.2f times as long",
			one.Round(time.Millisecond),
			one.Seconds()/all.Seconds(),
		)
	}

	return []bench.Row{
		{
			What:   "schedules changed, by each process",
			Target: "each once",
			Here:   v.list(func(s waveShare) int { return s.Changed }),
			Met:    sum.Changed == n,
		},
		{
			What:   "pushes, by each process",
			Target: "each once",
			Here:   v.list(func(s waveShare) int { return s.Tried }),
			Met:    sum.Tried == n,
		},
		{
			What:   "such a wave by one process alone",
			Target: "to compare",
			Here:   times(single.planned, v.planned),
			Met:    true,
		},
		{
			What:   "such a delivery by one process alone",
			Target: "to compare",
			Here:   times(single.delivered, v.delivered),
			Met:    true,
		},
	}
}

// benchNight is the time for which the cars are plugged in.
const benchNight = 12 * time.Hour

// plugIn plugs in the cars.
func (w *waveBench) plugIn(ctx context.Context) error {
	return w.eachCar(func(i int) error { return w.plugInCar(ctx, i) })
}

// eachCar does something for each car, by many workers at once. A worker ends with its first
// failure.
func (w *waveBench) eachCar(do func(i int) error) error {
	const workers = 64
	var wait sync.WaitGroup
	errs := make([]error, workers)

	for worker := range workers {
		wait.Go(func() {
			for i := worker; i < len(w.cars) && errs[worker] == nil; i += workers {
				errs[worker] = do(i)
			}
		})
	}

	wait.Wait()

	return errors.Join(errs...)
}

// plugInCar plugs in a car with its own need.
func (w *waveBench) plugInCar(ctx context.Context, i int) error {
	by := time.Now().Add(benchNight)
	ready := flex.WallTime(time.Duration(by.In(flex.London).Hour()) * time.Hour)
	in := flex.Intent{
		Need:         flex.WattHours(5000 + 100*(i*7919%200)),
		ReadyByLocal: &ready,
		ReadyBy:      by,
		Mode:         flex.Minimise,
	}

	return w.Control.Event(
		ctx,
		w.org,
		w.cars[i],
		control.Event{Kind: control.PlugIn, Intent: &in},
	)
}

// publish makes prices known from now on, in £/MWh by half-hour.
func (w *waveBench) publish(
	ctx context.Context,
	price func(i int) float64,
) error {
	var ps []flex.PricedPeriod
	for i := range 2 * int(benchNight/flex.HalfHour) {
		ps = append(ps, flex.PricedPeriod{
			Period: flex.PeriodAt(time.Now()).Add(i),
			Price:  flex.FromGBPPerMWh(price(i)),
			Known:  true,
		})
	}

	return w.Publish(ctx, "bench", time.Time{}, ps)
}

// rest lets the organisation's time pass that must lie between two waves of an asset.
func (w *waveBench) rest(ctx context.Context) error {
	return w.DB.Write(ctx, w.org, func(tx *records.Tx) error {
		return tx.SetClock(ctx, control.MarketInterval+time.Minute)
	})
}

// wave publishes prices. All processes then plan the fleet again and deliver what changed.
func (w *waveBench) wave(
	ctx context.Context,
	price func(i int) float64,
) (waveResult, error) {
	if err := w.publish(ctx, price); err != nil {
		return waveResult{}, err
	}

	var v waveResult
	v.by = make([]waveShare, 1+len(w.others))

	var err error
	v.planned, err = w.all(v.by, func(h waveWorker) (waveShare, error) {
		return h.plan(ctx)
	})
	if err != nil {
		return v, err
	}

	all := w.sink.expect(len(w.cars))

	set := delivery.Settings{
		URL:         w.sink.url,
		Rate:        delivery.RateMax,
		Concurrency: 256,
	}

	if _, _, err := w.Push.SetEndpoint(
		ctx,
		w.org,
		flex.ScheduleEndpoint,
		set,
	); err != nil {
		return v, err
	}

	v.delivered, err = w.deliverAll(ctx, v.by, all)

	return v, err
}

// deliverAll lets all processes deliver until every push has arrived. It returns the time that
// this took.
func (w *waveBench) deliverAll(
	ctx context.Context,
	by []waveShare,
	all <-chan struct{},
) (time.Duration, error) {
	start := time.Now()
	delivered := make(chan error, 1)
	go func() {
		_, err := w.all(by, func(h waveWorker) (waveShare, error) {
			return h.deliver(ctx)
		})
		delivered <- err
	}()

	var err error
	select {
	case <-all:
	case <-time.After(5 * time.Minute):
		err = errors.New("not every push came within five minutes")
	case <-ctx.Done():
		err = ctx.Err()
	}

	took := time.Since(start)

	return took, errors.Join(err, <-delivered)
}

// all makes every process do something at once, and adds up their results.
func (w *waveBench) all(
	by []waveShare,
	do func(waveWorker) (waveShare, error),
) (time.Duration, error) {
	workers := []waveWorker{w.ownWorker}
	for _, p := range w.others {
		workers = append(workers, p)
	}

	var wait sync.WaitGroup
	errs := make([]error, len(workers))
	start := time.Now()

	for i, worker := range workers {
		wait.Go(func() {
			var s waveShare
			s, errs[i] = do(worker)
			by[i] = waveShare{
				by[i].Changed + s.Changed,
				by[i].Tried + s.Tried,
				max(by[i].MiB, s.MiB),
				"",
			}
		})
	}

	wait.Wait()

	return time.Since(start), errors.Join(errs...)
}

// peakMemory returns the most memory that the process used until the context ended, in MiB.
func peakMemory(ctx context.Context) int {
	s := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}

	var mib int
	for ctx.Err() == nil {
		metrics.Read(s)
		mib = max(mib, int((s[0].Value.Uint64()-s[1].Value.Uint64())>>20))
		time.Sleep(10 * time.Millisecond)
	}

	return mib
}

// waveSink receives the pushes of waves. It counts those that arrive twice, and those that
// arrive after a newer one of the same asset.
type waveSink struct {
	url string

	mu         sync.Mutex
	remaining  int // pushes still expected
	all        chan struct{}
	received   map[string]struct{} // webhook ids
	newest     map[string]int64    // generations, by asset
	duplicates int
	older      int
}

// expect begins to count n new pushes, and returns a channel that is closed when all have
// arrived.
func (s *waveSink) expect(n int) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remaining, s.all = n, make(chan struct{})
	return s.all
}

// ServeHTTP receives a push.
func (s *waveSink) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	id, asset := r.Header.Get("webhook-id"), r.Header.Get("Flexd-Asset-Id")
	generation, _ := strconv.ParseInt(r.Header.Get("Flexd-Generation"), 10, 64)
	s.mu.Lock()
	defer s.mu.Unlock()

	if generation < s.newest[asset] {
		s.older++
	}

	s.newest[asset] = max(s.newest[asset], generation)
	if _, repeated := s.received[id]; repeated {
		s.duplicates++
		return
	}

	s.received[id] = struct{}{}
	if s.remaining--; s.remaining == 0 {
		close(s.all)
	}
}

// listen opens the endpoint.
func (w *waveBench) listen(ctx context.Context) (stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}

	s := &w.sink
	s.url = "http://" + l.Addr().String() + "/{external_id}"
	s.received = map[string]struct{}{}
	s.newest = map[string]int64{}
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
	}

	go server.Serve(l)

	return func() { server.Close() }, nil
}
