package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flexd/internal/access"
	"flexd/internal/adr"
	"flexd/internal/api"
	"flexd/internal/books"
	"flexd/internal/console"
	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/directory"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/keyring"
	"flexd/internal/market"
	"flexd/internal/openadr"
	"flexd/internal/operations"
	"flexd/internal/portal"
	"flexd/internal/product"
	"flexd/internal/reading"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/selection"
	"flexd/internal/store"
	"flexd/internal/web"
	"flexd/internal/worker"
)

// Settings are flexd's configuration.
type Settings struct {
	Database string // sqlite:PATH or postgres://…
	// to seal secrets; without it, whatever needs a secret fails
	Keys        *keyring.Ring
	Schema      store.SchemaMode // whether the schema may be migrated
	Environment flex.Environment // Production if empty

	// Home is the store of what all cells share (operators, metering points, prices), if it is
	// another one; nil if it is this one.
	Home *store.DB
	// Cell is the name of this database among Cells, the names of all; empty if it is the only
	// one.
	Cell  string
	Cells []string
	// Elsewhere calls a function with the database of each other cell; nil without other
	// cells.
	Elsewhere func(context.Context, func(*store.DB) error) error

	Log *slog.Logger // nil means the default logger
	// statements of the database that take longer are logged; 0 logs none
	SlowAfter time.Duration

	Retention Retention // how long records are kept

	// Ramp limits how much planned power may change in a minute; 0 is no limit.
	Ramp flex.Ramp

	// AllowPrivateEndpoints permits pushes to all private and loopback addresses,
	// PrivateEndpoints to some.
	AllowPrivateEndpoints bool
	PrivateEndpoints      egress.Reach
	// BaseURL is the interface's own address as clients reach it, for callbacks.
	BaseURL string
	// StatedURL is BaseURL if an operator set it, for the links in alerts; else empty.
	StatedURL string

	TrustedProxies []netip.Prefix // whose X-Forwarded-For is believed
	TLS            *tls.Config    // nil for plain HTTP
	// the header field in which trusted proxies pass on clients' certificates; empty for none
	CertificateHeader string
	// whether every operator needs a code at the login
	TwoStep bool
	// whether a halt from the console needs two people to end
	ResumeByTwo   bool
	PasswordsShut bool // whether operators can log in by SSO only
	// who may read /metrics; nil means only the loopback addresses
	MetricsFrom []netip.Prefix
	// requests a second of one organisation; api.DefaultRate if 0
	RateLimit int
	// of connections, and of the time that clients may take
	Limits web.Limits

	// SSO is the identity provider that operators can sign in at; nil for none.
	SSO *access.SingleSignOn

	PriceSources []string // to be asked for prices, by name
	Carbon       bool     // also ask for the carbon intensity
	InventPrices bool     // generate prices, in a sandbox only
	Meters       MeterDirectory

	// manufacturers' clouds that users can link to their sites
	Clouds []registry.Provider

	// BridgeURL is the --office-listen address of a flexd ocpp, with BridgeToken, by which the
	// console calls chargers; empty for none.
	BridgeURL   string
	BridgeToken flex.Secret

	// Mail sends e-mails to users; nil means that none can be sent.
	Mail *egress.Mailer

	// Pipe makes the connections of pushes in place of sockets, for simulations within
	// testing/synctest.
	Pipe func(ctx context.Context, addr string) (net.Conn, error)

	// Now and Random make a run repeatable; nil means the true clock and crypto/rand.
	Now    func() time.Time
	Random io.Reader
	// DatabaseClock says that Now is a machine's clock. Where it differs from PostgreSQL's
	// clock, the latter is used.
	DatabaseClock bool
	// Disposable says that the database is deleted afterwards, so that nothing is synced to
	// the disk.
	Disposable bool
}

// App is an open flexd.
type App struct {
	DB       *store.DB
	Access   *access.Service
	Registry *registry.Service
	Control  *control.Service
	Push     *delivery.Service
	Reading  *reading.Service
	Reward   *reward.Service
	Books    *books.Service
	Market   *market.Service

	Operations *operations.Service
	Selection  *selection.Service
	Products   *product.Service
	Grid       *grid.Service
	ADR        *adr.Service

	OpenADR *openadr.Server
	API     *api.Server
	Console *console.Server
	Portal  *portal.Server

	Directory *directory.Directory

	log    *slog.Logger
	limits web.Limits

	certificates web.ClientCertificates
	tls          *tls.Config
	jobs         []job
	advances     advances
}

