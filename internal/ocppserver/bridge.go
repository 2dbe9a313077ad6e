package ocppserver

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/web"
)

const (
	// ChargersMax is how many chargers may be connected at once.
	ChargersMax = 10_000
	// waitingMax is how many pushes are kept for chargers that have not connected yet.
	waitingMax = ChargersMax
	// registerPause is how long the bridge waits after flexd did not accept the endpoint.
	registerPause = 5 * time.Second
	// closeTime is what requests under way are given at the end.
	closeTime = 3 * time.Second
)

// Timing has the bridge's time limits. Zero fields are as in DefaultTiming.
type Timing struct {
	Call time.Duration // for a charger's answer
	// from a connection to the first question, unless the charger boots
	Configure time.Duration
	// a connector must be free for so long before flexd is sent a plug-out
	PlugOut time.Duration
	Ping    time.Duration // between pings
	// before flexd or a charger that failed is tried again
	Retry  time.Duration
	Report time.Duration // readings are collected for so long
	// a message of another time waits for the clock to be known
	Late time.Duration
	// for a platform's answer, before the bridge gives one
	Above time.Duration
}

// DefaultTiming is for real chargers.
var DefaultTiming = Timing{
	Call:      30 * time.Second,
	Configure: 5 * time.Second,
	PlugOut:   30 * time.Second,
	Ping:      time.Minute,
	Retry:     10 * time.Second,
	Report:    time.Minute,
	Late:      2 * time.Minute,
	Above:     15 * time.Second,
}

func (t Timing) withDefaults() Timing {
	d := DefaultTiming
	for _, f := range []struct {
		from time.Duration
		to   *time.Duration
	}{{t.Call, &d.Call}, {t.Configure, &d.Configure}, {t.PlugOut, &d.PlugOut}, {t.Ping, &d.Ping}, {t.Retry, &d.Retry}, {t.Report, &d.Report}, {t.Late, &d.Late}, {t.Above, &d.Above}} {
		if f.from > 0 {
			*f.to = f.from
		}
	}

	return d
}

// Settings are a bridge's configuration.
type Settings struct {
	Client *client.Client
	// EndpointURL is where flexd reaches the bridge's endpoint.
	EndpointURL string
	// Password is what every charger without one of its own logs in with, by HTTP basic
	// authentication with its id as the username; empty is none.
	Password flex.Secret
	// Passwords and Chargers are chargers' own.
	Passwords map[string]string
	Chargers  *ChargersFile
	// TrustedProxies are the addresses whose X-Forwarded-For is believed, where a proxy stands
	// before the bridge.
	TrustedProxies web.Proxies
	// NoPassword lets chargers in that have no password. Their readings are not passed on.
	NoPassword bool
	// State is a directory in which a file for each charger is kept, so that a bridge that was
	// ended or killed continues where it was; empty is none.
	State string
	// Floor is the power that every charger may fall back to for ever, when flexd and the bridge
	// are dead and its plan is over, unless its line names another; nil is none.
	Floor *flex.Watts
	// Delay is how late a charger may be by law in doing what it is asked.
	Delay time.Duration
	// Office is where the people who run the chargers call them, with OfficeToken; nil is nowhere.
	Office      net.Listener
	OfficeToken flex.Secret
	// Authority signs chargers' certificates; nil refuses to.
	Authority *Authority
	// Upstream is the address of the platform that every charger belongs to, without the charger's
	// id, unless its line names another; empty is none.
	Upstream string
	// UpstreamReadOnly says that platforms may not command chargers.
	UpstreamReadOnly bool
	// Discharge tells flexd that cars may be sent limits below zero, by which they discharge.
	// A charger that cannot pauses then.
	Discharge bool
	Timing    Timing
	Log       *slog.Logger     // nil means the default logger
	Now       func() time.Time // nil means time.Now
}

// Bridge connects chargers to a flexd. Make it with New.
type Bridge struct {
	Settings
	trueNow     func() time.Time // whereas Now is the time at flexd
	clockOffset atomic.Int64     // by how many ns that is ahead of the true time
	secret      string           // of the endpoint, made again at each start
	lastTx      atomic.Int64
	dummySecret secret // of chargers that are not known
	guard       guard
	saving      chan struct{} // places for the writing of files
	// how chargers of a model take profiles: map[string]form by bootNotification
	models sync.Map

	ctx  context.Context // until Serve ends
	work sync.WaitGroup

	mu       sync.Mutex
	chargers map[string]*charger
	failures map[string]int    // of the work for a charger, by its id
	names    map[string]socket // by the asset's external id
	// pushes for assets that no charger has claimed yet
	waiting map[string]*pushTarget
}

