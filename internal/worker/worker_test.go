package worker_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"flexd/internal/worker"
)

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		var runs, left atomic.Int64
		w := &worker.Worker{Name: "test", Every: time.Minute, Wake: wake, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Job: func(context.Context) (worker.Report, error) {
				n := runs.Add(1)
				switch {
				case n == 2:
					panic("planted")
				case n == 3:
					return worker.Report{}, errors.New("planted")
				case left.Load() > 0:
					return worker.Report{More: left.Add(-1) > 0}, nil
				}
				return worker.Report{}, nil
			}}
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		want := func(n int64, when string) {
			t.Helper()
			synctest.Wait()
			if got := runs.Load(); got != n {
				t.Errorf("%s: %d runs, want %d", when, got, n)
			}
		}
		want(1, "at the start")
		time.Sleep(time.Minute)
		want(2, "after a period")
		if w.Last().Err == nil {
			t.Error("a panic is not the round's error")
		}
		wake <- struct{}{}
		want(3, "after a wake-up")
		left.Store(3)
		time.Sleep(time.Minute)
		want(6, "with work left")
		if l := w.Last(); l.Runs != 6 || l.Failures != 2 || !l.SucceededAt.Equal(time.Now()) || !l.FailedSince.IsZero() {
			t.Errorf("after two failures of six: %+v", l)
		}
		cancel()
		synctest.Wait()
	})
}

// However often it is woken, a worker rests between runs; one that has rested runs at once,
// and what woke it while it rested is one run.
func TestRun_Rests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rest, takes = time.Second, 3 * time.Second
		wake := make(chan struct{}, 1)
		var starts []time.Duration
		began := time.Now()
		w := &worker.Worker{Name: "test", Every: time.Hour, Wake: wake, Rest: rest, Job: func(context.Context) (worker.Report, error) {
			starts = append(starts, time.Since(began))
			time.Sleep(takes)
			return worker.Report{}, nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		for until := began.Add(10 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			select {
			case wake <- struct{}{}:
			default:
			}
		}
		time.Sleep(time.Minute)
		wake <- struct{}{}
		synctest.Wait()
		cancel()
		time.Sleep(takes)
		// The storm ends while the third run is under way; it has the fourth follow.
		if want := []time.Duration{0, 4 * time.Second, 8 * time.Second, 12 * time.Second, 70 * time.Second}; !slices.Equal(starts, want) {
			t.Errorf("runs at %v, want %v", starts, want)
		}
	})
}