// Open opens the store, migrates its schema if that is permitted, and makes the services and
// transports. Nothing runs until Serve.
func Open(ctx context.Context, s Settings) (*App, error) {
	if s.Log == nil {
		s.Log = slog.Default()
	}

	db, err := store.Open(ctx, s.Database, store.Options{
		Environment: s.Environment,
		Schema:      s.Schema,
		Keys:        s.Keys,
		Now:         s.Now,
		Random:      s.Random,
		SlowAfter:   s.SlowAfter,
		Log:         s.Log,

		DatabaseClock: s.DatabaseClock,
		Disposable:    s.Disposable,
	})
	if err != nil {
		return nil, err
	}

	a := &App{
		DB:     db,
		log:    s.Log,
		limits: s.Limits,
		tls:    s.TLS,

		certificates: web.ClientCertificates{
			Header:  s.CertificateHeader,
			Proxies: s.TrustedProxies,
		},
	}

	if err := a.openServices(ctx, s); err != nil {
		db.Close()
		return nil, err
	}

	a.openTransports(s)
	if err := a.collectMetrics(); err != nil {
		db.Close()
		return nil, err
	}

	a.addJobs(len(s.Clouds) > 0)

	return a, nil
}

// Retention is how long records are kept before they are deleted; zero is the default of each.
type Retention struct {
	Readings time.Duration // reading.Retention
	// control.Retention: events, superseded schedules, prices of plans
	Records    time.Duration
	Deliveries time.Duration // delivery.Retention
	Alerts     time.Duration // operations.AlertRetention
}

// openServices makes the services, all with the same store.
func (a *App) openServices(ctx context.Context, s Settings) error {
	db := a.DB
	a.Access = newAccess(db, s)
	a.Registry = &registry.Service{
		DB:        db,
		Providers: s.Clouds,
		Web:       egress.New(egress.Options{}),
	}

	a.Control = &control.Service{
		DB:     db,
		Log:    s.Log,
		Retain: s.Retention.Records,
		Ramp:   s.Ramp,
	}

	a.Push = newDelivery(db, s)
	a.Reading = &reading.Service{DB: db, Retain: s.Retention.Readings}
	a.Reward = newReward(db, s)
	a.Books = &books.Service{DB: db}
	a.Grid = &grid.Service{
		DB:           db,
		DeviceMoves:  a.Control.DeviceMoves,
		HeatersAhead: a.Control.HeatersAhead,
	}

	if err := a.openMarket(ctx, s); err != nil {
		return err
	}

	a.Operations = a.newOperations(s)
	a.ADR = a.newADR()
	a.Products = &product.Service{DB: db, Control: a.Control}
	a.Selection = a.newSelection()

	return nil
}

func newAccess(db *store.DB, s Settings) *access.Service {
	return &access.Service{
		DB:            db,
		People:        s.Home,
		Elsewhere:     s.Elsewhere,
		Keys:          s.Keys,
		SSO:           s.SSO,
		PasswordsShut: s.PasswordsShut,
	}
}

func (a *App) newSelection() *selection.Service {
	return &selection.Service{
		DB:       a.DB,
		Control:  a.Control,
		Push:     a.Push,
		Registry: a.Registry,
	}
}

func (a *App) newADR() *adr.Service {
	return &adr.Service{
		DB:        a.DB,
		Out:       a.Push.Out,
		PlainHTTP: a.Push.PlainHTTP,
		Outcome:   a.outcome,
		Fleet:     a.fleetUse,
		Assets:    a.assetUse,
	}
}

// newOperations makes the service of alerts and exceptions. Its alerts may be sent to the same
// addresses as pushes.
func (a *App) newOperations(s Settings) *operations.Service {
	service := &operations.Service{
		DB:          a.DB,
		Retain:      s.Retention.Alerts,
		BaseURL:     s.StatedURL,
		Jobs:        a.Jobs,
		Trouble:     a.DB.Trouble,
		StalePrices: a.stalePrices,
		Log:         s.Log,
		Out:         a.Push.Out,
		PlainHTTP:   a.Push.PlainHTTP,
	}

	if s.Mail != nil {
		service.Mail = s.Mail.Send
	}

	return service
}

// openTransports makes the transports: each turns requests into calls of the services.
func (a *App) openTransports(s Settings) {
	a.API = a.newAPI(s)
	a.OpenADR = &openadr.Server{
		Access:         a.Access,
		ADR:            a.ADR,
		Log:            s.Log,
		PublicURL:      s.BaseURL,
		TrustedProxies: s.TrustedProxies,
		Admit:          a.API.Admit,
	}

	a.Portal = &portal.Server{
		Reward:   a.Reward,
		Control:  a.Control,
		Products: a.Products,
		Registry: a.Registry,
		Access:   a.Access,
		Log:      s.Log,

		TrustedProxies: s.TrustedProxies,
		Admit:          a.API.Admit,
	}

	a.Console = a.newConsole(s)
}

func (a *App) newAPI(s Settings) *api.Server {
	return &api.Server{
		Clock: a,
		Log:   s.Log,

		Access:     a.Access,
		ADR:        a.ADR,
		Control:    a.Control,
		Directory:  a.Directory,
		Grid:       a.Grid,
		Market:     a.Market,
		Products:   a.Products,
		Operations: a.Operations,
		Push:       a.Push,
		Reading:    a.Reading,
		Registry:   a.Registry,
		Reward:     a.Reward,
		Selection:  a.Selection,

		Environment:       a.DB.Environment,
		PublicURL:         s.BaseURL,
		TrustedProxies:    s.TrustedProxies,
		MetricsFrom:       s.MetricsFrom,
		RequestsPerSecond: s.RateLimit,
	}
}

