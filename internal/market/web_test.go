package market

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"flexd/internal/egress"
)

// pipeListener hands the server's end of each pipe to a server in the same bubble.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { return nil }
func (l *pipeListener) Addr() net.Addr { return &net.IPAddr{} }

// bubble runs fn in fake time with a Web whose every host is answered by h.
func bubble(t *testing.T, h http.HandlerFunc, fn func(*testing.T, *Web)) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipeListener{make(chan net.Conn), make(chan struct{})}
		server := &http.Server{Handler: h}
		go server.Serve(l)
		client := egress.New(egress.Options{Pipe: func(ctx context.Context, _ string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			select {
			case l.conns <- theirs:
				return ours, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}})

		fn(t, &Web{Client: client})
		client.Close()
		close(l.done)
		server.Close()
		synctest.Wait()
	})
}

func TestWebTriesAgain(t *testing.T) {
	var tries atomic.Int32
	var status atomic.Int32
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		if tries.Add(1) > 2 {
			io.WriteString(w, `{"a":1}`)
			return
		}

		w.WriteHeader(int(status.Load()))
	}, func(t *testing.T, w *Web) {
		for _, s := range []int32{429, 500, 503} {
			tries.Store(0)
			status.Store(s)
			start := time.Now()
			var to struct{ A int }
			found, err := w.get(t.Context(), "http://service.example/prices", &to)
			took := time.Since(start)
			if !found || err != nil || to.A != 1 || tries.Load() != 3 {
				t.Errorf("after %d: %v, %v, %d tries", s, to, err, tries.Load())
			}

			// A second, then two, each a fifth more or less.
			if took < 2400*time.Millisecond || took > 3600*time.Millisecond || took == 3*time.Second {
				t.Errorf("after %d: it took %v", s, took)
			}
		}
	})
}

func TestWebGivesUp(t *testing.T) {
	var tries atomic.Int32
	answer := func(w http.ResponseWriter, r *http.Request) {
		tries.Add(1)

		switch r.URL.Path {
		case "/bad":
			w.WriteHeader(400)
			io.WriteString(w, "from: is   not\na date "+strings.Repeat("x", 500))
		case "/busy":
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(429)
		case "/asleep":
			w.Header().Set("Retry-After", "86400")

			w.WriteHeader(503)
		case "/until":
			w.Header().Set("Retry-After", time.Now().UTC().Add(31*time.Second).Format("Mon, 02 Jan 2006 15:04:05 GMT"))
			w.WriteHeader(429)
		case "/html":
			io.WriteString(w, "<html>")
		case "/long":
			io.WriteString(w, strings.Repeat(" ", MaxAnswer+1))
		}
	}

	bubble(t, answer, func(t *testing.T, w *Web) {
		for _, c := range []struct {
			path, want    string
			tries         int32
			atLeast, upTo time.Duration
		}{
			{"/bad", "status 400: from: is not a date xxx", 1, 0, 0},
			{"/html", "cannot be read", 1, 0, 0},
			{"/long", "more than", 1, 0, 0},
			{"/busy", "5 times: status 429", Retries + 1, 5*2 + 5 + 6*time.Second, 29 * time.Second}, // 5, 5, 5, 8
			{"/until", "5 times: status 429", Retries + 1, Retries * 30 * time.Second, Retries * 31 * time.Second},
			{"/asleep", "status 503", Retries + 1, Retries * MaxWait, Retries * MaxWait},
		} {
			tries.Store(0)
			start := time.Now()
			_, err := w.get(t.Context(), "http://service.example"+c.path, &struct{}{})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "service.example") || len(err.Error()) > 300 {
				t.Errorf("%s: %v, want %q", c.path, err, c.want)
			}

			if took := time.Since(start); took < c.atLeast || took > c.upTo || tries.Load() != c.tries {
				t.Errorf("%s: %d tries in %v", c.path, tries.Load(), took)
			}
		}

		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := w.get(ctx, "http://service.example/busy", &struct{}{}); err == nil || time.Since(start) > time.Second {
			t.Errorf("a caller that goes away: %v after %v", err, time.Since(start))
		}
	})
}

func TestWebFetchesWhatHasChanged(t *testing.T) {
	var asked []string
	answer := func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("If-None-Match")+r.Header.Get("If-Modified-Since"))
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(304)
			return
		}

		if r.URL.Path == "/tagged" {
			w.Header().Set("ETag", `"v1"`)
		}
		if r.URL.Path == "/dated" {
			w.Header().Set("Last-Modified", "Wed, 15 Jan 2025 12:00:00 GMT")
		}
		io.WriteString(w, `{"a":1}`)
	}

	bubble(t, answer, func(t *testing.T, w *Web) {
		for _, path := range []string{"/tagged", "/tagged", "/dated", "/dated", "/plain", "/plain"} {
			var to struct{ A int }
			if found, err := w.get(t.Context(), "http://service.example"+path, &to); !found || err != nil || to.A != 1 {
				t.Errorf("%s: %v, %v", path, to, err)
			}
		}
		if got := fmt.Sprintf("%q", asked); got != `["" "\"v1\"" "" "Wed, 15 Jan 2025 12:00:00 GMT" "" ""]` {
			t.Error(got)
		}

		for i := range maxRemembered + 1 {
			if _, err := w.get(t.Context(), fmt.Sprintf("http://service.example/dated?%d", i), &struct{}{}); err != nil || len(w.known) > maxRemembered {
				t.Fatalf("%v, %d answers kept", err, len(w.known))
			}
		}
	})
}

func TestWebReachesNothingPrivate(t *testing.T) {
	w := &Web{Client: egress.New(egress.Options{})}
	if _, err := w.get(t.Context(), "http://127.0.0.1:1/", &struct{}{}); err == nil || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("a source on this machine was asked: %v", err)
	}
}

// TestWebUnaskedNotModified: a service answers 304 for what is not remembered. It is asked
// again, and is not taken to have nothing.
func TestWebUnaskedNotModified(t *testing.T) {
	asked := 0
	answer := func(w http.ResponseWriter, r *http.Request) {
		asked++
		if asked == 1 {
			w.WriteHeader(304)
			return
		}

		io.WriteString(w, `{"a":1}`)
	}

	bubble(t, answer, func(t *testing.T, w *Web) {
		var to struct{ A int }
		found, err := w.get(t.Context(), "http://service.example/", &to)
		if !found || err != nil || to.A != 1 || asked != 2 {
			t.Errorf("%v, %v, %v, asked %d times", found, to, err, asked)
		}
	})
}
