package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/worker"
)

// What becomes due as a client takes a push is done at that instant of an advance, before the
// clock goes on.
func TestAdvance_PushMakesDue(t *testing.T) {
	start := time.Date(2026, time.January, 15, 9, 10, 0, 0, time.UTC)
	at := start.Add(time.Hour)

	var taken atomic.Bool
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { taken.Store(true) }))
	defer receiver.Close()

	s := openClocked(t, storetest.SQLite(t), start, receiver.URL)
	defer storetest.Close(t, s.app.DB)
	defer s.app.Push.Close()

	sent, ran := false, time.Time{}
	plant := func(name string, next nextFunc, run func(context.Context) error) {
		s.app.jobs = append(s.app.jobs, job{&worker.Worker{Name: name}, part{
			next: next,
			run: func(ctx context.Context, _ flex.OrgID) (worker.Report, error) {
				return worker.Report{Count: 1}, run(ctx)
			},
		}})
	}

	plant("send", func(*store.Tx, context.Context, time.Time) (time.Time, error) {
		if sent {
			return time.Time{}, nil
		}
		return at, nil
	}, func(ctx context.Context) error {
		sent = true
		_, err := s.app.Push.Test(ctx, s.Org, flex.ScheduleEndpoint)
		return err
	})

	// As the plan of a heat pump is: due once the push was taken, and at the next hour.
	plant("follow", func(tx *store.Tx, _ context.Context, after time.Time) (time.Time, error) {
		switch {
		case !taken.Load() || !ran.IsZero():
			return time.Time{}, nil
		case after.IsZero():
			return tx.Now(), nil
		}

		return after.Add(time.Hour), nil
	}, func(ctx context.Context) error {
		var err error
		ran, _, err = s.app.Clock(ctx, s.Org)
		return err
	})

	if err := s.app.Advance(t.Context(), s.Org, start.Add(4*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if !ran.Equal(at) {
		t.Errorf("done at %v, and the push was taken at %v", ran, at)
	}
}