// collectMetrics registers the metrics of services, which the API publishes.
func (a *App) collectMetrics() error {
	collectors := []prometheus.Collector{
		market.Metrics{Service: a.Market},
		operations.Metrics{Service: a.Operations},
		workerMetrics{a.Jobs},
		jobMetrics{a.DB},
		planMetrics{a.Control},
		clockMetric(a.DB),
	}

	for _, c := range collectors {
		if err := a.API.Collect(c); err != nil {
			return err
		}
	}

	return nil
}

// Serve runs the background jobs and answers on the listener until the context ends. It
// returns when the requests and background jobs under way are finished.
func (a *App) Serve(ctx context.Context, l net.Listener) error {
	running, stop := context.WithCancel(ctx)
	defer stop()

	wait, err := a.begin(running)
	if err != nil {
		return err
	}

	a.Console.Done, a.API.Done = ctx.Done(), ctx.Done()
	server := &web.Server{
		Handler: web.Traced(a.showCertificates(a.Handler())),
		Proxies: a.API.TrustedProxies,
		Limits:  a.limits,
		TLS:     a.tls,
		Log:     a.log,
	}

	err = server.Serve(ctx, l)
	stop()
	wait()

	return err
}

// begin recovers what a former process left, and runs the background jobs until the context
// ends. The function that it returns waits for their end.
func (a *App) begin(ctx context.Context) (wait func(), err error) {
	if err := a.Push.Recover(ctx); err != nil {
		return nil, fmt.Errorf("take up what was under way: %w", err)
	}

	if err := a.DB.FreeKeysInFlight(ctx); err != nil {
		return nil, fmt.Errorf(
			"free the idempotency keys of requests that were cut off: %w",
			err,
		)
	}

	if err := a.Operations.WarnOfMail(ctx); err != nil {
		return nil, fmt.Errorf("read the routes of alerts: %w", err)
	}

	var jobs sync.WaitGroup
	jobs.Go(func() { worker.RunAll(ctx, a.Jobs()) })

	watched := make(chan struct{})
	jobs.Go(func() {
		a.DB.Watch(ctx, func() { close(watched) }, a.noteDatabase)
	})
	<-watched

	return jobs.Wait, nil
}

// showCertificates adds the client's certificate to each request's context.
func (a *App) showCertificates(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := a.certificates.Of(r); c != nil {
			r = r.WithContext(access.Showing(r.Context(), access.ShownCertificate{
				Fingerprint: web.Fingerprint(c),
				From:        c.NotBefore,
				Until:       c.NotAfter,
			}))
		}

		next.ServeHTTP(w, r)
	})
}

// noteDatabase logs when the database stops answering, and when it answers again.
func (a *App) noteDatabase(err error) {
	if err != nil {
		a.log.Error(
			"the database does not answer: requests are refused with 503 until it does",
			"err",
			err,
		)

		return
	}
	a.log.Warn("the database answers again")
}

// Close waits for the pushes under way, closes the connections to others, and closes the
// store.
func (a *App) Close() error {
	a.Push.Close()
	a.Push.Out.Close()
	a.Reward.Web.Close()
	a.Registry.Web.Close()

	return a.DB.Close()
}

// reach returns the addresses at which endpoints of organisations may be.
func (s *Settings) reach() egress.Reach {
	reach := s.PrivateEndpoints
	if s.AllowPrivateEndpoints {
		reach.Prefixes = egress.Private
	}

	return reach
}

func newReward(db *store.DB, s Settings) *reward.Service {
	reach := s.reach()
	service := &reward.Service{
		DB:        db,
		BaseURL:   s.BaseURL,
		PlainHTTP: reach.Any(),
		Web: egress.New(egress.Options{
			Pipe:  s.Pipe,
			Allow: reach.Prefixes,
			Hosts: reach.Hosts,
		}),
	}

	if s.Mail != nil {
		service.Mail = s.Mail.Send
	}

	return service
}

func newDelivery(db *store.DB, s Settings) *delivery.Service {
	reach := s.reach()

	return &delivery.Service{
		DB:        db,
		BaseURL:   s.BaseURL,
		PlainHTTP: reach.Any(),
		Log:       s.Log,
		Retain:    s.Retention.Deliveries,
		Ramp:      s.Ramp,

		CheckDispatch: control.CheckDispatch,
		NoteDispatch:  control.NoteDispatch,

		Out: egress.New(egress.Options{
			Pipe:  s.Pipe,
			Allow: reach.Prefixes,
			Hosts: reach.Hosts,
		}),
	}
}
