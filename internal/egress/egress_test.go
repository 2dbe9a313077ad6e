package egress

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func open(t testing.TB) *Client {
	c := New(Options{Allow: Private})
	t.Cleanup(c.Close)
	return c
}

func TestDo(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)

		if r.Header.Get("Accept-Encoding") != "" || r.Header.Get("X-Idempotency-Key") != "" || r.Header.Get("User-Agent") != "flexd" {
			t.Errorf("headers %v", r.Header)
		}

		w.Header().Set("ETag", `"v1"`)
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(
			w,
			"%s %s %s",
			r.Method,
			r.Header.Get("If-None-Match"),
			b,
		)
	}))

	defer s.Close()

	a, err := open(t).Do(t.Context(), Request{Method: "POST", URL: s.URL, Header: map[string]string{"If-None-Match": `"v0"`}, Body: []byte("hello")})
	if err != nil || a.Status != 202 || a.Header("etag") != `"v1"` || string(a.Body) != `POST "v0" hello` {
		t.Errorf("got %d %q %q, %v", a.Status, a.Header("etag"), a.Body, err)
	}
}

func TestDo_AnswerLimit(t *testing.T) {
	for _, c := range []struct {
		ask, send, get int
		whole          bool
	}{
		{0, AnswerMax - 1, AnswerMax - 1, true}, {0, AnswerMax, AnswerMax, true}, {0, AnswerMax + 1, AnswerMax, false},
		{100, 100, 100, true}, {100, 101, 100, false}, {LargeAnswerMax + 1, LargeAnswerMax + 1, LargeAnswerMax, false},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, c.send)) }))
		a, err := open(t).Do(t.Context(), Request{Method: "GET", URL: s.URL, AnswerMax: c.ask})
		if a.Status != 200 || len(a.Body) != c.get || (err == nil) != c.whole {
			t.Errorf("%+v: %d bytes, %v", c, len(a.Body), err)
		}

		s.Close()
	}
}

func TestDo_Bomb(t *testing.T) {
	var bomb bytes.Buffer
	zw := gzip.NewWriter(&bomb)
	zw.Write(make([]byte, 50<<20))
	zw.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(bomb.Bytes())
	}))

	defer s.Close()

	a, err := open(t).Do(t.Context(), Request{Method: "POST", URL: s.URL})
	if err != nil || a.Status != 200 || len(a.Body) != bomb.Len() { // as it came, not inflated
		t.Errorf("read %d bytes of %d, %v", len(a.Body), bomb.Len(), err)
	}
}

func TestDo_Words(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()

	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	raw := func(answer string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}

				http.ReadRequest(bufio.NewReader(c))
				io.WriteString(c, answer)
				c.Close()
			}
		}()

		return "http://" + l.Addr().String()
	}
	for url, want := range map[string]string{
		closed.URL:                     "refused the connection: nothing listens there",
		secure.URL:                     "no authority that we know has signed it",
		"https" + plain.URL[4:]:        "does not speak TLS",
		raw(""):                        "closed the connection before it had answered",
		raw("SSH-2.0-OpenSSH\r\n\r\n"): "does not answer in HTTP",
		"ftp://example.com":            `begins with "ftp", not with https://`,
		"https://":                     "names no host",
		"https://%zz":                  "cannot be read",
		"https://a/" + strings.Repeat("x", URLMax):                 "more than 4096",
		raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20)): "more than 16384 bytes of header",
		raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"):    "while its answer was read",
	} {
		_, err := open(t).Do(t.Context(), Request{Method: "POST", URL: url})
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", url, err, want)
		}
	}

	c := New(Options{Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("planted")
	}}})
	if _, err := c.Do(t.Context(), Request{Method: "GET", URL: "http://example.com"}); err == nil || !strings.Contains(err.Error(), "example.com cannot be resolved") {
		t.Error(err)
	}
}

