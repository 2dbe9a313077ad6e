package web_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"flexd/internal/web"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// pipes is a listener whose connections are pipes, so that time in a bubble is fake.
type pipes struct {
	conns  chan net.Conn
	closed context.Context
	close  context.CancelFunc
}

func newPipes() *pipes {
	p := &pipes{conns: make(chan net.Conn)}
	p.closed, p.close = context.WithCancel(context.Background())
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed.Done():
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.conns <- there
	return here
}

// bubble serves a handler in fake time and returns how to connect to it.
func bubble(t *testing.T, h http.HandlerFunc, test func(t *testing.T, dial func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() {
			s := &web.Server{Handler: h, Log: quiet, Limits: web.Limits{Connections: 100, PerAddress: 100}}
			served <- s.Serve(ctx, p)
		}()

		test(t, p.dial)
		stop()

		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// ended waits until the other end has closed the connection, and says how long that took.
func ended(c net.Conn) time.Duration {
	start := time.Now()
	io.Copy(io.Discard, c)
	return time.Since(start)
}

// A request whose body never comes to its end is closed, whatever its handler does with it.
func TestServe_HalfSentBody(t *testing.T) {
	for _, c := range []struct {
		name    string
		request string
		handler http.HandlerFunc
		most    time.Duration
	}{
		{"a body that nobody asked for", "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nx",
			func(http.ResponseWriter, *http.Request) {}, 31 * time.Second},
		{"chunks without end", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
			func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }, 31 * time.Second},
		{"a form", "POST /console/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nname=",
			func(_ http.ResponseWriter, r *http.Request) { r.ParseForm() }, 31 * time.Second},
		{"half a header", "GET / HTTP/1.1\r\nHo", nil, 11 * time.Second},
		{"a client that is known", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx",
			func(w http.ResponseWriter, r *http.Request) {
				web.AllowBody(w, 2*time.Minute)

				io.Copy(io.Discard, r.Body)
			}, 121 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, c.handler, func(t *testing.T, dial func() net.Conn) {
				conn := dial()
				defer conn.Close()
				io.WriteString(conn, c.request)

				if took := ended(conn); took > c.most || took < c.most-2*time.Second {
					t.Errorf("closed after %v, not within %v", took, c.most)
				}
			})
		})
	}
}

// A handler may take longer than a client may, and the client still gets the answer.
func TestServe_SlowHandler(t *testing.T) {
	const long = time.Hour
	handler := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)

		select {
		case <-time.After(long):
		case <-r.Context().Done():
			t.Error("the request was given up")
		}

		io.WriteString(w, "there")
		http.NewResponseController(w).Flush()
		time.Sleep(long)
		io.WriteString(w, " it is")
	}

	for _, request := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"} {
		bubble(t, handler, func(t *testing.T, dial func() net.Conn) {
			conn := dial()
			defer conn.Close()
			io.WriteString(conn, request)

			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}

			if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "there it is" {
				t.Errorf("%q %v", b, err)
			}
		})
	}
}

// A client that does not read its answer, or reads a byte now and then, is cut off; one that
// reads slowly but on is not.
func TestServe_ClientThatDoesNotRead(t *testing.T) {
	const size = 1 << 20
	for _, c := range []struct {
		name  string
		read  int           // bytes at once
		every time.Duration // between two reads
		whole bool
	}{
		{"never", 0, time.Minute, false},
		{"a byte a second", 1, time.Second, false},
		{"16 kB a second", 16 << 10, time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			finished := make(chan error, 1)

			handler := func(w http.ResponseWriter, _ *http.Request) {
				var err error
				for n := 0; n < size && err == nil; n += 4096 {
					_, err = w.Write(make([]byte, 4096))
				}
				finished <- err
			}

			bubble(t, handler, func(t *testing.T, dial func() net.Conn) {
				conn := dial()
				defer conn.Close()
				start := time.Now()
				io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")

				for time.Since(start) < 10*time.Minute {
					time.Sleep(c.every)
					if _, err := io.CopyN(io.Discard, conn, int64(c.read)); err != nil {
						break
					}
				}

				if err := <-finished; (err == nil) != c.whole {
					t.Errorf("after %v: %v", time.Since(start), err)
				}
			})
		})
	}
}

// Connections beyond the limits are closed as they come, and places that were left are given
// to others. A trusted proxy's connections count in the total alone.
func TestServe_ConnectionLimits(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	s := &web.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }), Log: quiet,
		Limits: web.Limits{Connections: 6, PerAddress: 2}, Proxies: web.Proxies{netip.MustParsePrefix("127.0.0.9/32")},
	}

	go func() { served <- s.Serve(ctx, l) }()
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}

		stop()

		if err := <-served; err != nil {
			t.Error(err)
		}
	}()

	// connect keeps a connection open, half its body unsent, if it is answered.
	connect := func(from string) error {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: time.Minute}
		c, err := d.Dial("tcp", l.Addr().String())
		if err != nil {
			return err
		}

		c.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")

		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			c.Close()
			return err
		}

		resp.Body.Close()
		fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nx")
		open = append(open, c)

		return nil
	}

	for _, c := range []struct {
		from string
		want bool
	}{
		{"127.0.0.2", true}, {"127.0.0.2", true}, {"127.0.0.2", false}, // its share
		{"127.0.0.9", true}, {"127.0.0.9", true}, {"127.0.0.9", true}, // a proxy has no share
		{"127.0.0.3", true}, {"127.0.0.4", false}, // the total
	} {
		if err := connect(c.from); (err == nil) != c.want {
			t.Fatalf("%d open, another from %s: %v", len(open), c.from, err)
		}
	}

	open[0].Close()
	open = open[1:]

	for start := time.Now(); connect("127.0.0.4") != nil; time.Sleep(time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatal("the place that was left is not given to others")
		}
	}
}

func TestDefaultConnections(t *testing.T) {
	if n := web.DefaultConnections(); n < 1 || n > 8192 {
		t.Errorf("%d connections", n)
	}
}
