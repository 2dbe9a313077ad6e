package ha

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"flexd/client"
	"flexd/internal/flex"
)

// call is one request and what became of it.
type call struct {
	to         *machine
	what       string
	began      time.Time
	took       time.Duration
	status     int // 0: no answer
	retryAfter string
}

// recorder makes requests to one machine and keeps what became of them.
type recorder struct {
	load *load
	to   *machine
}

// RoundTrip makes a request.
func (r recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	c := call{to: r.to, what: q.Method + " " + q.URL.Path, began: time.Now()}
	resp, err := http.DefaultTransport.RoundTrip(q)
	c.took = time.Since(c.began)
	if err == nil {
		c.status, c.retryAfter = resp.StatusCode, resp.Header.Get("Retry-After")
	}
	r.load.mu.Lock()
	r.load.calls = append(r.load.calls, c)
	r.load.mu.Unlock()
	return resp, err
}

// load is what is asked of flexd while parts fail, and what it acknowledged.
type load struct {
	*cluster
	clients  []*client.Client
	site     client.SiteID
	cars     []*car
	endpoint *endpoint
	stop     func()
	done     sync.WaitGroup

	mu    sync.Mutex
	calls []call
	acked int
	older []string // what stood after something newer

	written timeline   // direct writes to the primary
	served  []timeline // writes through each flexd
}

// car is one charger, and what was acknowledged of it.
type car struct {
	asset    client.AssetID
	external string
	made     []string // further assets
	halves   int      // half-hours whose readings were acknowledged
	plugged  bool

	intent, tried float64 // the last that was acknowledged, and the last that was sent
}

// answerMax is how long a client waits for an answer.
const answerMax = 20 * time.Second

// newLoad makes cars at one site and begins to use them through every flexd.
func (c *cluster) newLoad(cars int) *load {
	c.Helper()
	l := &load{cluster: c, endpoint: newEndpoint(c), served: make([]timeline, len(c.services))}
	p := c.primary()
	meters := filepath.Join(c.TempDir(), "meters.csv")
	text := "mpan,direction,address,postcode,energised,half_hourly_settled,domestic\n1099000010005,import,1 High Street,SW1A 1AA,true,true,true\n"
	if err := os.WriteFile(meters, []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
	c.command(p, "meters", "import", meters)
	c.command(p, "endpoint", "set", "Acme", "--url", l.endpoint.url+"/{external_id}", "--allow-private-endpoints")

	for _, m := range c.services {
		api := client.New("http://"+m.address()+":8080", "acme", c.password)
		api.HTTP = &http.Client{Timeout: answerMax, Transport: recorder{l, m}}
		api.Retries = 0
		l.clients = append(l.clients, api)
	}
	in := client.OnboardRequest{
		Site: client.SiteRequest{
			MPAN: "1099000010005", Postcode: "SW1A 1AA", StreetAddress: "1 High Street",
			GaveBoundaryMeterConsentAt: client.At(time.Now().Add(-time.Hour)),
		},
		Proposition: client.PropositionFullAssetSchedule,
	}

	for i := range cars {
		in.Assets = append(in.Assets, client.OnboardingAssetRequest{ExternalID: fmt.Sprintf("car%d", i), Type: client.AssetCharger})
	}
	made, err := l.clients[0].Onboard(c.Context(), in)
	if err != nil {
		c.Fatal(err)
	}

	for _, a := range made.Assets {
		l.cars = append(l.cars, &car{asset: a.AssetID, external: a.ExternalID})
	}
	first, err := l.clients[0].Asset(c.Context(), l.cars[0].asset)
	if err != nil {
		c.Fatal(err)
	}
	l.site = first.SiteID

	ctx, stop := context.WithCancel(c.Context())
	l.stop = func() { stop(); l.done.Wait() }
	c.Cleanup(l.stop)
	for i, car := range l.cars {
		seed := rand.New(rand.NewPCG(seedOf(c.T), uint64(i)))
		l.done.Go(func() { l.use(ctx, car, seed) })
	}
	for i := range c.services {
		l.done.Go(func() { l.watchService(ctx, i) })
	}
	l.done.Go(func() { l.watchDatabase(ctx) })
	return l
}

// pause is between two requests of one car: load enough to meet every moment of a fault, and
// little enough to leave the machine to the deployment.
const pause = 50 * time.Millisecond

// use plays one car until the context ends: each request to a flexd by chance.
func (l *load) use(ctx context.Context, c *car, by *rand.Rand) {
	start := time.Now().Truncate(flex.HalfHour)
	for ctx.Err() == nil {
		api := l.clients[by.IntN(len(l.clients))]

		switch by.IntN(6) {
		case 0:
			if l.ack(api.PlugIn(ctx, c.asset, client.PlugInEventRequest{})) {
				c.plugged = true
			}
		case 1, 2:
			c.tried++
			in := client.Intent{EnergyRequiredKWh: c.tried, ReadyBy: client.At(time.Now()), ChargingMode: client.ChargingMinimise}

			if l.ack(api.SetIntent(ctx, c.asset, client.IntentEventRequest{Intent: in})) {
				c.intent = c.tried
			}
		case 3:
			name := fmt.Sprintf("%s-%d", c.external, len(c.made))
			_, err := api.CreateAsset(ctx, client.AssetRequest{ExternalID: name, Type: client.AssetCharger, SiteID: l.site})
			if l.ack(err) || client.StatusOf(err) == http.StatusConflict { // made before, and the answer was lost
				c.made = append(c.made, name)
			}
		case 4:
			at := start.Add(-time.Duration(c.halves+1) * flex.HalfHour)

			r, err := api.PostReadings(ctx, []client.ReadingDataPoint{{
				AssetID: c.asset, Label: client.LabelChargerEnergy, Value: 1.5,
				StartTimestamp: client.At(at), EndTimestamp: client.At(at.Add(flex.HalfHour)),
			}})
			if l.ack(err) && r.Responses[0].Accepted {
				c.halves++
			}
		case 5:
			if c.intent == 0 {
				continue
			}

			got, err := api.Intent(ctx, c.asset)
			if kwh := got.Intent.EnergyRequiredKWh; err == nil && kwh < c.intent {
				l.mu.Lock()
				l.older = append(l.older, fmt.Sprintf("%s: intent %v was acknowledged, and %v read", c.external, c.intent, kwh))
				l.mu.Unlock()
			}
		}

		time.Sleep(pause)
	}
}

func (l *load) ack(err error) bool {
	if err == nil {
		l.mu.Lock()
		l.acked++
		l.mu.Unlock()
	}
	return err == nil
}

func (l *load) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked
}

