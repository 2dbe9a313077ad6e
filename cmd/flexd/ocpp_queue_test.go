package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slow answers after a second of the request's own time, and counts how many are under way.
type slow struct {
	mu    sync.Mutex
	now   int
	peak  int
	after time.Duration
}

func (s *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.now++
	s.peak = max(s.peak, s.now)
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.now--; s.mu.Unlock() }()
	select {
	case <-time.After(s.after):
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("ok"))}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// TestQueue_AtOnce: a hundred requests through two slots take fifty seconds, which is longer
// than each may take, and none exceeds its time limit. A request that is itself too slow does,
// and frees its slot.
func TestQueue_AtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{after: time.Second}
		c := &http.Client{Transport: &queue{s, make(chan struct{}, 2), 10 * time.Second}}
		get := func(ctx context.Context) error {
			r, err := http.NewRequestWithContext(ctx, "GET", "http://flexd.example/", nil)
			if err != nil {
				return err
			}

			answer, err := c.Do(r)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			_, err = io.ReadAll(answer.Body)
			return err
		}

		began := time.Now()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if err := get(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took != 50*time.Second || s.peak != 2 {
			t.Errorf("it took %v, %d at once", took, s.peak)
		}

		s.after = time.Minute
		for range 3 { // more than there are places
			if err := get(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("one that is too slow: %v", err)
			}
		}

		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := get(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("one that nobody waits for: %v", err)
		}
	})
}
