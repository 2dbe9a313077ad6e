// Package app joins the rooms: it opens the store, makes the desks, runs the rounds and
// serves the doors. The program, the simulated street and the tests all start this one.
package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"flexd/internal/access"
	"flexd/internal/api"
	"flexd/internal/console"
	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/directory"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/keyring"
	"flexd/internal/market"
	"flexd/internal/portal"
	"flexd/internal/reading"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Settings are what the house is told from outside.
type Settings struct {
	Database    string           // sqlite:PATH or postgres://…
	Keys        *keyring.Ring    // by which secrets are sealed; without, what needs them fails
	Environment flex.Environment // Production if empty
	Log         *slog.Logger     // nil means the default logger

	// AllowPrivateEndpoints lets pushes go to private and loopback addresses.
	AllowPrivateEndpoints bool
	// BaseURL is the interface's own address as clients reach it, for callbacks.
	BaseURL string

	TrustedProxies []netip.Prefix // whose X-Forwarded-For is believed
	MetricsFrom    []netip.Prefix // who may read /metrics; nil means the loopback alone
	RateLimit      int            // requests a second of one organisation; api.DefaultRate if 0

	PriceSources []string // asked for prices, by name; none if empty
	Carbon       bool     // ask for the carbon intensity beside them
	Meters       MeterDirectory

	Clouds []registry.Provider // manufacturers' clouds that users can link to their sites

	// Mail sends letters to users; nil means that none can be sent.
	Mail *egress.Mailer

	// Pipe makes the connections of pushes in place of sockets, for stories in a bubble.
	Pipe func(ctx context.Context, addr string) (net.Conn, error)

	// Now and Random make a run repeatable; nil means the true clock and crypto/rand.
	Now    func() time.Time
	Random io.Reader
}

// House is a flexd that is open.
type House struct {
	DB       *store.DB
	Access   *access.Desk
	Registry *registry.Desk
	Control  *control.Desk
	Push     *delivery.Desk
	Reading  *reading.Desk
	Reward   *reward.Desk
	Market   *market.Desk
	API      *api.Server
	Console  *console.Server
	Portal   *portal.Server

	Directory *directory.Directory

	log     *slog.Logger
	workers []*worker.Worker
}

// Open opens the store, bringing its schema up to date, and makes the desks and doors.
// Nothing runs until Serve.
func Open(ctx context.Context, s Settings) (*House, error) {
	if s.Log == nil {
		s.Log = slog.Default()
	}
	db, err := store.Open(ctx, s.Database, store.Options{Environment: s.Environment, Keys: s.Keys, Now: s.Now, Random: s.Random})
	if err != nil {
		return nil, err
	}
	h := &House{
		DB:       db,
		Access:   &access.Desk{DB: db},
		Registry: &registry.Desk{DB: db, Providers: s.Clouds, Web: egress.New(egress.Options{})},
		Control:  &control.Desk{DB: db, Log: s.Log},
		Push:     postRoom(db, s),
		Reading:  &reading.Desk{DB: db},
		Reward:   &reward.Desk{DB: db, BaseURL: s.BaseURL},
		log:      s.Log,
	}
	if s.Mail != nil {
		h.Reward.Mail = s.Mail.Send
	}
	if err := h.openMarket(ctx, s); err != nil {
		db.Close()
		return nil, err
	}
	h.API = &api.Server{
		DB: db, Access: h.Access, Registry: h.Registry, Control: h.Control, Push: h.Push, Reading: h.Reading, Reward: h.Reward,
		Directory: h.Directory, Market: h.Market, Clock: h, PublicURL: s.BaseURL, Environment: db.Environment, Log: s.Log,
		TrustedProxies: s.TrustedProxies, MetricsFrom: s.MetricsFrom, RequestsPerSecond: s.RateLimit,
	}
	h.Portal = &portal.Server{Reward: h.Reward, Log: s.Log}
	h.Console = h.newConsole(s)
	h.add("prices", time.Minute, "", h.Market.Round)
	h.add("control", 30*time.Second, store.WakeControl, h.Control.Round)
	if db.Engine() == "postgres" { // others may be at work on it
		h.add("waves", time.Second, "", h.Control.Help)
	}
	h.add("batteries", 30*time.Second, store.WakeControl, h.Control.BatteryRound)
	h.add("push", time.Second, store.WakePush, h.Push.Round)
	h.add("reckoning", 5*time.Second, store.WakeSettle, h.Reward.Round).Rest = settleRest
	h.add("settlement", 10*time.Second, store.WakeSettle, h.Reward.EventRound).Rest = settleRest
	h.add("mail", time.Minute, store.WakeMail, h.Reward.MailRound)
	h.add("retention", time.Hour, "", h.Reading.Round)
	h.add("deliveries", time.Hour, "", h.Push.Forget)
	h.add("records", time.Hour, "", h.Control.Forget)
	if len(s.Clouds) > 0 {
		h.add("clouds", time.Minute, store.WakeCloud, h.Registry.CloudRound)
	}
	h.add("expiry", time.Minute, "", h.Access.Round)
	return h, nil
}

// settleRest is how long the rounds that settle rest between two runs, however many readings
// come: a fleet that streams them would have them run without a pause.
const settleRest = time.Second

// add makes a round part of the house, in the order in which Advance runs them.
func (h *House) add(name string, every time.Duration, wake store.Topic, round worker.Round) *worker.Worker {
	w := &worker.Worker{Name: name, Every: every, Round: round, Log: h.log}
	if wake != "" {
		w.Wake = h.DB.Waker(wake)
	}
	h.workers = append(h.workers, w)
	return w
}

// Rounds returns the background jobs, with how their latest run went.
func (h *House) Rounds() []*worker.Worker { return h.workers }

// Serve runs the rounds and answers on the listener until the context ends. It returns when
// the requests and rounds under way are finished.
func (h *House) Serve(ctx context.Context, l net.Listener) error {
	if err := h.Push.Recover(ctx); err != nil {
		return fmt.Errorf("take up what was under way: %w", err)
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		worker.RunAll(running, h.workers)
	}()
	h.Console.Done = ctx.Done()
	err := api.ServeHandler(ctx, l, h.Handler(), h.log)
	stop()
	<-finished
	return err
}

// Close lets the pushes under way end and closes the store.
func (h *House) Close() error {
	h.Push.Close()
	return h.DB.Close()
}

func postRoom(db *store.DB, s Settings) *delivery.Desk {
	d := &delivery.Desk{DB: db, BaseURL: s.BaseURL, PlainHTTP: s.AllowPrivateEndpoints, Log: s.Log}
	o := egress.Options{Pipe: s.Pipe}
	if s.AllowPrivateEndpoints {
		o.Allow = egress.Private
	}
	d.Out = egress.New(o)
	return d
}