// lost compares what was acknowledged with what is there, once the load has ended.
func (l *load) lost() (lost []string) {
	ctx := l.Context()
	note := func(format string, args ...any) { lost = append(lost, fmt.Sprintf(format, args...)) }
	api := client.New("http://"+l.services[0].address()+":8080", "acme", l.password)
	api.Retries = 8
	for _, c := range l.cars {
		for _, name := range c.made {
			if _, err := api.AssetByExternalID(ctx, name); err != nil {
				note("asset %s: %v", name, err)
			}
		}

		if c.intent > 0 {
			in, err := api.Intent(ctx, c.asset)
			if got := in.Intent.EnergyRequiredKWh; err != nil || got < c.intent || got > c.tried {
				note("%s: intent %v acknowledged, %v answered, %v", c.external, c.intent, got, err)
			}
		}
		if got, err := l.readings(c); err != nil || got < c.halves {
			note("%s: %d readings acknowledged, %d there, %v", c.external, c.halves, got, err)
		}
	}
	return lost
}

// readings counts the car's readings.
func (l *load) readings(c *car) (n int, err error) {
	conn, err := pgx.Connect(l.Context(), databaseURL(l.primary(), "flexd"))
	if err != nil {
		return 0, err
	}
	defer conn.Close(l.Context())
	err = conn.QueryRow(l.Context(), "SELECT count(*) FROM reading WHERE asset_id = $1", [16]byte(c.asset)).Scan(&n)
	return n, err
}

// sql runs a statement on a machine's database.
func (c *cluster) sql(m *machine, database, statement string) {
	c.Helper()
	conn, err := pgx.Connect(c.Context(), databaseURL(m, database))
	if err != nil {
		c.Fatal(err)
	}
	defer conn.Close(c.Context())
	if _, err := conn.Exec(c.Context(), statement); err != nil {
		c.Fatal(err)
	}
}

// unpushed waits until the endpoint has the car's newest schedule.
func (l *load) unpushed(c *car) string {
	var got struct {
		EventID string `json:"event_id"`
	}

	for end := time.Now().Add(startMax); ; time.Sleep(100 * time.Millisecond) {
		if err := l.clients[0].Do(l.Context(), "GET", "/entities/asset/"+c.asset.String()+"/schedule", nil, nil, &got); err != nil {
			return fmt.Sprintf("plugged in, and no schedule: %v", err)
		}
		newest := l.endpoint.newestOf(c.external)
		if newest == got.EventID {
			return ""
		}
		if time.Now().After(end) {
			return fmt.Sprintf("its newest schedule %s did not arrive, the endpoint has %s", got.EventID, newest)
		}
	}
}

// endpoint takes pushes, remembers the newest for each charger, and counts what came after a
// newer one.
type endpoint struct {
	url        string
	mu         sync.Mutex
	newest     map[string]string
	generation map[string]int64
	took       int
	older      []string
}

func newEndpoint(c *cluster) *endpoint {
	e := &endpoint{newest: map[string]string{}, generation: map[string]int64{}}
	server := httptest.NewUnstartedServer(e)
	server.Listener.Close()
	server.Listener = listen(c.T)
	server.Start()
	c.Cleanup(server.Close)
	e.url = server.URL
	return e
}

// ServeHTTP takes one push.
func (e *endpoint) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	car := r.URL.Path[1:]
	generation, _ := strconv.ParseInt(r.Header.Get("Flexd-Generation"), 10, 64)
	e.mu.Lock()
	defer e.mu.Unlock()
	if generation < e.generation[car] {
		e.older = append(e.older, fmt.Sprintf("%s: push %d came after %d", car, generation, e.generation[car]))
	}
	e.took++
	e.generation[car], e.newest[car] = generation, r.Header.Get("webhook-id")
}

func (e *endpoint) newestOf(car string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.newest[car]
}