// socket is one connector of a charger.
type socket struct {
	*charger
	number int
}

// New returns a bridge that does nothing yet.
func New(s Settings) *Bridge {
	s.Timing = s.Timing.withDefaults()
	if s.Log == nil {
		s.Log = slog.Default()
	}

	if s.Now == nil {
		s.Now = time.Now
	}

	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails

	b := &Bridge{
		Settings:    s,
		trueNow:     s.Now,
		secret:      "whsec_" + base64.StdEncoding.EncodeToString(key),
		dummySecret: newSecret(string(key)),
		saving:      make(chan struct{}, savingMax),
		chargers:    map[string]*charger{},
		failures:    map[string]int{},
		names:       map[string]socket{},
		waiting:     map[string]*pushTarget{},
	}
	b.Now = b.now

	return b
}

// Serve registers the endpoint with flexd, and answers chargers on one listener and flexd's
// pushes on the other, until the context ends. It may be called once.
func (b *Bridge) Serve(
	ctx context.Context,
	chargers, pushes net.Listener,
) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	b.ctx = running
	if err := b.load(); err != nil {
		return err
	}

	ended := make(chan error, 4) // one of each server, and of register
	servers := b.serve(chargers, pushes, ended)

	b.work.Go(func() { b.followClock(running) })
	b.work.Go(func() {
		if err := b.register(running); err != nil {
			ended <- err
		}
	})

	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}

	b.mu.Lock() // no charger begins after this
	stop()
	b.mu.Unlock()
	closing, cancel := context.WithTimeout(
		context.WithoutCancel(ctx),
		closeTime,
	)

	defer cancel()

	for _, s := range servers {
		if s.Shutdown(closing) != nil {
			s.Close()
		}
	}

	b.work.Wait()

	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}

	return err
}

// serve starts the servers, which report on ended why they ended.
func (b *Bridge) serve(
	chargers, pushes net.Listener,
	ended chan<- error,
) []*http.Server {
	servers := []*http.Server{
		b.server(http.HandlerFunc(b.connect)),
		b.server(b.endpoint()),
	}

	listeners := []net.Listener{chargers, pushes}
	if b.Office != nil {
		servers = append(servers, b.server(b.guardOffice(b.office())))
		listeners = append(listeners, b.Office)
	}

	for i, l := range listeners {
		go func() { ended <- servers[i].Serve(l) }()
	}

	return servers
}

// Patterns are the methods and paths that its three listeners answer: chargers' under
// /{charger}, flexd's pushes, and the office's.
func (b *Bridge) Patterns() (chargers, pushes, office []string) {
	return []string{"GET /{charger}"}, b.endpoint().Patterns(), b.office().Patterns()
}

func (b *Bridge) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(b.Log.Handler(), slog.LevelDebug),
	}
}

// register sets flexd's endpoint, and tries again until flexd answers. If flexd refuses it, it
// fails, because flexd would refuse it again.
func (b *Bridge) register(ctx context.Context) error {
	url := strings.TrimRight(b.EndpointURL, "/") + endpointPath +
		"{external_id}"

	for {
		request := client.EndpointRequest{URL: url, Secret: b.secret}
		if b.Discharge {
			request.Discharge = "negative_limits"
		}

		e, err := b.Client.SetEndpoint(ctx, request)

		status := client.StatusOf(err)

		if err == nil {
			b.Log.Info("flexd pushes to this bridge", "url", e.URL)
			return nil
		}

		if ctx.Err() != nil {
			return nil
		}

		refused := status >= http.StatusBadRequest && !mayPass(status)
		if refused || status == http.StatusUnauthorized {
			return fmt.Errorf(
				"flexd does not take %s as its endpoint: %w",
				url,
				err,
			)
		}

		b.Log.Error("cannot tell flexd the endpoint", "url", url, "err", err)

		select {
		case <-ctx.Done():
			return nil

		case <-time.After(registerPause):
		}
	}
}

// nextTransaction makes a number that no transaction of this bridge or an earlier one had, as
// long as there is less than one a second: OCPP allows 31 bits.
func (b *Bridge) nextTransaction() int {
	for {
		last := b.lastTx.Load()
		next := max(last+1, b.Now().Unix())
		if b.lastTx.CompareAndSwap(last, next) {
			return int(next)
		}
	}
}
