package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
)

// Client calls one flexd as one organisation. It is safe for concurrent use; make it with New.
type Client struct {
	base     string
	username string
	password string

	// HTTP makes the requests; New sets one with a time limit of 30 s.
	HTTP *http.Client
	// Retries is how often a request is tried again after 429, 502, 503, 504 or a broken
	// connection. New sets 4.
	Retries int

	login chan struct{} // of one place: who has it gets a token, and the others wait for that one

	mu      sync.Mutex
	token   string
	renewAt time.Time
}

// tokenLife is how long a token is used; it lives an hour.
const tokenLife = 50 * time.Minute

// firstPause is the wait before the first retry; each further one doubles it, up to longestPause.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = time.Minute
)

// answerMax bounds the answer that is read.
const answerMax = 256 << 20

// New returns a client of the service at base, for example "https://flex.example.com".
func New(base, username, password string) *Client {
	return &Client{
		base:     strings.TrimRight(base, "/"),
		username: username,
		password: password,
		HTTP:     &http.Client{Timeout: 30 * time.Second},
		Retries:  4,
		login:    make(chan struct{}, 1),
	}
}

// Fault is one thing wrong with one field of a request.
type Fault struct {
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
	Type string   `json:"type"`
}

// Error is an answer that says no.
type Error struct {
	Status int
	// what was wrong, in words; with Faults or Details the first of them
	Detail    string
	Details   []string // where the service gave a list
	Faults    []Fault  // of a 422, every field that was wrong
	Code      string   // the kind of failure in one word, as "not_found"
	Docs      string   // where it is explained
	RequestID string   // to quote when asking for help

	after time.Duration // how long the service asks to wait before the next try
}

func (e *Error) Error() string {
	return fmt.Sprintf(
		"%d %s: %s (request %s)",
		e.Status,
		http.StatusText(e.Status),
		e.Detail,
		e.RequestID,
	)
}

// StatusOf returns the status code of an *Error in err's chain, or 0.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status
	}
	return 0
}

// request is one call: its method and path, query, and body as JSON or form.
type request struct {
	method      string
	path        string
	query       url.Values
	body        []byte
	contentType string
	open        bool // needs no token
}

// Do calls any operation: in is sent as JSON unless nil, the answer is read into out unless
// nil. The typed methods are made of it.
func (c *Client) Do(
	ctx context.Context,
	method, path string,
	query url.Values,
	in, out any,
) error {
	r := request{
		method: method,
		path:   path,
		query:  query,
	}

	if in != nil {
		b, err := jsonv2.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		r.body, r.contentType = b, "application/json"
	}

	return c.read(ctx, r, out)
}

// read makes the request and reads the answer into out unless nil.
func (c *Client) read(ctx context.Context, r request, out any) error {
	b, err := c.send(ctx, r)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("%s %s: read the answer: %w", r.method, r.path, err)
	}

	return nil
}

func call[T any](
	ctx context.Context,
	c *Client,
	method, path string,
	query url.Values,
	in any,
) (T, error) {
	var out T
	err := c.Do(ctx, method, path, query, in, &out)
	return out, err
}

// send makes the request until it is answered, renewing the token once and pausing between
// retries.
func (c *Client) send(ctx context.Context, r request) ([]byte, error) {
	key := ""
	if r.method != http.MethodGet && !r.open {
		key = rand.Text()
	}

	renewed, again := false, false
	for try := 0; ; try++ {
		b, err := c.once(ctx, r, key)
		if err == nil {
			return b, nil
		}

		if mayRenew(err) && !r.open && !renewed {
			renewed = true
			continue
		}

		// The first try may still be under way: then the service answers the next one of its key with a conflict.
		again = again || passing(err)
		mayPass := passing(err) || again && StatusOf(err) == http.StatusConflict
		if !mayPass || try >= c.Retries || ctx.Err() != nil {
			return nil, err
		}

		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w, after %w", ctx.Err(), err)

		case <-time.After(max(pauseOf(err), pauseAfter(try))):
		}
	}
}

// pauseAfter returns how long to wait after a try, counted from 0.
func pauseAfter(try int) time.Duration {
	const doublings = 10 // more than it takes to the longest pause
	return min(firstPause<<min(try, doublings), longestPause)
}

// loginFailure is why there is no token for a request.
type loginFailure struct{ err error }

// Error says why.
func (f *loginFailure) Error() string { return "get a token: " + f.err.Error() }

// Unwrap returns the failure of the login itself.
func (f *loginFailure) Unwrap() error { return f.err }

// mayRenew reports whether a new token may help: the token was refused. A login that was refused is not repeated, since it
// counts as a wrong password each time.
func mayRenew(err error) bool {
	_, atLogin := errors.AsType[*loginFailure](err)
	return !atLogin && StatusOf(err) == http.StatusUnauthorized
}

// pauseOf returns how long the service asks to wait, of the request or of the login before it; 0 if it does not say.
func pauseOf(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.after
	}
	return 0
}

// passing reports whether the same request may succeed later.
func passing(err error) bool {
	switch StatusOf(err) {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case 0:
		// the connection failed, or broke before the answer
		var network *url.Error
		return errors.As(err, &network)
	}

	return false
}

