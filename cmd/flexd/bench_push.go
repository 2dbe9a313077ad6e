package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"flexd/client"
	"flexd/internal/app"
	"flexd/internal/delivery"
	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/lab/bench"
)

// benchPushCommand measures the time from a plug-in to the client's endpoint, and how many
// pushes a second flexd sends to an endpoint on this machine. Everything goes over real
// sockets.
type benchPushCommand struct {
	Database string `help:"An empty store to run on; a temporary SQLite file if not given." placeholder:"URL"`
	Rate     int    `help:"Plug-ins a second." default:"500"`
	Seconds  int    `help:"For how many seconds plug-ins are sent." default:"10"`
	JSON     bool   `name:"json" help:"Print JSON instead of a table."`
}

// The targets on two cores, generator and receiver on the same machine.
const (
	benchPlugTarget    = 50 * time.Millisecond
	benchDeliverTarget = 10_000
)

const benchUser, benchPassword = "bench", "bench-bench-bench"

// pushBench is a benchmark under way.
type pushBench struct {
	app    *app.App
	base   string
	token  string
	http   *http.Client
	assets []flex.AssetID

	mu          sync.Mutex
	requestedAt map[string]time.Time // by asset: before its event was sent
	took        []time.Duration
	remaining   int // pushes still expected
	all         chan struct{}
	requestErr  error // the first request that failed
}

// Run prints the table.
func (b *benchPushCommand) Run(ctx context.Context, c console) error {
	if b.Rate < 1 || b.Seconds < 1 || b.Rate*b.Seconds > 1_000_000 {
		return flex.Fail(
			flex.Invalid,
			"--rate times --seconds is 1 to 1000000 cars, not %d",
			b.Rate*b.Seconds,
		)
	}

	h, done, err := openEmptyBench(ctx, b.Database, c)
	if err != nil {
		return err
	}

	defer done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, l) }()
	run := &pushBench{
		app:  h,
		base: "http://" + l.Addr().String(),
		http: &http.Client{
			Timeout:   30 * time.Second,
			Transport: &http.Transport{MaxIdleConnsPerHost: 256},
		},
	}

	rows, err := run.measure(ctx, b.Rate, b.Rate*b.Seconds)
	if err != nil {
		return err
	}

	cancel()

	if err := <-served; err != nil {
		return err
	}
	if b.JSON {
		return c.json(rows)
	}

	return bench.Print(c.out, rows)
}

func (r *pushBench) measure(
	ctx context.Context,
	rate, n int,
) ([]bench.Row, error) {
	received, err := r.listen(ctx)
	if err != nil {
		return nil, err
	}

	org, err := r.prepare(ctx, n)
	if err != nil {
		return nil, err
	}

	set := delivery.Settings{
		URL:         received,
		Rate:        delivery.RateMax,
		Concurrency: 256,
	}

	_, _, err = r.app.Push.SetEndpoint(ctx, org, flex.ScheduleEndpoint, set)
	if err != nil {
		return nil, err
	}
	if err := r.plugIn(ctx, rate); err != nil {
		return nil, err
	}

	plugged := r.plugInRow(rate, n)
	per, err := r.drain(ctx, org, set)
	if err != nil {
		return nil, err
	}

	return append([]bench.Row{plugged}, bench.Row{
		What:   fmt.Sprintf("%d new schedules delivered to one endpoint", n),
		Target: fmt.Sprintf(">= %d a second", benchDeliverTarget),
		Here:   fmt.Sprintf("%.0f a second", per),
		Met:    per >= benchDeliverTarget,
	}), nil
}

// plugInRow reports how long pushes took after their plug-ins.
func (r *pushBench) plugInRow(rate, n int) bench.Row {
	slices.Sort(r.took)
	at := func(share float64) time.Duration {
		return r.took[int(share*float64(len(r.took)-1))].Round(10 * time.Microsecond)
	}
	p99 := r.took[int(0.99*float64(len(r.took)-1))]

	return bench.Row{
		What: fmt.Sprintf(
			"plug-in sent to push arrived, %d cars at %d a second on %s",
			n,
			rate,
			r.app.DB.Engine(),
		),
		Target: fmt.Sprintf("p99 <= %v", benchPlugTarget),
		Here:   fmt.Sprintf("p50 %v, p99 %v, worst %v", at(0.5), at(0.99), at(1)),
		Met:    p99 <= benchPlugTarget,
	}
}

// listen opens the receiving endpoint and returns its URL.
func (r *pushBench) listen(ctx context.Context) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}

	s := &http.Server{
		Handler:           r,
		ReadHeaderTimeout: 10 * time.Second,
	}

	go s.Serve(l)
	context.AfterFunc(ctx, func() { s.Close() })

	return "http://" + l.Addr().String() + "/{external_id}", nil
}

// ServeHTTP receives a push.
func (r *pushBench) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	now := time.Now()
	io.Copy(io.Discard, req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()

	if requestedAt, ok := r.requestedAt[req.Header.Get("Flexd-Asset-Id")]; ok {
		r.took = append(r.took, now.Sub(requestedAt))
	}

	if r.remaining--; r.remaining == 0 {
		close(r.all)
	}
}

