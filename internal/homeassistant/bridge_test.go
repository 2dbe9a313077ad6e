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
	"strings"
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
)

var now = time.Date(2026, time.March, 4, 23, 45, 0, 0, time.UTC)

// flexd answers as the interface does, and passes on the charge-nows.
func flexd(t *testing.T, pressed chan string) *httptest.Server {
	answers := map[string]string{
		"/auth/token-form":                            `{"access_token":"t"}`,
		"/entities/site/" + site:                      `{"id":"` + site + `","asset_ids":["` + charger + `"]}`,
		"/entities/asset/" + charger:                  `{"id":"` + charger + `","external_id":"CP1","type":"charger","site_id":"` + site + `"}`,
		"/entities/asset/" + charger + "/schedule":    schedule,
		"/entities/asset/" + charger + "/price-curve": `{"half_hourly_traded_prices":[{"start_timestamp":"2026-03-04T23:30:00Z","price_gbp_per_mwh":61.5}]}`,
		"/rewards/" + site + "/info":                  `{"current_balance_pence":250,"total_earnings_pence":1234}`,
	}

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, ok := answers[r.URL.Path]; ok {
			io.WriteString(w, body)
			return
		}

		b, _ := io.ReadAll(r.Body)
		pressed <- r.URL.Path + " " + string(b)
		io.WriteString(w, "null")
	}))
	t.Cleanup(server.Close)

	return server
}

const schedule = `{"asset_id":"` + charger + `","generation":1,"made_at":"2026-03-04T22:00:00Z","ready_by":"2026-03-05T07:00:00Z","periods":[
	{"start_timestamp":"2026-03-04T22:00:00Z","end_timestamp":"2026-03-05T00:00:00Z","limit_w":0},
	{"start_timestamp":"2026-03-05T00:00:00Z","end_timestamp":"2026-03-05T00:30:00Z","limit_w":0},
	{"start_timestamp":"2026-03-05T00:30:00Z","end_timestamp":"2026-03-05T04:30:00Z","limit_w":99999}]}`

// broker is one in this process, and what was published at it.
type broker struct {
	*mochi.Server
	address string
	said    chan string // "topic text"
}

func startBroker(t *testing.T) *broker {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	b := &broker{mochi.New(&mochi.Options{InlineClient: true, Logger: slog.New(slog.DiscardHandler)}), "mqtt://" + l.Addr().String(), make(chan string, 1000)}
	t.Cleanup(func() { b.Close() })

	hook := &auth.Hook{}
	ledger := &auth.Options{Ledger: &auth.Ledger{Auth: auth.AuthRules{{Username: "ha", Password: "secret", Allow: true}}}}
	note := func(_ *mochi.Client, _ packets.Subscription, p packets.Packet) {
		b.said <- p.TopicName + " " + string(p.Payload)
	}
	err = errors.Join(b.AddHook(hook, ledger), b.AddListener(listeners.NewNet("t", l)), b.Serve(), b.Subscribe("#", 1, note))
	if err != nil {
		t.Fatal(err)
	}

	return b
}

// until reads what is said up to a line with these words, and returns all of it.
func (b *broker) until(t *testing.T, words string) (all []string) {
	t.Helper()
	late := time.After(time.Minute)

	for {
		select {
		case line := <-b.said:
			all = append(all, line)
			if strings.Contains(line, words) {
				return all
			}
		case <-late:
			t.Fatalf("%q was never said, but %q", words, all)
		}
	}
}

func start(t *testing.T, b *broker, flexd, password string, log *slog.Logger) (stop func()) {
	id := client.SiteID{15: 1}
	bridge := homeassistant.New(homeassistant.Settings{
		Client: client.New(flexd, "acme", "secret"), Sites: []client.SiteID{id}, Broker: b.address, Username: "ha", Password: password,
		Topic: "flexd", Discovery: "homeassistant", Every: time.Hour, ChargeFor: 4 * time.Hour,
		Now: func() time.Time { return now }, Log: log,
	})

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

// TestBridge shows a site with a charger, presses its button, loses the connection, and ends.
func TestBridge(t *testing.T) {
	pressed := make(chan string, 10)
	b := startBroker(t)
	stop := start(t, b, flexd(t, pressed).URL, "secret", slog.New(slog.DiscardHandler))

	golden(t, b.until(t, "flexd/site/"+site+"/state {"))

	for _, id := range []string{other, "x/y", charger} { // the first two are none of its buttons
		if err := b.Publish("flexd/asset/"+id+"/charge_now", []byte("PRESS"), false, 1); err != nil {
			t.Fatal(err)
		}
	}

	want := "/entities/asset/" + charger + `/event/charge-now {"end_at":"2026-03-05T03:45:00Z"}`
	if got := <-pressed; got != want {
		t.Errorf("pressed %s, not %s", got, want)
	}

	lost, ok := b.Clients.Get("flexd-bridge")
	if !ok {
		t.Fatal("the bridge is not connected")
	}

	lost.Stop(errors.New("the cable was cut"))
	b.until(t, "flexd/status offline") // the last will
	b.until(t, "flexd/status online")

	stop()
	b.until(t, "flexd/status offline")

	if len(pressed) > 0 {
		t.Errorf("pressed too: %s", <-pressed)
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
	stop := start(t, b, flexd(t, nil).URL, "wrong", slog.New(slog.NewTextHandler(log, nil)))

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
