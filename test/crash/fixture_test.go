package crash

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/wire"
	"flexd/test/port"
)

// binary builds the program once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "flexd-crash-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "flexd")
	out, err := exec.Command("go", "build", "-o", path, "flexd/cmd/flexd").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// service is the real program on a store, which the test starts and kills.
type service struct {
	*testing.T
	path, database string
	keys           string // the key file
	listen         string
	flags          []string // further ones of flexd serve
	cmd            *exec.Cmd
	password       string
}

func newService(t *testing.T, database string) *service {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return newServiceOf(t, database, path)
}

// newServiceOf is newService of the program at a path.
func newServiceOf(t *testing.T, database, path string) *service {
	t.Helper()
	p, err := port.Free() // the same after every start, and nobody's meanwhile
	if err != nil {
		t.Fatal(err)
	}
	s := &service{T: t, path: path, database: database, keys: filepath.Join(t.TempDir(), "keys"), listen: port.Address(p)}
	if out, err := exec.Command(path, "key", "new", s.keys).CombinedOutput(); err != nil {
		t.Fatalf("flexd key new: %v\n%s", err, out)
	}

	var made map[string]string
	if err := json.Unmarshal(s.run("org", "add", "Acme", "--username", "acme", "--json"), &made); err != nil {
		t.Fatal(err)
	}
	s.password = made["password"]
	return s
}

// second is another process of the program on the same store.
func (s *service) second() *service {
	s.Helper()
	p, err := port.Free()
	if err != nil {
		s.Fatal(err)
	}
	o := *s
	o.listen, o.cmd = port.Address(p), nil
	return &o
}

// metric is the sum of a metric of the process.
func (s *service) metric(name string) (n float64) {
	s.Helper()
	resp, err := http.Get("http://" + s.listen + "/metrics")
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()

	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if of, _, _ := strings.Cut(series, "{"); of == name {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				s.Fatal(err)
			}
			n += v
		}
	}
	return n
}

// run runs a command of the program to its end.
func (s *service) run(args ...string) []byte {
	s.Helper()
	cmd := exec.Command(s.path, append(args, "--database", s.database, "--key-file", s.keys, "--environment", "sandbox")...)
	cmd.Stderr = s.Output()
	out, err := cmd.Output()
	if err != nil {
		s.Fatalf("flexd %v: %v\n%s", args, err, out)
	}
	return out
}

