package main

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// queue sends a request when one of a few slots is free. The request's time limit begins only
// then: when thousands of chargers send at once, most of the time is spent waiting.
type queue struct {
	next   http.RoundTripper
	places chan struct{}
	limit  time.Duration
}

// RoundTrip occupies its place until the answer's body is closed.
func (q *queue) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case q.places <- struct{}{}:
	case <-r.Context().Done():
		if r.Body != nil {
			r.Body.Close()
		}

		return nil, r.Context().Err()
	}

	ctx, cancel := context.WithTimeout(r.Context(), q.limit)
	leave := sync.OnceFunc(func() {
		cancel()
		<-q.places
	})

	answer, err := q.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		leave()
		return nil, err
	}

	answer.Body = &queuedBody{answer.Body, leave}

	return answer, nil
}

// queuedBody frees the place when it is closed.
type queuedBody struct {
	io.ReadCloser
	leave func()
}

func (b *queuedBody) Close() error {
	defer b.leave()

	return b.ReadCloser.Close()
}
