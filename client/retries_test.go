package client

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
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
