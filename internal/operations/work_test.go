package operations

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"flexd/internal/worker"
)

// A background job whose run does not end is an exception, as one whose latest run failed is; one whose run has not lasted long is none.
func TestFailedJobs_Hang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.NewTextHandler(io.Discard, nil))
		hanging := &worker.Worker{Name: "push", Every: time.Second, Log: log, Job: func(ctx context.Context) (worker.Report, error) {
			<-ctx.Done()
			return worker.Report{}, nil
		}}
		failing := &worker.Worker{Name: "prices", Every: 24 * time.Hour, Log: log, Job: func(context.Context) (worker.Report, error) {
			return worker.Report{}, errors.New("planted")
		}}
		go hanging.Run(t.Context())
		go failing.Run(t.Context())

		s := &Service{Jobs: func() []*worker.Worker { return []*worker.Worker{hanging, failing} }}
		titles := func() string {
			synctest.Wait()
			var all []string
			for _, e := range s.failedJobs() {
				if e.Kind != JobFailed || e.Level != Critical || e.Count != 1 {
					t.Errorf("%+v", e)
				}
				all = append(all, e.Title)
			}
			return strings.Join(all, "; ")
		}

		time.Sleep(time.Minute)
		if said := titles(); strings.Contains(said, `"push"`) || !strings.Contains(said, `"prices" has failed since`) {
			t.Errorf("after a minute: %s", said)
		}
		time.Sleep(worker.HangAfter)
		if said := titles(); !strings.Contains(said, `"push" has been in one run since`) || !strings.Contains(said, `"prices" has failed since`) {
			t.Errorf("after longer: %s", said)
		}
	})
}
