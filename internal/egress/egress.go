package egress

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The limits of every exchange.
const (
	// bytes of an answer's body that are read, unless the request asks for more
	AnswerMax      = 64 << 10
	LargeAnswerMax = 32 << 20 // the most that a request may ask for
	HeaderMax      = 16 << 10 // bytes of an answer's header
	URLMax         = 4 << 10  // bytes of a URL

	ConnectTime   = 5 * time.Second // to reach the host
	HandshakeTime = 5 * time.Second // to agree on TLS
	// for the whole exchange, first byte to last
	AttemptTime = 15 * time.Second

	idleTime    = 90 * time.Second // a connection is kept for the next request
	idlePerHost = 512
	idleAll     = 4096
)

// Options say what a client may reach; the zero value is right for the public internet.
type Options struct {
	Allow []netip.Prefix // reached though special, as in Private
	// reached at whatever private address their names have
	Hosts    []string
	Resolver *net.Resolver // nil means the system's
	// Pipe makes connections in place of sockets, for tests in a bubble. The guard does
	// not see them.
	Pipe func(ctx context.Context, addr string) (net.Conn, error)
}

// Client makes requests. It may be used by many at once and keeps connections for reuse.
type Client struct {
	allow []netip.Prefix
	hosts []string
	http  *http.Client
}

// dialer makes a connection, as net.Dialer's DialContext does.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// New returns a client.
func New(o Options) *Client {
	c := &Client{allow: o.Allow, hosts: o.Hosts}
	transport := &http.Transport{
		DialContext:            c.dialer(o),
		TLSHandshakeTimeout:    HandshakeTime,
		MaxResponseHeaderBytes: HeaderMax,
		MaxIdleConns:           idleAll,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTime,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}

	// A redirect would lead past the checks of the address that was asked for: it is the answer.
	c.http = &http.Client{
		Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}

	return c
}

// dialer is how connections are made: under the guard, which for a host that the operator opened lets
// private addresses pass too.
func (c *Client) dialer(o Options) dialer {
	if o.Pipe != nil {
		return func(ctx context.Context, _, addr string) (net.Conn, error) {
			return o.Pipe(ctx, addr)
		}
	}

	guarded := &net.Dialer{
		Timeout:        ConnectTime,
		Resolver:       o.Resolver,
		ControlContext: c.control(o.Allow),
	}

	opened := &net.Dialer{
		Timeout:        ConnectTime,
		Resolver:       o.Resolver,
		ControlContext: c.control(slices.Concat(Private, o.Allow)),
	}

	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if err == nil && c.opens(host) {
			return opened.DialContext(ctx, network, addr)
		}

		return guarded.DialContext(ctx, network, addr)
	}
}

// control is the guard: the system is about to connect to the resolved address.
func (c *Client) control(allow []netip.Prefix) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, _, addr string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(addr)
		if err != nil {
			return err
		}
		if err := check(ap.Addr(), allow); err != nil {
			return &refusal{err}
		}

		return nil
	}
}

// opens reports whether the operator opened a host by its name.
func (c *Client) opens(host string) bool {
	return slices.ContainsFunc(c.hosts, func(opened string) bool {
		return strings.EqualFold(opened, strings.TrimSuffix(host, "."))
	})
}

// refusal is the guard's no.
type refusal struct{ error }

// Close gives up the connections kept for reuse.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// HTTP is the client for libraries that want one of net/http, within the same guard and bounds.
func (c *Client) HTTP() *http.Client {
	return &http.Client{
		Transport:     bounded{c.http.Transport},
		CheckRedirect: c.http.CheckRedirect,
		Timeout:       AttemptTime,
	}
}

// bounded ends an answer that is longer than AnswerMax, and one that is no answer.
type bounded struct{ http.RoundTripper }

// RoundTrip sends the request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}

	if resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body.Close()
		return nil, &Error{What: fmt.Sprintf(
			"%s answered 101 and would speak another protocol, which nobody asked for",
			r.URL.Host,
		)}
	}

	resp.Body = http.MaxBytesReader(nil, resp.Body, AnswerMax)

	return resp, nil
}