// once makes the request once.
func (c *Client) once(
	ctx context.Context,
	r request,
	key string,
) ([]byte, error) {
	req, err := c.prepare(ctx, r, key)
	if err != nil {
		return nil, err
	}

	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, err
	}

	defer resp.Body.Close()

	// An answer that breaks off is the network's fault, like a connection that fails: it is tried again.
	var body []byte
	body, err = io.ReadAll(io.LimitReader(resp.Body, answerMax))
	if err != nil {
		return nil, &url.Error{
			Op:  r.method,
			URL: req.URL.String(),
			Err: err,
		}
	}

	if resp.StatusCode == http.StatusUnauthorized && !r.open {
		c.forgetToken(req)
	}

	// 202 is how the service says that no unique meter was found.
	if resp.StatusCode >= 300 || resp.StatusCode == http.StatusAccepted {
		return nil, failure(resp, body)
	}

	return body, nil
}

// prepare makes the HTTP request with its token, under the idempotency key unless that is empty.
func (c *Client) prepare(
	ctx context.Context,
	r request,
	key string,
) (*http.Request, error) {
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}

	req, err := http.NewRequestWithContext(
		ctx,
		r.method,
		address,
		bytes.NewReader(r.body),
	)
	if err != nil {
		return nil, err
	}

	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if r.open {
		return req, nil
	}

	token, err := c.currentToken(ctx)
	if err != nil {
		return nil, err
	}

	req.Header.Set("Authorization", "Bearer "+token)

	return req, nil
}

// retryAfter returns how long a Retry-After asks to wait: it has seconds, or, from a proxy before the service, an instant.
func retryAfter(text string, now time.Time) time.Duration {
	const most = 24 * 60 * 60 // in seconds
	seconds, err := strconv.Atoi(text)
	if err == nil {
		return time.Duration(min(seconds, most)) * time.Second
	}

	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}

	return min(at.Sub(now), most*time.Second)
}

// failure reads an error body of any of the interface's three shapes.
func failure(resp *http.Response, body []byte) error {
	e := &Error{
		Status:    resp.StatusCode,
		RequestID: resp.Header.Get("Request-Id"),
		after:     retryAfter(resp.Header.Get("Retry-After"), time.Now()),
	}

	var shape struct {
		Detail json.RawMessage `json:"detail"`
		Code   string
		Docs   string
	}

	if json.Unmarshal(body, &shape) != nil {
		e.Detail = string(body[:min(len(body), 200)])
		return e
	}

	e.Code, e.Docs = shape.Code, shape.Docs
	switch {
	case json.Unmarshal(shape.Detail, &e.Detail) == nil:
	case json.Unmarshal(shape.Detail, &e.Details) == nil && len(e.Details) > 0:
		e.Detail = strings.Join(e.Details, "; ")
	case json.Unmarshal(shape.Detail, &e.Faults) == nil && len(e.Faults) > 0:
		e.Detail = strings.Join(e.Faults[0].Loc, ".") + ": " + e.Faults[0].Msg
		if n := len(e.Faults) - 1; n > 0 {
			e.Detail += fmt.Sprintf(" (and %d more)", n)
		}
	}

	return e
}

// currentToken returns the token in use, or gets one.
func (c *Client) currentToken(ctx context.Context) (string, error) {
	if token := c.kept(); token != "" {
		return token, nil
	}

	// One logs in. The others wait for it, each no longer than its own context lives.
	select {
	case c.login <- struct{}{}:
		defer func() { <-c.login }()
	case <-ctx.Done():
		return "", fmt.Errorf("get a token: %w", ctx.Err())
	}

	if token := c.kept(); token != "" {
		return token, nil
	}

	return c.newToken(ctx)
}

// kept returns the token in use; empty if there is none, or if it ends soon.
func (c *Client) kept() string {
	c.mu.Lock()
	defer c.mu.Unlock()

	if time.Now().Before(c.renewAt) {
		return c.token
	}

	return ""
}

// newToken logs in.
func (c *Client) newToken(ctx context.Context) (string, error) {
	form := url.Values{
		"username":   {c.username},
		"password":   {c.password},
		"grant_type": {"password"},
	}

	b, err := c.once(ctx, request{
		method:      http.MethodPost,
		path:        "/auth/token-form",
		open:        true,
		body:        []byte(form.Encode()),
		contentType: "application/x-www-form-urlencoded",
	}, "")
	if err != nil {
		return "", &loginFailure{err}
	}

	var t struct {
		AccessToken string `json:"access_token"`
	}

	if err := json.Unmarshal(b, &t); err != nil {
		return "", fmt.Errorf("get a token: %w", err)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.token, c.renewAt = t.AccessToken, time.Now().Add(tokenLife)

	return c.token, nil
}

// forgetToken has the next request get a new token, unless there is a newer one already than the one that was refused to this.
func (c *Client) forgetToken(refused *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if refused.Header.Get("Authorization") == "Bearer "+c.token {
		c.token = ""
	}
}
