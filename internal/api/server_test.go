package api_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"flexd/internal/api"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/wire"
)

// onSQLite opens a fixture for what does not depend on the engine.
func onSQLite(t *testing.T) *fixture {
	return open(t, storetest.Open(t, storetest.SQLite(t), store.Options{Environment: flex.Sandbox}))
}

func TestBody_Limit(t *testing.T) {
	h := onSQLite(t)
	site := h.newSite(halfHourly, "SW1A 2AA", "")
	at := "/entities/site/" + site
	body := func(n int) string { return `{"email":"a@b.example"}` + strings.Repeat(" ", n-23) }
	h.want("PATCH", at, body(wire.MaxBody-1), 200, "")
	h.want("PATCH", at, body(wire.MaxBody), 200, "")
	h.want("PATCH", at, body(wire.MaxBody+1), 413, fmt.Sprintf(`{"detail":"the body is longer than %d bytes"}`, wire.MaxBody))
	h.want("PATCH", at, body(wire.MaxBody+1), 413, "", "Idempotency-Key: k")

	h.want("POST", "/auth/token-form", "username="+strings.Repeat("x", wire.MaxForm), 413, "", asForm)
	h.want("PATCH", at, `{}`, 415, `{"detail":"a body of type \"text/plain\" is not taken here: send application/json"}`, "Content-Type: text/plain")
	h.want("PATCH", at, `{}`, 415, "", "Content-Type: nonsense;;")
	h.want("PATCH", at, `{}`, 415, "", "Content-Encoding: gzip")
	h.want("PATCH", at, `{}`, 200, "", "Content-Type: application/json; charset=utf-8", "Content-Encoding: Identity")
	h.want("POST", "/data/readings", gzipped(t, `{"readings":[]}`), 200, `{"responses":[]}`, "Content-Encoding: GZIP")
	h.want("PATCH", at, `{}`, 200, "", "Content-Type: application/merge-patch+json")
	h.want("PATCH", at, ``, 422, "")
	h.want("PATCH", at, `{}`, 200, "", "Content-Type:")
}

// TestBody_BreaksOff shows that a body that does not come to its end is no failure of ours.
func TestBody_BreaksOff(t *testing.T) {
	h := onSQLite(t)
	const body = `{"mpan":"1234567890126"`
	for _, c := range []struct {
		path, field string
		status      int
	}{
		{"/validation/mpan", "", 400},
		{"/validation/mpan", "Idempotency-Key", 400},
		{"/entities/site", "", 400},
		{"/data/readings", "", 400},
		{"/entities/asset/b2c3d4e5-f6a7-8901-bcde-f23456789012/event/intent", "", 422}, // has no 400
	} {
		r := httptest.NewRequest("POST", c.path, io.MultiReader(strings.NewReader(body), iotest.ErrReader(io.ErrUnexpectedEOF)))
		r.Header.Set("Authorization", "Bearer "+h.token)
		if c.field != "" {
			r.Header.Set(c.field, "k")
		}

		w := httptest.NewRecorder()
		h.server.Handler().ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), "the body broke off") {
			t.Errorf("%s %s: %d %s", c.path, c.field, w.Code, w.Body)
		}
	}
}

func TestEveryAnswer(t *testing.T) {
	h := onSQLite(t)
	for _, c := range []struct{ method, path string }{
		{"GET", "/healthz"}, {"GET", "/nowhere"}, {"PUT", "/entities/site"}, {"GET", "/entities/site"}, {"GET", "/entities/site/x"}, {"GET", "/meter"},
	} {
		for _, token := range []string{"Bearer " + h.token, ""} {
			r := h.ask(c.method, c.path, "", "Authorization: "+token)
			for _, name := range []string{"Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "X-Content-Type-Options"} {
				if r.Header.Get(name) == "" {
					t.Errorf("%s %s: %d without %s", c.method, c.path, r.StatusCode, name)
				}
			}
		}
	}

	for given, kept := range map[string]bool{"my-id.1_2": true, "": false, "a b": false, strings.Repeat("x", 64): true, strings.Repeat("x", 65): false, "ü": false} {
		if r := h.ask("GET", "/healthz", "", "Request-Id: "+given); (r.Header.Get("Request-Id") == given) != kept {
			t.Errorf("Request-Id %q is answered with %q", given, r.Header.Get("Request-Id"))
		}
	}
	h.want("HEAD", "/entities/site", "", 200, "")
	h.want("HEAD", "/entities/site/x", "", 422, "")
}

func TestRateLimit(t *testing.T) {
	h := onSQLite(t)
	limited := &api.Server{Access: h.server.Access, Registry: h.server.Registry, Log: h.server.Log, RequestsPerSecond: 1}
	l := httptest.NewServer(limited.Handler())
	defer l.Close()
	plain := h.url
	h.url = l.URL
	for i := range 10 {
		r := h.want("GET", "/auth/users/me/", "", 200, "")
		if r.Header.Get("RateLimit-Limit") != "10" || r.Header.Get("RateLimit-Remaining") != strconv.Itoa(9-i) {
			t.Errorf("request %d: %v", i, r.Header)
		}
	}

	r := h.want("GET", "/auth/users/me/", "", 429, "")
	if r.Header.Get("Retry-After") != "1" || r.Header.Get("RateLimit-Remaining") != "0" {
		t.Errorf("%v", r.Header)
	}
	_, token := h.newOrg("Other", "other")
	h.want("GET", "/auth/users/me/", "", 200, "", "Authorization: Bearer "+token)
	h.want("GET", "/healthz", "", 200, "")
	h.url = plain
	h.want("GET", "/auth/users/me/", "", 200, "")
}

