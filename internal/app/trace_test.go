package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"flexd/internal/app"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
	"flexd/internal/trace"
	"flexd/internal/web"
)

// spans is what a collector was sent, by the span's name.
type spans struct {
	mu    sync.Mutex
	named map[string][]span
	text  bytes.Buffer // all of it, to look for what must not be in it
}

type span struct{ trace, id, parent string }

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var sent collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &sent); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(body)
	for _, of := range sent.GetResourceSpans() {
		for _, scope := range of.GetScopeSpans() {
			for _, x := range scope.GetSpans() {
				s.named[x.GetName()] = append(s.named[x.GetName()], span{fmt.Sprintf("%x", x.GetTraceId()), fmt.Sprintf("%x", x.GetSpanId()), fmt.Sprintf("%x", x.GetParentSpanId())})
			}
		}
	}
}

// TestTraces follows a car that is plugged in from the request, in the client's own trace, to the
// transaction, the plan and the push, and finds no word of a person in what is sent.
func TestTraces(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		sent := &spans{named: map[string][]span{}}
		server := httptest.NewServer(sent)
		defer server.Close()

		stop, err := trace.To(t.Context(), server.URL+"/v1/traces", "test", 1)
		if err != nil {
			t.Fatal(err)
		}

		h, err := app.Open(t.Context(), app.Settings{
			Database: database, Keys: storetest.Keys(t), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Environment: flex.Sandbox, InventPrices: true, AllowPrivateEndpoints: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()

		pushed := plugInTraced(t, h, database)
		if pushed == 0 {
			t.Error("nothing was pushed")
		}
		if err := stop(t.Context()); err != nil {
			t.Fatal(err)
		}

		sent.mu.Lock()
		defer sent.mu.Unlock()

		const client = "4bf92f3577b34da6a3ce929d0e0e4736"
		for _, name := range []string{"POST /entities/asset/{asset_id}/event/plug-in", "write", "plan", "push"} {
			found := false
			for _, x := range sent.named[name] {
				found = found || x.trace == client && x.parent != ""
			}
			if !found {
				t.Errorf("no span %q in the client's trace: %v", name, sent.named)
			}
		}

		for _, secret := range []string{"correct horse", "Elm Grove", "car-7"} {
			if strings.Contains(sent.text.String(), secret) {
				t.Errorf("%q is in the traces", secret)
			}
		}
	})
}

// plugInTraced plugs a car in by a request with a traceparent field, and returns how many
// pushes its endpoint was sent.
func plugInTraced(t *testing.T, h *app.App, database string) (pushed int) {
	var mu sync.Mutex
	endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		pushed++
	}))
	defer endpoint.Close()

	org, _, err := h.Access.AddOrg(t.Context(), "Acme", "acme", "correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Push.SetEndpoint(t.Context(), org.ID, flex.ScheduleEndpoint, delivery.Settings{URL: endpoint.URL}); err != nil {
		t.Fatal(err)
	}

	seed := storetest.NewSeed(t, h.DB, database).As(org.ID)
	car := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Charger, 7400)

	handler := web.Traced(h.Handler())
	call := func(path, kind, token, body string) []byte {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code/100 != 2 {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}

		return w.Body.Bytes()
	}

	var login struct {
		Token string `json:"access_token"`
	}
	form := call("/auth/token-form", "application/x-www-form-urlencoded", "", "grant_type=password&username=acme&password=correct+horse+battery")
	if err := json.Unmarshal(form, &login); err != nil {
		t.Fatal(err)
	}

	ready := h.DB.Now().Add(8 * time.Hour).Format(time.RFC3339)
	call("/entities/asset/"+car.String()+"/event/plug-in", "application/json", login.Token,
		fmt.Sprintf(`{"intent":{"energy_required_kwh":10,"ready_by":%q,"charging_mode":"minimise_charging_time"}}`, ready))

	if err := h.Push.Drain(t.Context(), org.ID); err != nil {
		t.Fatal(err)
	}

	mu.Lock()
	defer mu.Unlock()
	return pushed
}
