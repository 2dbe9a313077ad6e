package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
	"flexd/internal/worker"
)

// TestAdvance_RunningClock: the true clock goes on while a sandbox clock is advanced. A job
// that is due and finds nothing to do is not asked again at each instant that the true clock
// has reached since: not while an instruction waits, nor while one binds.
func TestAdvance_RunningClock(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		start := time.Date(2026, time.January, 15, 17, 5, 0, 0, time.UTC)
		var asked atomic.Int64
		receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer receiver.Close()
		s := openClockedBy(t, url, start, receiver.URL, func() time.Time {
			return start.Add(time.Duration(asked.Add(1)) * time.Millisecond)
		})
		defer storetest.Close(t, s.app.DB)
		defer s.app.Push.Close()

		for _, car := range s.chargers {
			s.act(0, car, 20_000, 12)
		}
		s.advance(s.at.Add(time.Minute), time.Hour)
		_, err := s.app.Control.SendInstruction(t.Context(), s.Org, flex.Instruction{
			Span:   flex.Span{From: s.at.Add(time.Hour), To: s.at.Add(2 * time.Hour)},
			Change: 7400, Service: "dno", Who: "Ann", Reason: "feeder 7",
		})
		s.must(nil, nil, err)

		runs := s.countRuns("instructions")
		for _, hours := range []int{1, 2} { // it waits, then binds
			runs.Store(0)
			s.advance(start.Add(time.Duration(hours)*time.Hour), time.Hour)
			if n := runs.Load(); n == 0 || n > 8 {
				t.Errorf("hour %d: the instruction was looked at %d times", hours, n)
			}
		}
	})
}

// countRuns counts how often a job is run.
func (s *clocked) countRuns(name string) *atomic.Int64 {
	var n atomic.Int64
	for i := range s.app.jobs {
		j := &s.app.jobs[i]
		if j.Name != name {
			continue
		}

		run := j.run
		j.run = func(ctx context.Context, org flex.OrgID) (worker.Report, error) {
			n.Add(1)
			return run(ctx, org)
		}
	}

	return &n
}