// In a bubble, the instants at which an exchange is given up are exact.
func TestDo_TimeLimits(t *testing.T) {
	for name, c := range map[string]struct {
		serve  func(net.Conn)
		took   time.Duration
		status int
		words  string
	}{
		"never answers": {func(c net.Conn) { asked(c); io.Copy(io.Discard, c) }, AttemptTime, 0, "did not answer within 15s"},
		"one byte of header a second": {func(c net.Conn) {
			asked(c)

			trickle(c, "HTTP/1.1 200 OK\r\nX: ")
		}, AttemptTime, 0, "did not answer within 15s"},
		"one byte of body a second": {func(c net.Conn) {
			asked(c)
			io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			trickle(c, "")
		}, AttemptTime, 200, "while its answer was read"},
		"never reads": {func(net.Conn) {}, AttemptTime, 0, "did not answer within 15s"},
		"another protocol, and then nothing": {func(c net.Conn) {
			asked(c)

			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			io.Copy(io.Discard, c) // until the client closes it
		}, 0, 101, "answered 101"},
		"endless": {func(c net.Conn) {
			asked(c)
			io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")

			for _, err := c.Write(make([]byte, 4096)); err == nil; {
				_, err = c.Write(make([]byte, 4096))
			}
		}, 0, 200, "more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := New(Options{Pipe: func(context.Context, string) (net.Conn, error) {
					here, there := net.Pipe()
					go c.serve(there)
					return here, nil
				}})

				defer client.Close()
				start := time.Now()

				a, err := client.Do(t.Context(), Request{Method: "POST", URL: "http://example.com/", Body: make([]byte, 10<<10)})
				if took := time.Since(start); took != c.took || a.Status != c.status || err == nil || !strings.Contains(err.Error(), c.words) {
					t.Errorf("after %v: %d, %v", took, a.Status, err)
				}

				time.Sleep(time.Second) // the trickle meets the closed pipe
			})
		})
	}
}

// asked reads the request.
func asked(c net.Conn) {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err == nil {
		io.Copy(io.Discard, r.Body)
	}
}

func trickle(c net.Conn, head string) {
	io.WriteString(c, head)
	for _, err := c.Write([]byte("x")); err == nil; _, err = c.Write([]byte("x")) {
		time.Sleep(time.Second)
	}
}

// A connection that the other side closed while it was kept does not cost an attempt.
func TestDo_StaleConnection(t *testing.T) {
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n.Add(1) }))
	defer s.Close()
	c := open(t)

	for range 20 {
		if _, err := c.Do(t.Context(), Request{Method: "POST", URL: s.URL, Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		s.CloseClientConnections()
	}
}

// uses is how many requests a connection has had, in the context of its server.
type uses struct{}

// TestDo_ClosedUnanswered: a host that reads requests and closes without an answer gets one twice within an attempt, however
// many connections are idle. The second time is on a new connection, so that idle ones that a failed host forgot do not cost an attempt.
func TestDo_ClosedUnanswered(t *testing.T) {
	for name, answersNew := range map[string]bool{"each": false, "used before": true} {
		t.Run(name, func(t *testing.T) { closedUnanswered(t, answersNew) })
	}
}

func closedUnanswered(t *testing.T, answersNew bool) {
	const idle = 4
	var closes atomic.Bool
	var n atomic.Int32
	var all sync.WaitGroup
	all.Add(idle)

	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		used := r.Context().Value(uses{}).(*atomic.Int32).Add(1)
		if !closes.Load() { // all at once, so that each has a connection of its own
			all.Done()
			all.Wait()
			return
		}

		n.Add(1)
		if answersNew && used == 1 {
			return
		}
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			conn.Close()
		}
	}))

	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, uses{}, new(atomic.Int32))
	}
	s.Start()
	defer s.Close()

	c := open(t)
	post := Request{Method: "POST", URL: s.URL, Body: []byte("x")}
	var sent sync.WaitGroup
	for range idle {
		sent.Go(func() {
			if _, err := c.Do(t.Context(), post); err != nil {
				t.Error(err)
			}
		})
	}
	sent.Wait()

	closes.Store(true)
	_, err := c.Do(t.Context(), post)
	if got := n.Load(); got != 2 {
		t.Errorf("the request arrived %d times, want 2", got)
	}

	if answersNew {
		if err != nil {
			t.Errorf("on a new connection: %v", err)
		}
	} else if err == nil || !strings.Contains(err.Error(), "closed the connection before it had answered") {
		t.Errorf("the error is %v", err)
	}
}

func BenchmarkDo(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	defer s.Close()
	c := open(b)
	body := bytes.Repeat([]byte("x"), 600)
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Do(b.Context(), Request{Method: "POST", URL: s.URL, Body: body}); err != nil {
				b.Error(err)
			}
		}
	})

	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "exchanges/s")
}