// logs collects what is logged.
type logs struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(b)
}

// TestLog shows one event a request, without tokens, MPANs or addresses, and that what was
// not written to be shown is logged and not shown.
func TestLog(t *testing.T) {
	h := onSQLite(t)
	log := &logs{}
	s := &api.Server{Access: h.server.Access, Registry: h.server.Registry, Log: slog.New(slog.NewTextHandler(log, nil)), Ready: func(context.Context) error { return errors.New("the rounds stand still") }}
	l := httptest.NewServer(s.Handler())
	defer l.Close()
	h.url = l.URL
	h.want("POST", "/entities/site", `{"mpan":"1234567890126","postcode":"SW1A 2AA","street_address":"10 Downing Street","email":"resident@example.com"}`, 200, "")

	h.want("GET", "/entities/site?mpan=1234567890126", "", 200, "")
	h.want("GET", "/readyz", "", 503, `{"detail":"not ready"}`)
	h.want("POST", "/entities/asset/b2c3d4e5-f6a7-8901-bcde-f23456789012/event/plug-out", "", 500, `{"detail":"internal error"}`) // there is no control service: a panic
	got := log.String()
	if strings.Count(got, "msg=request") != 4 {
		t.Errorf("%d events:\n%s", strings.Count(got, "msg=request"), got)
	}

	for _, secret := range []string{h.token, "1234567890126", "Downing", "SW1A", "resident@"} {
		if strings.Contains(got, secret) {
			t.Errorf("the log has %s:\n%s", secret, got)
		}
	}
	for _, wanted := range []string{"the rounds stand still", "panic", "route=/entities/site ", "user=acme", "level=ERROR"} {
		if !strings.Contains(got, wanted) {
			t.Errorf("the log has no %s:\n%s", wanted, got)
		}
	}
}

// A client that hangs up before its answer is no failure of the service.
func TestLog_ClientGone(t *testing.T) {
	h := onSQLite(t)
	log := &logs{}
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	s := &api.Server{Access: h.server.Access, Log: slog.New(slog.NewTextHandler(log, nil)), Ready: func(ctx context.Context) error {
		hangUp()
		return ctx.Err()
	}}
	s.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/readyz", nil).WithContext(ctx))
	if got := log.String(); !strings.Contains(got, "level=INFO msg=request") || !strings.Contains(got, "status=499") {
		t.Errorf("the log has %s", got)
	}
}

func TestMetrics(t *testing.T) {
	h := onSQLite(t)
	h.want("GET", "/entities/site", "", 200, "")
	r := h.want("GET", "/metrics", "", 200, "", "Authorization:")
	for _, line := range []string{
		`flexd_requests_total{method="GET",route="/entities/site",status="200"} 1`,
		`flexd_request_seconds_count{method="GET",route="/entities/site"} 1`, "go_goroutines ",
	} {
		if !strings.Contains(r.body, line) {
			t.Errorf("no %s in\n%s", line, r.body)
		}
	}
	for _, field := range []string{"X-Forwarded-For: 127.0.0.1", "Forwarded: for=127.0.0.1", "X-Real-IP: 127.0.0.1", "Via: 1.1 proxy"} {
		h.want("GET", "/metrics", "", 404, `{"detail":"Not Found"}`, field)
	}

	for _, c := range []struct {
		readers []netip.Prefix
		status  int
	}{{nil, 404}, {[]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, 200}} {
		behind := &api.Server{Access: h.server.Access, Log: h.server.Log, MetricsFrom: c.readers,
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
		r, w := httptest.NewRequest("GET", "/metrics", nil), httptest.NewRecorder()
		r.RemoteAddr = "127.0.0.1:5000"
		if behind.Handler().ServeHTTP(w, r); w.Code != c.status {
			t.Errorf("metrics for a trusted proxy at the loopback, readers %v: %d", c.readers, w.Code)
		}
	}

	away := httptest.NewRequest("GET", "/metrics", nil)
	away.RemoteAddr = "192.0.2.1:5000"
	w := httptest.NewRecorder()
	h.server.Handler().ServeHTTP(w, away)
	if w.Code != 404 {
		t.Errorf("metrics from afar: %d", w.Code)
	}
}

// TestServe_Stop shows that a server that is stopped takes no more connections and answers
// the requests that it has.
func TestServe_Stop(t *testing.T) {
	h := onSQLite(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- h.server.Serve(ctx, l) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	const body = `{"mpan":"1234567890126"}`
	fmt.Fprintf(c, "POST /entities/site/check-eligibility HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", h.token, len(body))
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "100") { // the handler reads the body
		t.Fatalf("%q %v", line, err)
	}

	in.ReadString('\n')
	stop()
	for {
		c, err := net.DialTimeout("tcp", l.Addr().String(), time.Second)
		if err != nil {
			break
		}
		c.Close()
	}

	io.WriteString(c, body)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Errorf("the request under way: %q %v", line, err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
}
