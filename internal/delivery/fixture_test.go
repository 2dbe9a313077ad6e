package delivery_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flexd/client"
	"flexd/internal/delivery"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/worker"
)

// fixture is a store in a bubble with the delivery service at work, and endpoints that are pipes.
type fixture struct {
	*testing.T
	*storetest.Seed
	db      *store.DB
	service *delivery.Service
	site    flex.SiteID
	net     *pipes
	start   time.Time
	skew    time.Duration // of the store's clock
}

// each runs a test in a bubble on each engine: first at midnight on 1 January 2000.
func each(t *testing.T, test func(h *fixture)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(open(t, storetest.SQLite(t))) })
	})
	t.Run("postgres", func(t *testing.T) {
		url := storetest.Postgres(t)
		synctest.Test(t, func(t *testing.T) { test(open(t, url)) })
	})
}

// one is each on SQLite alone.
func one(t *testing.T, test func(h *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(open(t, storetest.SQLite(t))) })
}

func open(t *testing.T, url string) *fixture {
	t.Helper()
	h := &fixture{T: t, net: &pipes{}, start: time.Now()}
	h.db = storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return time.Now().Add(h.skew) }})
	h.Seed = storetest.NewSeed(t, h.db, url)
	h.site = h.Site(flex.FullScheduleMethod)
	h.service = h.newService()
	return h
}

// tenant returns the same fixture as another organisation sees it.
func (h *fixture) tenant(name string) *fixture {
	h.Helper()
	org, err := h.db.AddOrg(context.Background(), name)
	if err != nil {
		h.Fatal(err)
	}
	o := *h
	o.Seed = h.As(org.ID)
	o.site = o.Site(flex.FullScheduleMethod)
	return &o
}

// settle waits until everything due has been tried.
func (h *fixture) settle() {
	h.Helper()
	if err := h.service.Drain(context.Background(), h.Org); err != nil {
		h.Fatal(err)
	}
}

// newService returns a delivery service of the same store, like that of another process.
func (h *fixture) newService() *delivery.Service {
	out := egress.New(egress.Options{Pipe: h.net.dial})
	h.Cleanup(out.Close)
	return &delivery.Service{DB: h.db, Out: out, BaseURL: "https://flexd.example", PlainHTTP: true,
		Jitter: func([16]byte, int) float64 { return 0.5 }, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// work has the service deliver until the returned function is called.
func (h *fixture) work(d *delivery.Service) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	w := &worker.Worker{Name: "push", Every: time.Hour, Wake: h.db.Waker(store.WakePush), Job: d.DispatchDue, Log: d.Log}
	var done sync.WaitGroup
	done.Go(func() { w.Run(ctx) })
	return func() {
		cancel()
		done.Wait()
		d.Close()
	}
}

// write runs a transaction of the organisation's.
func (h *fixture) write(fn func(ctx context.Context, tx *store.Tx) error) {
	h.Helper()
	ctx := context.Background()
	if err := h.db.Write(ctx, h.Org, func(tx *store.Tx) error { return fn(ctx, tx) }); err != nil {
		h.Fatal(err)
	}
}

// metric returns the sum of a counter or gauge of flexd's service.
func (h *fixture) metric(name string) (sum float64) {
	h.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(h.service.Collectors()...)
	families, err := r.Gather()
	if err != nil {
		h.Fatal(err)
	}

	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}

	return sum
}

// chargers makes n chargers.
func (h *fixture) chargers(n int) (ids []flex.AssetID) {
	h.Helper()
	for range n {
		ids = append(ids, h.Asset(h.site, flex.Charger, 7400))
	}
	return ids
}

// plan commits a next schedule for each asset, for the time, and returns the pushes' ids.
func (h *fixture) plan(life time.Duration, assets ...flex.AssetID) (events []flex.EventID) {
	h.Helper()
	h.write(func(ctx context.Context, tx *store.Tx) error {
		events = nil
		var ps []store.Push
		for _, a := range assets {
			s, err := schedule(ctx, tx, a, life)
			if err != nil {
				return err
			}

			events = append(events, s.EventID)
			ps = append(ps, store.Push{AssetID: a, EventID: s.EventID, Kind: store.SchedulePush, Generation: s.Generation, ExpiresAt: s.End()})
		}

		return tx.Enqueue(ctx, ps...)
	})

	return events
}

