package client

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestRetries_UnderWay: a try that conflicts with an earlier one of the same request is made again, and a conflict of the first try is
// the answer.
func TestRetries_UnderWay(t *testing.T) {
	var answers, tries []int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") == "" {
			_, _ = w.Write([]byte(`{"access_token":"x","token_type":"bearer","expires_in":3600}`))
			return
		}
		tries = append(tries, answers[0])
		w.WriteHeader(answers[0])
		answers = answers[1:]
	}))
	t.Cleanup(server.Close)

	c := New(server.URL, "acme", "x")
	for _, x := range []struct {
		answers []int
		status  int
		tries   int
	}{
		{[]int{503, 409, 409, 204}, 0, 4},
		{[]int{409, 204}, 409, 1},
		{[]int{401, 409, 204}, 409, 2},
		{[]int{503, 409, 409, 409, 409, 409}, 409, 5},
	} {
		answers, tries = x.answers, nil
		err := c.PlugOut(t.Context(), AssetID{1})
		if StatusOf(err) != x.status || err == nil != (x.status == 0) || len(tries) != x.tries {
			t.Errorf("%v: %v after %v", x.answers, err, tries)
		}
	}
}

// TestRetries_NewerToken: that a token was refused does not end the one that another request has got since.
func TestRetries_NewerToken(t *testing.T) {
	c := New("http://127.0.0.1:1", "acme", "x")
	refused := httptest.NewRequest(http.MethodGet, "/", nil)
	refused.Header.Set("Authorization", "Bearer old")

	for token, want := range map[string]string{"old": "", "new": "new"} {
		c.token = token
		c.forgetToken(refused)
		if c.token != want {
			t.Errorf("of %q there is %q", token, c.token)
		}
	}
}

// TestRetries_LoginHangs: who waits for another's login waits no longer than its own context lives.
func TestRetries_LoginHangs(t *testing.T) {
	asked, end := make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(asked) })
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun()
		<-end
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })

	c := New(server.URL, "acme", "x")
	c.Retries = 0
	me := func(ctx context.Context) chan error {
		got := make(chan error, 1)
		go func() {
			_, err := c.Me(ctx)
			got <- err
		}()

		return got
	}

	long, stop := context.WithCancel(t.Context())
	first := me(long)
	<-asked

	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	select {
	case err := <-me(short):
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the second waits for the first's login beyond its own time")
	}

	stop()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
}

// TestRetries_LoginAsksToWait: the service may ask to wait before the next login, too.
func TestRetries_LoginAsksToWait(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(server.Close)

	c := New(server.URL, "acme", "x")
	c.Retries = 0
	_, err := c.Me(t.Context())
	if pause := pauseOf(err); pause != 7*time.Second {
		t.Errorf("%v after %v", pause, err)
	}
}

// TestRetries_Pause: pauses double up to a minute, however many there are.
func TestRetries_Pause(t *testing.T) {
	for try, want := range map[int]time.Duration{
		0:    200 * time.Millisecond,
		1:    400 * time.Millisecond,
		8:    51200 * time.Millisecond,
		9:    time.Minute,
		35:   time.Minute,
		1000: time.Minute,
	} {
		if got := pauseAfter(try); got != want {
			t.Errorf("after try %d: %v, want %v", try, got, want)
		}
	}
}

// TestRetries_After: a Retry-After has seconds or an instant.
func TestRetries_After(t *testing.T) {
	now := time.Date(2026, time.January, 15, 10, 30, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"":                              0,
		"soon":                          0,
		"7":                             7 * time.Second,
		"9000000000000000000":           24 * time.Hour,
		"Thu, 15 Jan 2026 10:30:20 GMT": 20 * time.Second,
		"Fri, 31 Dec 9999 23:59:59 GMT": 24 * time.Hour,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// busy answers everything with 503, and asks to wait an hour.
type busy struct{}

func (busy) RoundTrip(*http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.Header().Set("Retry-After", "3600")
	w.WriteHeader(http.StatusServiceUnavailable)

	return w.Result(), nil
}

// TestRetries_ContextEnds: where the context ends during a pause, the error has the answer of the last try, too.
func TestRetries_ContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		c := New("http://flexd.test", "acme", "x")
		c.HTTP = &http.Client{Transport: busy{}}
		_, err := c.Me(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || StatusOf(err) != http.StatusServiceUnavailable {
			t.Errorf("ended with %v", err)
		}
	})
}

// TestFollowSite_Pause: a stream that is refused for now is asked for again when the service asks for that, and no earlier.
func TestFollowSite_Pause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()

		asked := &counted{}
		c := New("http://flexd.test", "acme", "x")
		c.HTTP = &http.Client{Transport: asked}
		err := c.FollowSite(ctx, SiteID{15: 1}, func(SiteNow) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) || asked.times != 2 {
			t.Errorf("asked %d times, ended with %v", asked.times, err)
		}
	})
}

// counted is busy, and counts.
type counted struct {
	busy
	times int
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.times++
	return c.busy.RoundTrip(r)
}

// TestRetries_WrongPassword: a login that is refused is not repeated.
func TestRetries_WrongPassword(t *testing.T) {
	var logins int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		logins++
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)

	for name, ask := range map[string]func(*Client) error{
		"a request": func(c *Client) error { _, err := c.Me(t.Context()); return err },
		"a stream": func(c *Client) error {
			return c.FollowSite(t.Context(), SiteID{15: 1}, func(SiteNow) error { return nil })
		},
	} {
		logins = 0

		err := ask(New(server.URL, "acme", "wrong"))
		if StatusOf(err) != http.StatusUnauthorized || logins != 1 {
			t.Errorf("%s: %d logins, %v", name, logins, err)
		}
	}
}