// prepare makes an organisation with n chargers.
func (r *pushBench) prepare(ctx context.Context, n int) (flex.OrgID, error) {
	org, _, err := r.app.Access.AddOrg(ctx, "Bench", benchUser, benchPassword)
	if err != nil {
		return flex.OrgID{}, err
	}

	if err := r.onboard(ctx, n); err != nil {
		return org.ID, err
	}

	return org.ID, r.logIn()
}

// onboard makes a site with n chargers.
func (r *pushBench) onboard(ctx context.Context, n int) error {
	meter := directory.SandboxMeters()[0]
	api := client.New(r.base, benchUser, benchPassword)
	in := client.OnboardRequest{Proposition: client.PropositionFullAssetSchedule}
	in.Site.MPAN, in.Site.Postcode = meter.MPAN, meter.Postcode
	in.Site.GaveBoundaryMeterConsentAt.Time = time.Now().UTC()

	for len(r.assets) < n {
		in.Assets = nil
		for i := range min(100, n-len(r.assets)) {
			in.Assets = append(in.Assets, client.OnboardingAssetRequest{
				ExternalID: fmt.Sprintf("car-%d", len(r.assets)+i),
				Type:       client.AssetCharger,
			})
		}

		out, err := api.Onboard(ctx, in)
		if err != nil {
			return err
		}

		for _, a := range out.Assets {
			r.assets = append(r.assets, flex.AssetID(a.AssetID))
		}
	}

	return nil
}

// logIn gets the token that plug-ins are sent with.
func (r *pushBench) logIn() error {
	answer, err := r.http.PostForm(r.base+"/auth/token-form", url.Values{
		"username": {benchUser},
		"password": {benchPassword},
	})
	if err != nil {
		return err
	}

	defer answer.Body.Close()
	var token struct {
		Access string `json:"access_token"`
	}

	err = json.NewDecoder(answer.Body).Decode(&token)
	r.token = token.Access

	return err
}

// expect begins to count n pushes.
func (r *pushBench) expect(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remaining = n
	r.all = make(chan struct{})
	r.requestedAt = make(map[string]time.Time, n)
}

// await returns when all pushes have arrived.
func (r *pushBench) await(ctx context.Context) error {
	select {
	case <-r.all:
	case <-time.After(2 * time.Minute):
	case <-ctx.Done():
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	if r.remaining > 0 {
		return errors.Join(
			fmt.Errorf("%d pushes did not come", r.remaining),
			r.requestErr,
			ctx.Err(),
		)
	}

	return nil
}

// plugIn plugs the cars in at fixed times, without waiting for earlier ones, and then waits
// for all their pushes.
func (r *pushBench) plugIn(ctx context.Context, rate int) error {
	r.expect(len(r.assets))
	start := time.Now()

	for i, a := range r.assets {
		due := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		go r.event(
			ctx,
			a,
			due,
			"plug-in",
			`{"tariff":{"off_peak_times":"00:00-05:30, 23:30-24:00","timezone":"Europe/London"}}`,
		)
	}

	return r.await(ctx)
}

// event posts an event of an asset that was due at the instant.
func (r *pushBench) event(
	ctx context.Context,
	asset flex.AssetID,
	due time.Time,
	name, body string,
) {
	r.mu.Lock()
	r.requestedAt[asset.String()] = due
	r.mu.Unlock()
	err := func() error {
		req, err := http.NewRequestWithContext(
			ctx,
			http.MethodPost,
			r.base+"/entities/asset/"+asset.String()+"/event/"+name,
			strings.NewReader(body),
		)

		if err != nil {
			return err
		}

		req.Header.Set("Authorization", "Bearer "+r.token)
		req.Header.Set("Content-Type", "application/json")

		answer, err := r.http.Do(req)
		if err != nil {
			return err
		}

		defer answer.Body.Close()
		message, _ := io.ReadAll(answer.Body)

		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf(
				"%s: %d %s",
				name,
				answer.StatusCode,
				bytes.TrimSpace(message),
			)
		}

		return nil
	}()

	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requestErr = err
	}
}

// drain stops the pushes while every car is planned again. It then returns how many arrive per
// second.
func (r *pushBench) drain(
	ctx context.Context,
	org flex.OrgID,
	set delivery.Settings,
) (float64, error) {
	off, on := false, true
	set.Enabled = &off
	if _, _, err := r.app.Push.SetEndpoint(
		ctx,
		org,
		flex.ScheduleEndpoint,
		set,
	); err != nil {
		return 0, err
	}

	r.expect(len(r.assets))
	var wait sync.WaitGroup
	next := make(chan flex.AssetID)

	for range 32 {
		wait.Go(func() {
			for a := range next {
				r.event(
					ctx,
					a,
					time.Now(),
					"intent",
					`{"intent":{"energy_required_kwh":1,"ready_by":"2026-01-01T07:00:00Z","charging_mode":"minimise_charging_time"}}`,
				)
			}
		})
	}

	for _, a := range r.assets {
		next <- a
	}

	close(next)
	wait.Wait()
	set.Enabled = &on
	start := time.Now()

	if _, _, err := r.app.Push.SetEndpoint(
		ctx,
		org,
		flex.ScheduleEndpoint,
		set,
	); err != nil {
		return 0, err
	}

	err := r.await(ctx)

	return float64(len(r.assets)) / time.Since(start).Seconds(), err
}