// start starts the service and returns when it answers, with the time that took.
func (s *service) start() time.Duration {
	s.Helper()
	began := time.Now()
	s.cmd = exec.Command(s.path, append([]string{"serve", "--database", s.database, "--key-file", s.keys, "--environment", "sandbox", "--allow-private-endpoints",
		"--listen", s.listen, "--log-level", "error"}, s.flags...)...)
	s.cmd.Stderr = s.Output()
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.Fatal(err)
	}

	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			s.Fatalf("the service did not come up: %v", err)
		}
		if strings.HasPrefix(line, "listening on http://") {
			break
		}
	}

	go io.Copy(io.Discard, r)
	for {
		if resp, err := http.Get("http://" + s.listen + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return time.Since(began)
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// kill ends the service with a signal and waits for its end.
func (s *service) kill(sig os.Signal) {
	s.cmd.Process.Signal(sig)
	s.cmd.Wait()
}

func (s *service) client(retries int) *client.Client {
	c := client.New("http://"+s.listen, "acme", s.password)
	c.Retries = retries
	c.HTTP.Timeout = time.Minute
	return c
}

// endpoint remembers the newest profile event that arrived for each charger, and counts what
// came twice and what came after a newer one.
type endpoint struct {
	*httptest.Server
	mu           sync.Mutex
	newest       map[string]string
	generation   map[string]int64
	received     map[string]bool
	twice, older int
}

func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{newest: map[string]string{}, generation: map[string]int64{}, received: map[string]bool{}}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	car, id := r.URL.Path[1:], r.Header.Get("webhook-id")
	generation, _ := strconv.ParseInt(r.Header.Get("Flexd-Generation"), 10, 64)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.received[id] {
		e.twice++
	}
	if generation < e.generation[car] {
		e.older++
	}
	e.received[id], e.generation[car], e.newest[car] = true, generation, id
}

// faults returns how many pushes came twice, and after a newer one.
func (e *endpoint) faults() (twice, older int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.twice, e.older
}

// car is one charger with a worker that uses it, and what the service has acknowledged.
type car struct {
	asset    client.AssetID
	external string
	plugged  bool
	intent   float64 // the last that was acknowledged
	tried    float64 // the last that was sent
	made     []string
	halves   int       // half-hours whose readings were acknowledged
	since    time.Time // they are those before it, without a gap
}

// chargers makes n cars at one site.
func (s *service) chargers(n int, e *endpoint) []*car {
	s.Helper()
	ctx := s.Context()
	file := filepath.Join(s.TempDir(), "meters.csv")
	meter := "mpan,direction,address,postcode,energised,half_hourly_settled,domestic\n1099000010005,import,1 High Street,SW1A 1AA,true,true,true\n"
	if err := os.WriteFile(file, []byte(meter), 0o600); err != nil {
		s.Fatal(err)
	}
	s.run("meters", "import", file)
	s.run("endpoint", "set", "Acme", "--url", e.URL+"/{external_id}", "--allow-private-endpoints")
	s.start()
	in := client.OnboardRequest{
		Site: client.SiteRequest{MPAN: "1099000010005", Postcode: "SW1A 1AA", StreetAddress: "1 High Street",
			GaveBoundaryMeterConsentAt: client.At(time.Now().Add(-time.Hour))},
		Proposition: client.PropositionFullAssetSchedule,
	}

	for i := range n {
		in.Assets = append(in.Assets, client.OnboardingAssetRequest{ExternalID: fmt.Sprintf("car%d", i), Type: client.AssetCharger})
	}
	made, err := s.client(4).Onboard(ctx, in)
	if err != nil {
		s.Fatal(err)
	}
	cars := make([]*car, n)
	for i, a := range made.Assets {
		cars[i] = &car{asset: a.AssetID, external: a.ExternalID}
	}
	return cars
}

// use plays one car until the context ends, noting what is acknowledged.
func (s *service) use(ctx context.Context, c *car, site client.SiteID, acked *atomic.Int64) {
	api := s.client(0)
	ack := func(err error) bool {
		if err == nil {
			acked.Add(1)
		}
		return err == nil
	}

	for ctx.Err() == nil {
		switch rand.IntN(5) {
		case 0:
			if ack(api.PlugIn(ctx, c.asset, client.PlugInEventRequest{})) {
				c.plugged = true
			}
		case 1, 2:
			c.tried++
			in := client.IntentEventRequest{Intent: client.Intent{EnergyRequiredKWh: energyOf(c.tried), ReadyBy: client.At(time.Now()), ChargingMode: client.ChargingMinimise}}

			if ack(api.SetIntent(ctx, c.asset, in)) {
				c.intent = c.tried
			}
		case 3:
			name := fmt.Sprintf("%s-%d", c.external, len(c.made))

			_, err := api.CreateAsset(ctx, client.AssetRequest{ExternalID: name, Type: client.AssetCharger, SiteID: site})
			if ack(err) || client.StatusOf(err) == http.StatusConflict { // made before the kill, unheard
				c.made = append(c.made, name)
			}
		case 4:
			ack(c.read(ctx, api))
		}
	}
}

// read posts the reading of the half-hour before all that were acknowledged.
func (c *car) read(ctx context.Context, api *client.Client) error {
	if c.since.IsZero() {
		c.since = time.Now().Truncate(flex.HalfHour)
	}

	at := c.since.Add(-time.Duration(c.halves+1) * flex.HalfHour)
	r, err := api.PostReadings(ctx, []client.ReadingDataPoint{{AssetID: c.asset, Label: client.LabelChargerEnergy, Value: 1.5,
		StartTimestamp: client.At(at), EndTimestamp: client.At(at.Add(flex.HalfHour))}})
	if err == nil && r.Responses[0].Accepted {
		c.halves++
	}

	return err
}

// readings counts those that the store has of a car, past the service: the interface lists none.
func (s *service) readings(c *car) (n int, err error) {
	driver, name := "pgx", s.database
	if path, file := strings.CutPrefix(s.database, "sqlite:"); file {
		driver, name = "sqlite", "file:"+strings.ReplaceAll(path, "#", "%23")+"?_pragma=busy_timeout(10000)"
	}

	db, err := sql.Open(driver, name)
	if err != nil {
		return 0, err
	}
	defer db.Close()

	id := [16]byte(c.asset)
	err = db.QueryRowContext(s.Context(), `SELECT count(*) FROM reading WHERE asset_id = $1`, id[:]).Scan(&n)

	return n, err
}

// energyOf is the need that the intent of a number asks for, in kWh: a watt-hour more each time, so that none passes what
// the interface takes, however many a fast machine sends.
func energyOf(number float64) float64 { return number / 1000 }

// lost compares what was acknowledged with what the service answers now.
func (s *service) lost(cars []*car, e *endpoint) (lost []string) {
	ctx, api := s.Context(), s.client(4)
	note := func(format string, args ...any) { lost = append(lost, fmt.Sprintf(format, args...)) }

	for _, c := range cars {
		for _, name := range c.made {
			if _, err := api.AssetByExternalID(ctx, name); err != nil {
				note("asset %s: %v", name, err)
			}
		}
		if c.intent > 0 {
			in, err := api.Intent(ctx, c.asset)
			if got := math.Round(in.Intent.EnergyRequiredKWh * 1000); err != nil || got < c.intent || got > c.tried {
				note("%s: intent %v acknowledged, %v answered, %v", c.external, c.intent, got, err)
			}
		}

		if got, err := s.readings(c); err != nil || got < c.halves {
			note("%s: %d readings acknowledged, %d there, %v", c.external, c.halves, got, err)
		}
		if !c.plugged {
			continue
		}
		if problem := s.unpushed(c, e); problem != "" {
			note("%s: %s", c.external, problem)
		}
	}
	return lost
}

// arrivalMax is how long a push may take after a crash: on PostgreSQL the lease of a process
// that is gone has to run out.
const arrivalMax = 3 * time.Minute

// unpushed waits until the endpoint has the car's newest schedule.
func (s *service) unpushed(c *car, e *endpoint) string {
	api := s.client(4)
	var got wire.ScheduleResponse
	for end := time.Now().Add(arrivalMax); ; time.Sleep(50 * time.Millisecond) {
		if err := api.Do(s.Context(), "GET", "/entities/asset/"+c.asset.String()+"/schedule", nil, nil, &got); err != nil {
			return fmt.Sprintf("plugged in, and no schedule: %v", err)
		}
		e.mu.Lock()
		newest := e.newest[c.external]
		e.mu.Unlock()
		if newest == got.EventID.String() {
			return ""
		}

		if time.Now().After(end) {
			var d json.RawMessage
			if err := api.Do(s.Context(), "GET", "/deliveries/"+got.EventID.String(), nil, nil, &d); err != nil {
				d = json.RawMessage(err.Error())
			}
			return fmt.Sprintf("its newest schedule %s did not arrive, the endpoint has %s; delivery: %s", got.EventID, newest, d)
		}
	}
}

// signals of the ways in which a service ends.
const (
	sigKill = syscall.SIGKILL
	sigTerm = syscall.SIGTERM
)
