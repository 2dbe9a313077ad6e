package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"flexd/internal/worker"
)

// A background job is in the metrics before its first run, while it fails and after it has
// succeeded, beside one that never runs.
func TestWorkerMetrics_WhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		w := &worker.Worker{
			Name:  "mail",
			Every: time.Minute,
			Log:   slog.New(slog.NewTextHandler(io.Discard, nil)),
			Job: func(context.Context) (worker.Report, error) {
				time.Sleep(2 * time.Second)
				if failing.Load() {
					return worker.Report{}, errors.New("planted")
				}
				return worker.Report{}, nil
			},
		}
		never := &worker.Worker{Name: "never", Every: time.Hour}

		registry := prometheus.NewRegistry()
		registry.MustRegister(workerMetrics{func() []*worker.Worker { return []*worker.Worker{w, never} }})
		handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})

		want := func(lines ...string) {
			t.Helper()
			r := httptest.NewRecorder()
			handler.ServeHTTP(r, httptest.NewRequest("GET", "/metrics", nil))
			for _, line := range lines {
				if !strings.Contains(r.Body.String(), "\nflexd_background_job_"+line+"\n") {
					t.Errorf("after %s: no %s in\n%s", time.Now(), line, r.Body)
				}
			}
		}

		want(
			`runs_total{name="mail"} 0`,
			`last_success_timestamp_seconds{name="mail"} 0`,
			`period_seconds{name="mail"} 60`,
			`period_seconds{name="never"} 3600`,
		)

		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx) // at midnight on 1 January 2000, and each minute
		time.Sleep(59 * time.Second)
		failing.Store(true)
		time.Sleep(2 * time.Minute)
		want(
			`runs_total{name="mail"} 3`,
			`failures_total{name="mail"} 2`,
			`seconds_total{name="mail"} 6`,
			`last_success_timestamp_seconds{name="mail"} 9.46684802e+08`,
			`runs_total{name="never"} 0`,
		)

		failing.Store(false)
		time.Sleep(time.Minute)
		want(`runs_total{name="mail"} 4`, `failures_total{name="mail"} 2`, `last_success_timestamp_seconds{name="mail"} 9.46684982e+08`)
		cancel()
		synctest.Wait()
	})
}
