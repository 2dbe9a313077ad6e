package app_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// valve is a proxy before a database that can stop forwarding: connections stay open, are taken,
// and nothing comes through, as behind a network that is cut in two.
type valve struct {
	net.Listener
	target string
	mu     sync.Mutex
	turned *sync.Cond
	shut   bool
}

func newValve(t *testing.T, target string) *valve {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	v := &valve{Listener: l, target: target}
	v.turned = sync.NewCond(&v.mu)
	t.Cleanup(func() { v.set(false); l.Close() })

	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go v.forward(c)
		}
	}()
	return v
}

func (v *valve) set(shut bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shut = shut
	v.turned.Broadcast()
}

// pass waits until the valve is open.
func (v *valve) pass() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.shut {
		v.turned.Wait()
	}
}

func (v *valve) forward(c net.Conn) {
	defer c.Close()
	v.pass()
	server, err := net.Dial("tcp", v.target)
	if err != nil {
		return
	}
	defer server.Close()

	copyTo := func(to, from net.Conn) {
		defer to.Close()
		b := make([]byte, 32<<10)
		for {
			n, err := from.Read(b)
			v.pass()
			if _, written := to.Write(b[:n]); written != nil || err != nil {
				return
			}
		}
	}

	go copyTo(server, c)
	copyTo(c, server)
}

// A database that hangs is noticed: requests under way end, new ones are refused at once with
// 503 and when to come again, /readyz says so, and all goes on by itself when it answers.
func TestServe_DatabaseHangs(t *testing.T) {
	direct, err := url.Parse(storetest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}

	v := newValve(t, direct.Host)
	through := *direct
	through.Host = v.Addr().String()
	h, err := app.Open(t.Context(), app.Settings{
		Database: through.String(), Keys: storetest.Keys(t), Environment: flex.Sandbox, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, password, err := h.Access.AddOrg(t.Context(), "acme", "acme", "")
	if err != nil {
		t.Fatal(err)
	}

	token, err := h.Access.Login(t.Context(), "acme", password, "test")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, l) }()
	defer func() {
		v.set(false)
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		h.Close()
	}()

	const limit = time.Minute // long, for a machine that is busy: it hung for as long before
	base := "http://" + l.Addr().String()
	client := &http.Client{Timeout: limit}
	said := ""
	ask := func(method, path, key string) (status int, retry string) {
		t.Helper()
		r, _ := http.NewRequest(method, base+path, strings.NewReader(`{"mpan":"1234567890126","postcode":"SW1A 2AA","street_address":"10 Downing Street"}`))
		r.Header.Set("Authorization", "Bearer "+token.Token.Reveal())
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}

		resp, err := client.Do(r)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		defer resp.Body.Close()
		if b, _ := io.ReadAll(resp.Body); key == "" || strings.HasPrefix(key, "one") {
			said = string(b)
		}
		return resp.StatusCode, resp.Header.Get("Retry-After")
	}

	until := func(path string, want int) {
		t.Helper()

		for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			status, _ := ask("GET", path, "")
			if status == want {
				return
			}
			if time.Since(start) > limit {
				t.Fatalf("%s answers %d for %v, want %d", path, status, limit, want)
			}
		}
	}
	until("/readyz", 200)

	for round := range 2 {
		key := "one " + string('a'+rune(round))
		v.set(true)
		start := time.Now()
		var many sync.WaitGroup
		for range 40 { // more than the pool has connections
			many.Go(func() {
				if status, retry := ask("POST", "/entities/site", "many "+key+time.Now().String()); status != 503 || retry == "" {
					t.Errorf("while the database hangs: %d, Retry-After %q", status, retry)
				}
			})
		}

		many.Wait()
		until("/readyz", 503)
		t.Logf("noticed within %v", time.Since(start).Round(10*time.Millisecond))

		start = time.Now()
		for range 100 {
			if status, retry := ask("POST", "/entities/site", key); status != 503 || retry == "" {
				t.Fatalf("afterwards: %d, Retry-After %q", status, retry)
			}
		}
		t.Logf("100 more refused within %v", time.Since(start).Round(10*time.Millisecond))

		v.set(false)
		until("/readyz", 200)
		status, _ := ask("POST", "/entities/site", key)
		if made := strings.Contains(said, "exists already"); status != 200 && !made { // by the round before
			t.Errorf("repeated under its key when the database answers again: %d %s", status, said)
		}
	}
}

// A primary whose replica confirms nothing takes statements and ends no commit: that is a
// database that hangs, too.
func TestServe_CommitsHang(t *testing.T) {
	server := storetest.Server(t)
	h, err := app.Open(t.Context(), app.Settings{
		Database: server.URL, Keys: storetest.Keys(t), Environment: flex.Sandbox, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}

	_, password, err := h.Access.AddOrg(t.Context(), "acme", "acme", "")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, l) }()
	confirm := func(by string) {
		t.Helper()
		for _, s := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + by + "'", "SELECT pg_reload_conf()"} {
			if err := storetest.Exec(t, server.URL, s); err != nil {
				t.Fatal(err)
			}
		}
	}

	defer func() {
		confirm("")
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		h.Close()
	}()

	token, err := h.Access.Login(t.Context(), "acme", password, "test")
	if err != nil {
		t.Fatal(err)
	}

	client := &http.Client{Timeout: time.Minute} // long, for a machine that is busy: it hung for ever before
	ask := func(method, path, key string) *http.Response {
		t.Helper()
		r, _ := http.NewRequest(method, "http://"+l.Addr().String()+path, strings.NewReader(`{"mpan":"1234567890126","postcode":"SW1A 2AA","street_address":"10 Downing Street"}`))
		r.Header.Set("Authorization", "Bearer "+token.Token.Reveal())
		r.Header.Set("Idempotency-Key", key)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}

		resp.Body.Close()
		return resp
	}

	write := func(key string) *http.Response { return ask("POST", "/entities/site", key) }
	until := func(want int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ask("GET", "/readyz", "").StatusCode != want; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("/readyz does not answer %d", want)
			}
		}
	}

	until(200)
	if resp := write("before"); resp.StatusCode != 200 {
		t.Fatalf("before: %s", resp.Status)
	}

	for round := range 2 {
		confirm("nobody")
		var many sync.WaitGroup

		for n := range 40 { // more than the pool has connections
			many.Go(func() {
				resp := write(fmt.Sprintf("%d %d", round, n))
				end := time.Now().Add(time.Minute)
				for try := 0; resp.StatusCode != 503 && time.Now().Before(end); try++ { // the setting is not read yet
					resp = write(fmt.Sprintf("%d %d %d", round, n, try))
				}
				if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
					t.Errorf("while no replica confirms: %s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
				}
			})
		}

		many.Wait()
		until(503)

		confirm("")
		until(200)
		if resp := write(fmt.Sprintf("after %d", round)); resp.StatusCode >= 500 {
			t.Errorf("afterwards: %s", resp.Status)
		}
	}
}
