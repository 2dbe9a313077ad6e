package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"flexd/client"
	"flexd/internal/access"
	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/keyring"
	"flexd/sim"
)

// demo is `flexd demo`.
type demo struct {
	Listen string  `help:"Address to answer on; ${default} if not given, and any free port if that is taken." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	Speed  float64 `help:"Simulated minutes that pass in a second." default:"10"`
	Once   bool    `help:"End when the last car has gone; otherwise flexd goes on answering until stopped."`
}

// demoPassword is long enough for the rules and easy to type. That is safe because the demo
// listens on the loopback only, unless an address is given.
const demoPassword = "demo-demo-demo"

// play is a demo under way.
type play struct {
	console
	demo
	app     *app.App
	client  *client.Client
	base    string
	day     flex.Day // on which the cars arrive
	evening *sim.Evening
	now     atomic.Pointer[time.Time] // by the organisation's clock
	revised time.Time                 // when the market revises its prices
	printed int                       // lines of what flows

	revision string // what the market then says
}

// Run shows flexd at work.
func (d *demo) Run(ctx context.Context, c console) error {
	if d.Speed < 0.1 || d.Speed > speedMax {
		return flex.Fail(
			flex.Invalid,
			"--speed is 0.1 to %d minutes a second, not %g",
			speedMax,
			d.Speed,
		)
	}

	dir, err := os.MkdirTemp("", "flexd-demo-")
	if err != nil {
		return err
	}

	defer os.RemoveAll(dir)
	l, err := d.listen(c)
	if err != nil {
		return err
	}

	base := "http://" + l.Addr().String()
	h, err := openDemo(ctx, dir, base, c)
	if err != nil {
		return err
	}

	defer h.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, l) }()

	c.out = &turns{Writer: c.out}
	p := &play{
		console: c,
		demo:    *d,
		app:     h,
		base:    base,
		client:  client.New(base, "demo", demoPassword),
	}

	if err := p.prepare(ctx); err != nil {
		return err
	}

	p.greet()

	if err := p.night(ctx); err != nil {
		return err
	}

	p.sum(ctx)

	if !d.Once {
		fmt.Fprintf(
			c.out,
			"\nflexd goes on answering at %s until you press Ctrl-C.\n",
			base,
		)

		<-ctx.Done()
	}

	cancel()

	return <-served
}

// warnReachable warns if others can reach the demo, since its logins are public.
func warnReachable(c console, at net.Addr) {
	if a, ok := at.(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		fmt.Fprintf(
			c.err,
			"warning: others than this machine can reach %s, and the demo's logins are known to everybody.\n",
			a,
		)
	}
}

// listen listens at the usual port, or at another one if that is in use.
func (d *demo) listen(c console) (net.Listener, error) {
	l, err := listenAt("--listen", d.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		l, err = listenAt("--listen", "127.0.0.1:0")
	}

	if err == nil {
		warnReachable(c, l.Addr())
	}

	return l, err
}

// openDemo opens a sandbox with its database in the folder. The database is sealed with a key
// that is lost when this process ends.
func openDemo(
	ctx context.Context,
	dir, base string,
	c console,
) (*app.App, error) {
	var key [keyring.KeySize]byte
	rand.Read(key[:])

	keys, err := keyring.NewRing(key)
	if err != nil {
		return nil, err
	}

	return app.Open(ctx, app.Settings{
		Database:              "sqlite:" + filepath.Join(dir, "flexd.db"),
		Keys:                  keys,
		Environment:           flex.Sandbox,
		AllowPrivateEndpoints: true,
		BaseURL:               base,
		Log: slog.New(slog.NewTextHandler(
			c.err,
			&slog.HandlerOptions{Level: slog.LevelWarn},
		)),
	})
}

// prepare creates the organisation, sets its clock to the coming evening, and imports what the
// simulation needs.
func (p *play) prepare(ctx context.Context) error {
	org, _, err := p.app.Access.AddOrg(ctx, "Demo", "demo", demoPassword)
	if err != nil {
		return err
	}
	_, err = p.app.Access.AddOperator(ctx, "demo", demoPassword, access.Admin)
	if err != nil {
		return err
	}

	today := nextEvening()
	p.day = today
	start := eveningOf(today)
	prices, err := p.market(ctx, today, start)
	if err != nil {
		return err
	}

	_, err = p.app.ImportMeters(ctx, strings.NewReader(demoMeters), nil)
	if err != nil {
		return err
	}
	_, err = p.app.ImportModels(ctx, strings.NewReader(demoModels))
	if err != nil {
		return err
	}
	if err := p.app.Advance(ctx, org.ID, start); err != nil {
		return err
	}

	p.now.Store(&start)
	p.evening = p.eveningAt(start, prices)
	if err := p.evening.Onboard(ctx, start, demoMPANs); err != nil {
		return err
	}

	return p.endpoint(ctx)
}

// eveningAt is the simulated evening from its start on, at these prices.
func (p *play) eveningAt(
	start time.Time,
	prices []flex.PricedPeriod,
) *sim.Evening {
	by := make(map[flex.Period]flex.Price, len(prices))
	for _, q := range prices {
		by[q.Period] = q.Price
	}

	return &sim.Evening{
		Client:    p.client,
		Visits:    demoVisits(start),
		Batteries: demoBatteries(),
		Say:       p.printLine,
		Price:     func(q flex.Period) flex.Price { return by[q] },
	}
}

// nextEvening is the day of the next evening, which is tomorrow's once today's has begun.
func nextEvening() flex.Day {
	now := time.Now()
	today := flex.DayAt(now)
	if eveningOf(today).Before(now) {
		return today.Add(1)
	}

	return today
}

// eveningOf is half past five on a day in London: its clocks change in the morning, if at all.
func eveningOf(day flex.Day) time.Time {
	return day.Add(1).Start().Add(-6*time.Hour - 30*time.Minute)
}

// sampleDay is the day whose prices, with those around it, every evening uses. So each case
// shows the same thing on whatever day the demo runs.
var sampleDay = flex.Day{
	Year:  2026,
	Month: time.November,
	Dom:   20,
}

// sampled are the prices around the sample day as if they were of the days from first on.
func sampled(
	first flex.Day,
	around flex.Day,
) ([]flex.PricedPeriod, error) {
	const days = 4
	like, err := sim.PricesAround(around, around.Add(days-1))

	var prices []flex.PricedPeriod
	for p := first.Period(
		1,
	); err == nil && p.Start().Before(first.Add(days).Start()); p = p.Add(1) {
		q := like[min(len(prices), len(like)-1)]
		q.Period = p
		prices = append(prices, q)
	}

	return prices, err
}

// The evening's prices are first a forecast without the windy hours. revisedAt after its
// start, the market publishes the actual prices. Up to the windy hours both are the same, so
// that every decision can be checked against the price beside it.
const (
	priceSource = "GB system price 2018"
	revisedAt   = 4*time.Hour + 10*time.Minute
)

// market imports the forecast and the revision, and returns the final prices.
func (p *play) market(
	ctx context.Context,
	today flex.Day,
	start time.Time,
) ([]flex.PricedPeriod, error) {
	actual, err := sampled(today.Add(-1), sampleDay.Add(-1))
	if err != nil {
		return nil, err
	}

	forecast := slices.Clone(actual)
	p.revision = revise(actual, start)

	p.revised = start.Add(revisedAt)
	for at, prices := range map[time.Time][]flex.PricedPeriod{
		{}:        forecast,
		p.revised: actual,
	} {
		var csv bytes.Buffer
		if err := sim.PricesCSV(&csv, prices); err != nil {
			return nil, err
		}

		_, err := p.app.ImportPrices(ctx, priceSource, at, &csv)
		if err != nil {
			return nil, err
		}
	}

	return actual, nil
}

// revise makes the prices of the windy hours negative, and returns the market's message about
// that.
func revise(prices []flex.PricedPeriod, start time.Time) string {
	var before []flex.Price

	for i, q := range prices {
		at := q.Period.Start().Sub(start)
		if windyFrom <= at && at < windyTo {
			before = append(before, q.Price)
			prices[i].Price = flex.FromGBPPerMWh(windyPrice)
		}
	}

	clock := func(after time.Duration) string {
		return flex.Clock(start.Add(after), flex.London, "15:04")
	}

	return fmt.Sprintf(
		"revises its prices: %s to %s at %d £/MWh, forecast at %.2f to %.2f; plans that are better now are pushed",
		clock(windyFrom),
		clock(windyTo),
		windyPrice,
		slices.Min(before).GBPPerMWh(),
		slices.Max(before).GBPPerMWh(),
	)
}

// endpoint opens the client's endpoint on the loopback and registers it.
func (p *play) endpoint(ctx context.Context) error {
	var chargers []*sim.Charger
	for _, v := range p.evening.Visits {
		chargers = append(chargers, v.Charger)
	}

	e := sim.NewEndpoint("", chargers...)
	e.Received = p.printPush
	e.Others = p.printOtherPush // the reader's own first charger

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	server := &http.Server{
		Handler:           e,
		ReadHeaderTimeout: 10 * time.Second,
	}

	go server.Serve(l)
	context.AfterFunc(ctx, func() { server.Close() })
	made, err := p.client.SetEndpoint(
		ctx,
		client.EndpointRequest{URL: "http://" + l.Addr().String() +
			"/profiles/{external_id}"},
	)

	e.Secret = made.Secret

	return err
}

// greeting says where to look and how to try the interface; each line can be pasted. Its
// arguments are the base URL, the password, an MPAN, the source of the prices and the speed.
const greeting = `
flexd demo: a sandbox on this machine; nothing leaves it.

  base URL   %[1]s
  guides     %[1]s/docs
  console    %[1]s/console/
  username   demo
  password   %[2]s      (the same for all three)

A first integration, a step each; paste them into another terminal:

  URL=%[1]s
  TOKEN=$(curl -s $URL/auth/token-form \
    -d username=demo -d password=%[2]s |
    sed 's/.*"access_token":"\([^"]*\)".*/\1/')
  call() { path=$1; shift; curl -sw '\n' "$URL$path" "$@" \
    -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json'; }
  call /entities/site/onboard -d '{"proposition":"full_asset_schedule_control",
    "site":{"mpan":"%[3]s","postcode":"SW1A 1AA",
      "street_address":"10 High Street","email":"you@example.com",
      "gave_boundary_meter_consent_at":"2026-01-15T10:30:00Z"},
    "assets":[{"external_id":"my-charger","type":"charger",
      "properties":{"power_kw":7.4}}]}'
  ASSET=$(call /entities/asset/external-id/my-charger |
    sed 's/.*"id":"\([^"]*\)".*/\1/')
  call /entities/asset/$ASSET/event/tariff-update -d '{"tariff":{
    "off_peak_times":"00:00-05:30, 23:30-24:00","timezone":"Europe/London"}}'
  call /entities/asset/$ASSET/event/intent -d '{"intent":{
    "energy_required_kwh":20,"ready_by":"2026-01-01T07:00:00Z",
    "charging_mode":"minimise_charging_time"}}'
  call /entities/asset/$ASSET/event/plug-in -d '{}'
  call /entities/asset/$ASSET/schedule/explanation -H 'Accept: text/plain'

GB half-hourly prices of November 2018. We added an hour and a half of prices
below zero, which the market publishes during the evening.
%[4]s.

The evening, %[5]g minutes a second. Below each car, its power in kW,
or - where none is plugged in; below the battery, the power that it took last.

`

func (p *play) greet() {
	fmt.Fprintf(
		p.out,
		greeting,
		p.base,
		demoPassword,
		demoMPANs[len(demoMPANs)-1],
		sim.Attribution,
		p.Speed,
	)
}

const (
	frame     = 250 * time.Millisecond // between two steps of the simulation
	strideMax = 5 * time.Minute        // the most of its time that then passes
	speedMax  = 1000
)

// creditedAfter is the time from the departure of the last car until its last readings are
// received and credited.
const creditedAfter = time.Hour