func schedule(ctx context.Context, tx *store.Tx, asset flex.AssetID, life time.Duration) (s store.Schedule, err error) {
	if err := tx.LockAsset(ctx, asset); err != nil {
		return s, err
	}

	c, err := tx.PlanningState(ctx, asset)
	if err != nil {
		return s, err
	}

	if !c.Open() {
		if err := tx.OpenSession(ctx, &c, 0); err != nil {
			return s, err
		}
	}

	from := tx.Now().Truncate(time.Second)
	s.Cause = store.CauseIntent
	s.From.Mode, s.From.ReadyBy, s.From.CountFrom = flex.Maximise, from.Add(life), from
	s.Steps = []flex.Step{{Span: flex.Span{From: from, To: from.Add(life)}, Limit: flex.Watts(c.Session.Generation + 1)}}
	err = tx.AddSchedule(ctx, &c.Session, &s)

	return s, err
}

// unplug ends the asset's session.
func (h *fixture) unplug(asset flex.AssetID) {
	h.Helper()
	h.write(func(ctx context.Context, tx *store.Tx) error {
		if err := tx.LockAsset(ctx, asset); err != nil {
			return err
		}

		c, err := tx.PlanningState(ctx, asset)
		if err != nil {
			return err
		}

		if err := tx.CloseSession(ctx, &c.Session); err != nil {
			return err
		}

		return tx.Retract(ctx, asset)
	})
}

// state returns what has become of a push.
func (h *fixture) state(id flex.EventID) flex.DeliveryState {
	h.Helper()
	d, err := h.service.Delivery(context.Background(), h.Org, id)
	if err != nil {
		h.Fatal(err)
	}
	return d.State
}

// endpoint sets the organisation's schedule endpoint and serves it with answer, which may
// be nil for 200.
func (h *fixture) endpoint(answer http.HandlerFunc) *endpoint {
	h.Helper()
	return h.endpointOf(h.Org, "client", delivery.Settings{}, answer)
}

func (h *fixture) endpointOf(org flex.OrgID, host string, s delivery.Settings, answer http.HandlerFunc) *endpoint {
	h.Helper()
	if s.URL == "" {
		s.URL = "http://" + host + ".example/chargers/{external_id}?id={asset_id}"
	}
	e, _, err := h.service.SetEndpoint(context.Background(), org, flex.ScheduleEndpoint, s)
	if err != nil {
		h.Fatal(err)
	}
	p := &endpoint{h: h, secret: e.Secret, answer: answer}
	h.net.listen(h.T, host+".example:80", p)
	return p
}

// endpoint is a client's endpoint: it checks every push's signature and remembers it.
type endpoint struct {
	h      *fixture
	secret flex.Secret
	mu     sync.Mutex
	answer http.HandlerFunc
	got    []received
}

type received struct {
	after      time.Duration // since the test began
	until      time.Duration // when it was answered, or broken off
	path       string
	id         string
	asset      string
	generation int64
	body       string
	header     http.Header
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	id, err := client.VerifyWebhook(e.secret.Reveal(), r.Header, body, time.Now())
	if err != nil {
		e.h.Errorf("the signature: %v", err)
	}

	v := received{after: time.Since(e.h.start), path: r.URL.RequestURI(), id: id, asset: r.Header.Get("Flexd-Asset-Id"), body: string(body), header: r.Header}
	fmt.Sscan(r.Header.Get("Flexd-Generation"), &v.generation)
	e.mu.Lock()
	e.got = append(e.got, v)
	answer, i := e.answer, len(e.got)-1
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.got[i].until = time.Since(e.h.start)
	}()

	if answer != nil {
		answer(w, r)
	}
}

// all returns what has come.
func (e *endpoint) all() []received {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]received(nil), e.got...)
}

// say changes how the endpoint answers.
func (e *endpoint) say(answer http.HandlerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = answer
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// pipes is a network within the test.
type pipes struct {
	mu  sync.Mutex
	raw map[string]func(net.Conn)
}

func (p *pipes) dial(_ context.Context, addr string) (net.Conn, error) {
	p.mu.Lock()
	serve := p.raw[addr]
	p.mu.Unlock()
	if serve == nil {
		return nil, &net.OpError{Op: "dial", Err: fmt.Errorf("nothing listens at %s", addr)}
	}
	here, there := net.Pipe()
	go serve(there)
	return here, nil
}

// handle has connections to the address served by a function; nil has nothing listen.
func (p *pipes) handle(addr string, serve func(net.Conn)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.raw == nil {
		p.raw = map[string]func(net.Conn){}
	}
	p.raw[addr] = serve
}

// listen has an HTTP server answer at the address until the test ends.
func (p *pipes) listen(t *testing.T, addr string, h http.Handler) {
	l := &listener{conns: make(chan net.Conn), done: make(chan struct{})}
	s := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	p.handle(addr, func(c net.Conn) {
		select {
		case l.conns <- c:
		case <-l.done:
			c.Close()
		}
	})
}

type listener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }
