package homeassistant_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

	"flexd/client"
	"flexd/internal/homeassistant"
)

var update = flag.Bool("update", false, "write the golden file anew")

const (
	site    = "00000000-0000-0000-0000-000000000001"
	charger = "00000000-0000-0000-0000-000000000002"
	other   = "00000000-0000-0000-0000-000000000003"
	battery = "00000000-0000-0000-0000-000000000004"
)

var now = time.Date(2026, time.March, 4, 23, 45, 0, 0, time.UTC)

// service answers as flexd does, and passes on what buttons ask for.
type service struct {
	*httptest.Server
	mu      sync.Mutex
	answers map[string]string // by path; without one it is 404
	pressed chan string
}

// forbidden is the body of an answer that is 403.
const forbidden = "forbidden"

func (s *service) set(path, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = body
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	body, known := s.answers[r.URL.Path]
	s.mu.Unlock()

	switch {
	case body == forbidden:
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"detail":"forbidden"}`)

	case known && body != "":
		io.WriteString(w, body)
	case strings.Contains(r.URL.Path, "/event/"):
		b, _ := io.ReadAll(r.Body)
		s.pressed <- r.URL.Path + " " + string(b)
		io.WriteString(w, "null")
	default:
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"detail":"site not found or not authorized"}`)
	}
}

// flexd is a service with a site that has a charger, which waits, and a battery, which discharges.
func flexd(t *testing.T) *service {
	s := &service{pressed: make(chan string, 10), answers: map[string]string{
		"/auth/token-form":                                 `{"access_token":"t"}`,
		"/entities/site/" + site:                           `{"id":"` + site + `","asset_ids":["` + charger + `","` + battery + `"]}`,
		"/entities/asset/" + charger:                       `{"id":"` + charger + `","external_id":"CP1","type":"charger","site_id":"` + site + `"}`,
		"/entities/asset/" + battery:                       `{"id":"` + battery + `","external_id":"B1","type":"battery","site_id":"` + site + `"}`,
		"/entities/asset/" + charger + "/schedule":         schedule,
		"/entities/asset/" + battery + "/battery-schedule": steps,
		"/entities/asset/" + charger + "/price-curve":      `{"half_hourly_traded_prices":[{"start_timestamp":"2026-03-04T23:30:00Z","price_gbp_per_mwh":61.5}]}`,
		"/entities/asset/" + battery + "/price-curve":      `{"half_hourly_traded_prices":[]}`,
		"/rewards/" + site + "/info":                       `{"current_balance_pence":250,"total_earnings_pence":1234}`,
	}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)

	return s
}

const schedule = `{"asset_id":"` + charger + `","generation":1,"made_at":"2026-03-04T22:00:00Z","ready_by":"2026-03-05T07:00:00Z","periods":[
	{"start_timestamp":"2026-03-04T22:00:00Z","end_timestamp":"2026-03-05T00:00:00Z","limit_w":0},
	{"start_timestamp":"2026-03-05T00:00:00Z","end_timestamp":"2026-03-05T00:30:00Z","limit_w":0},
	{"start_timestamp":"2026-03-05T00:30:00Z","end_timestamp":"2026-03-05T04:30:00Z","limit_w":99999}]}`

const steps = `{"schedule_last_updated":"2026-03-04T22:00:00Z","schedule_steps":[
	{"start_timestamp":"2026-03-04T23:30:00Z","end_timestamp":"2026-03-05T00:30:00Z","action":"discharge_max","allow_deviation":false},
	{"start_timestamp":"2026-03-05T00:30:00Z","end_timestamp":"2026-03-05T04:30:00Z","action":"charge_max","allow_deviation":false}]}`

// broker is one in this process, and what was published at it.
type broker struct {
	*mochi.Server
	address string
	cables  *cables
	said    chan string // "topic text"
}

// cables listens, and keeps the newest connection so that a test can cut it. Client.Stop
// would not do: a broker that is between two messages takes it for a farewell, and then it
// does not publish the last will.
type cables struct {
	net.Listener
	mu     sync.Mutex // held while nothing gets through
	newest net.Conn
}

func (c *cables) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest = conn

	return conn, nil
}

// loseConnection cuts the bridge's connection, and lets it connect again once the broker has
// published the last will and forgotten the connection of before. This broker loses the will
// or the new subscriptions when a client connects while it still takes leave of it.
func (b *broker) loseConnection(t *testing.T) {
	t.Helper()
	b.cables.mu.Lock()
	defer b.cables.mu.Unlock()

	if err := b.cables.newest.Close(); err != nil {
		t.Fatal(err)
	}
	b.until(t, "flexd/status offline") // the last will

	for _, known := b.Clients.Get("flexd-bridge"); known; _, known = b.Clients.Get("flexd-bridge") {
		time.Sleep(time.Millisecond)
	}
}

func startBroker(t *testing.T) *broker {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	b := &broker{
		Server:  mochi.New(&mochi.Options{InlineClient: true, Logger: slog.New(slog.DiscardHandler)}),
		address: "mqtt://" + l.Addr().String(),
		cables:  &cables{Listener: l},
		said:    make(chan string, 1000),
	}
	t.Cleanup(func() { b.Close() })

	hook := &auth.Hook{}
	ledger := &auth.Options{Ledger: &auth.Ledger{Auth: auth.AuthRules{{Username: "ha", Password: "secret", Allow: true}}}}
	note := func(_ *mochi.Client, _ packets.Subscription, p packets.Packet) {
		b.said <- p.TopicName + " " + string(p.Payload)
	}
	err = errors.Join(b.AddHook(hook, ledger), b.AddListener(listeners.NewNet("t", b.cables)), b.Serve(), b.Subscribe("#", 1, note))
	if err != nil {
		t.Fatal(err)
	}

	return b
}

// until reads what is said up to a line with these words, and returns all of it.
func (b *broker) until(t *testing.T, words string) (all []string) {
	t.Helper()
	return b.read(t, words, func(line string) bool { return strings.Contains(line, words) })
}

// gone reads up to the message that takes a topic away.
func (b *broker) gone(t *testing.T, topic string) {
	t.Helper()
	b.read(t, topic+" without a text", func(line string) bool { return line == topic+" " })
}

func (b *broker) read(t *testing.T, what string, last func(line string) bool) (all []string) {
	t.Helper()
	late := time.After(time.Minute)

	for {
		select {
		case line := <-b.said:
			all = append(all, line)
			if last(line) {
				return all
			}
		case <-late:
			t.Fatalf("%q was never said, but %q", what, all)
		}
	}
}

// settings are those of a bridge that shows the site at a broker.
func settings(broker string, flexd *service) homeassistant.Settings {
	return homeassistant.Settings{
		Client: client.New(flexd.URL, "acme", "secret"), Sites: []client.SiteID{{15: 1}}, Broker: broker, Username: "ha", Password: "secret",
		Topic: "flexd", Discovery: "homeassistant", Every: time.Hour, ChargeFor: 4 * time.Hour,
		Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
	}
}

func start(t *testing.T, s homeassistant.Settings) (stop func()) {
	bridge := homeassistant.New(s)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- bridge.Run(ctx) }()

	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestBridge shows a site with a charger and a battery, presses buttons, loses the connection,
// and ends.
func TestBridge(t *testing.T) {
	b, home := startBroker(t), flexd(t)
	stop := start(t, settings(b.address, home))

	golden(t, b.until(t, "flexd/site/"+site+"/availability online"))

	for _, press := range []string{other + "/charge_now", "x/y/charge_now", battery + "/skip_night", charger + "/charge_now", charger + "/skip_night"} { // the first three are none of its buttons
		if err := b.Publish("flexd/asset/"+press, []byte("PRESS"), false, 1); err != nil {
			t.Fatal(err)
		}
	}

	got := []string{<-home.pressed, <-home.pressed}
	slices.Sort(got)
	want := []string{
		"/entities/asset/" + charger + `/event/charge-now {"end_at":"2026-03-05T03:45:00Z"}`,
		"/entities/asset/" + charger + `/event/skip-night `,
	}
	if !slices.Equal(got, want) {
		t.Errorf("pressed %q, not %q", got, want)
	}

	b.loseConnection(t)
	b.until(t, "flexd/site/"+site+"/availability online")

	// The last will comes late, after the bridge has connected anew.
	if err := b.Publish("flexd/status", []byte("offline"), true, 1); err != nil {
		t.Fatal(err)
	}
	b.until(t, "flexd/status offline")
	b.until(t, "flexd/status online")

	stop()
	b.until(t, "flexd/status offline")

	if len(home.pressed) > 0 {
		t.Errorf("pressed too: %s", <-home.pressed)
	}
}

// An asset that comes is shown. One that flexd does not answer for is unavailable. What goes is
// taken out of Home Assistant, be it while the bridge runs or while it does not.
func TestBridge_ComeAndGo(t *testing.T) {
	b, home := startBroker(t), flexd(t)
	s := settings(b.address, home)
	s.Every = 10 * time.Millisecond
	home.set("/entities/site/"+site, `{"id":"`+site+`","asset_ids":["`+charger+`"]}`)
	stop := start(t, s)
	b.until(t, "flexd/asset/"+charger+"/availability online")

	home.set("/entities/site/"+site, `{"id":"`+site+`","asset_ids":["`+charger+`","`+battery+`"]}`)
	b.until(t, "flexd_"+battery+"/plan/config {")

	home.set("/entities/asset/"+battery+"/price-curve", "")
	b.until(t, "flexd/asset/"+battery+"/availability offline")

	home.set("/entities/site/"+site, `{"id":"`+site+`","asset_ids":["`+charger+`"]}`)
	b.gone(t, "flexd/asset/"+battery+"/availability") // the last of what is taken away
	b.without(t, battery)

	stop()
	home.set("/entities/site/"+site, `{"id":"`+site+`","asset_ids":[]}`)
	stop = start(t, s)
	b.gone(t, "homeassistant/sensor/flexd_"+charger+"/price_gbp_per_mwh/config")
	b.until(t, "flexd/site/"+site+"/availability online")

	home.set("/entities/site/"+site, "")
	b.gone(t, "flexd/site/"+site+"/availability")
	b.without(t, site)
	stop()
}

// Of two sites one is not there at the start: the other is shown, and the first once it is there. One for which flexd does not
// answer later keeps what is shown of it, and what comes at the other is shown.
func TestBridge_OneSiteFails(t *testing.T) {
	b, home := startBroker(t), flexd(t)
	s := settings(b.address, home)
	s.Every = 10 * time.Millisecond
	s.Sites = append([]client.SiteID{{15: 3}}, s.Sites...)
	home.set("/entities/site/"+site, `{"id":"`+site+`","asset_ids":["`+charger+`"]}`)
	stop := start(t, s)
	defer stop()
	b.until(t, "flexd/asset/"+charger+"/availability online")

	home.set("/entities/site/"+other, `{"id":"`+other+`","asset_ids":[]}`)
	b.until(t, "flexd_"+other+"/balance_gbp/config {")

	home.set("/entities/site/"+site, forbidden)
	home.set("/entities/asset/"+battery, `{"id":"`+battery+`","external_id":"B1","type":"battery","site_id":"`+other+`"}`)
	home.set("/entities/site/"+other, `{"id":"`+other+`","asset_ids":["`+battery+`"]}`)

	for _, line := range b.until(t, "flexd_"+battery+"/plan/config {") {
		if topic, body, _ := strings.Cut(line, " "); body == "" && strings.Contains(topic, charger) {
			t.Errorf("taken away: %s", topic)
		}
	}

	if len(b.Topics.Messages("homeassistant/sensor/flexd_"+charger+"/#")) == 0 {
		t.Error("the charger of the site that is forbidden is not shown any more")
	}
}

// without fails when the broker keeps a description of the id.
func (b *broker) without(t *testing.T, id string) {
	t.Helper()
	for _, m := range b.Topics.Messages("homeassistant/#") {
		if strings.Contains(m.TopicName, id) {
			t.Errorf("kept: %s %s", m.TopicName, m.Payload)
		}
	}
}

// golden compares the entities and states with those of the golden file.
func golden(t *testing.T, lines []string) {
	t.Helper()
	all := map[string]any{}

	for _, line := range lines {
		topic, text, _ := strings.Cut(line, " ")
		var body any
		if json.Unmarshal([]byte(text), &body) != nil {
			body = text
		}
		all[topic] = body
	}

	got, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}

	const path = "testdata/entities.json"
	if *update {
		if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil || strings.TrimSpace(string(want)) != string(got) {
		t.Errorf("entities are %s (%v)", got, err)
	}
}

// lines is what a logger writes, line by line.
type lines chan string

// Write passes a line on, or drops it when nobody has read those before.
func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

// A broker that does not let the bridge in is named in the log, and is shown nothing.
func TestBridge_Refused(t *testing.T) {
	b := startBroker(t)
	log := make(lines, 100)
	s := settings(b.address, flexd(t))
	s.Password, s.Log = "wrong", slog.New(slog.NewTextHandler(log, nil))
	stop := start(t, s)

	select {
	case line := <-log:
		if !strings.Contains(line, "does not let flexd in") {
			t.Error(line)
		}
	case <-time.After(time.Minute):
		t.Error("nothing was logged")
	}

	stop()
	if len(b.said) > 0 {
		t.Errorf("said %s", <-b.said)
	}
}

// A site that flexd does not have is an error at once.
func TestBridge_NoSite(t *testing.T) {
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"detail":"gone"}`)
	}))
	defer gone.Close()

	err := homeassistant.New(homeassistant.Settings{Client: client.New(gone.URL, "acme", "secret"), Sites: []client.SiteID{{15: 1}}}).Run(t.Context())
	if client.StatusOf(err) != http.StatusNotFound {
		t.Error(err)
	}
}