// Request is what is to be sent.
type Request struct {
	Method string // POST or GET
	URL    string
	Header map[string]string
	Body   []byte
	// bytes of the answer to read; 0 means AnswerMax, at most LargeAnswerMax
	AnswerMax int
	Time      time.Duration // for the whole exchange; 0 means AttemptTime
}

// Answer is what came back.
type Answer struct {
	Status int // 0 if nothing came back
	Body   []byte
	header http.Header
}

// Header returns the first value of a header field, or "".
func (a Answer) Header(name string) string { return a.header.Get(name) }

// Do sends the request and reads the answer. A request may arrive twice, and no more often: when an idle connection that
// was used again is closed before anything of an answer was read. When the body cannot be read whole, the answer
// comes with its status, what was read, and an error. Every error is a *Error.
func (c *Client) Do(ctx context.Context, r Request) (Answer, error) {
	limit := min(max(r.AnswerMax, 0), LargeAnswerMax)
	if limit == 0 {
		limit = AnswerMax
	}

	span := r.Time
	if span <= 0 {
		span = AttemptTime
	}

	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()

	req, err := newRequest(ctx, r)
	if err != nil {
		return Answer{}, &Error{What: err.Error(), err: err}
	}
	c.repeatOnce(req)

	resp, err := c.http.Do(req)
	if err != nil {
		return Answer{}, explain(err, req.URL.Host, span)
	}

	defer resp.Body.Close()

	return readAnswer(resp, limit, span)
}

// readAnswer reads up to limit bytes of what came back.
func readAnswer(
	resp *http.Response,
	limit int,
	span time.Duration,
) (Answer, error) {
	host := resp.Request.URL.Host
	a := Answer{
		Status: resp.StatusCode,
		header: resp.Header,
	}

	// What follows a 101 is the connection itself, which no deadline of the request ends.
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return a, &Error{What: fmt.Sprintf(
			"%s answered 101 and would speak another protocol, which nobody asked for",
			host,
		)}
	}

	var err error
	a.Body, err = io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if err != nil {
		e := explain(err, host, span)
		e.What = "while its answer was read: " + e.What
		return a, e
	}

	if len(a.Body) > limit {
		a.Body = a.Body[:limit]
		return a, &Error{What: fmt.Sprintf(
			"%s answered with more than %d bytes",
			host,
			limit,
		)}
	}

	return a, nil
}

func newRequest(ctx context.Context, r Request) (*http.Request, error) {
	if len(r.URL) > URLMax {
		return nil, fmt.Errorf(
			"the URL has %d bytes, more than %d",
			len(r.URL),
			URLMax,
		)
	}

	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, fmt.Errorf("the URL cannot be read: %w", err)
	}

	if u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf(
			"the URL begins with %q, not with https://",
			u.Scheme,
		)
	}

	if u.Host == "" {
		return nil, fmt.Errorf("the URL names no host")
	}

	if err := CheckPort(u.Port()); err != nil {
		return nil, err
	}

	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}

	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return nil, err
	}

	req.Header["User-Agent"] = []string{"flexd"}

	// An empty list lets the transport repeat a POST when an idle connection that was used again is closed before anything of an
	// answer was read; the field itself is not sent.
	req.Header["X-Idempotency-Key"] = nil

	for k, v := range r.Header {
		req.Header.Set(k, v)
	}

	return req, nil
}

// errClosedAgain ends an attempt of which the repetition failed as well.
var errClosedAgain = fmt.Errorf("closed at the repetition as well: %w", io.EOF)

// repeatOnce has the transport repeat a request once at most, on a new connection. By itself it would on each idle one:
// a host that closes them once it has read a request would get it that often within one attempt. The idle ones are given up,
// as all of a host that failed are closed without a word.
func (c *Client) repeatOnce(req *http.Request) {
	body := req.GetBody
	if body == nil {
		return
	}

	repeated := false
	req.GetBody = func() (io.ReadCloser, error) {
		if repeated {
			return nil, errClosedAgain
		}
		repeated = true
		c.http.CloseIdleConnections()

		return body()
	}
}
