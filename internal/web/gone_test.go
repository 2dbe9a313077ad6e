package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"
)

// TestClientHungUp: an error says that the client hung up only where the request itself was cancelled.
func TestClientHungUp(t *testing.T) {
	open := t.Context()
	closed, hangUp := context.WithCancel(open)
	hangUp()
	cancelled := fmt.Errorf("read sites: %w", context.Canceled)

	for _, c := range []struct {
		ctx  context.Context
		err  error
		want bool
	}{
		{closed, cancelled, true},
		{closed, errors.New("disk full"), false},
		{closed, nil, false},
		{open, cancelled, false},
	} {
		if got := ClientHungUp(c.ctx, c.err); got != c.want {
			t.Errorf("%v, %v: %v", c.ctx.Err(), c.err, got)
		}
	}
}

// brokenWriter is a connection to which nothing can be written.
type brokenWriter struct {
	http.ResponseWriter
	err error
}

func (b brokenWriter) Write([]byte) (int, error) { return 0, b.err }

// TestClientHungUp_MidAnswer: a client that resets its connection while it is sent an answer has hung up, though its request is not cancelled
// yet. A body where none may be is the handler's fault.
func TestClientHungUp_MidAnswer(t *testing.T) {
	for _, c := range []struct {
		err   error
		write time.Duration
		want  bool
	}{
		{syscall.ECONNRESET, time.Minute, true},
		{syscall.EPIPE, time.Minute, true},
		{errors.New("http2: stream closed"), time.Minute, true},
		{nil, 0, true}, // no time is left
		{http.ErrContentLength, time.Minute, false},
		{http.ErrBodyNotAllowed, time.Minute, false},
	} {
		w := brokenWriter{httptest.NewRecorder(), c.err}
		timed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := w.Write([]byte("a part"))
			if err == nil || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("%v: %v", c.err, err)
			}

			err = fmt.Errorf("write a row: %w", err)
			if got := ClientHungUp(r.Context(), err); got != c.want {
				t.Errorf("%v: %v", err, got)
			}
		}), c.write).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	}
}
