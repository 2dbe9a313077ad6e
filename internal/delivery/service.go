package delivery

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Service delivers pushes and manages endpoints. Set its fields before its first use.
type Service struct {
	DB  *store.DB
	Out *egress.Client
	// BaseURL is the address of flexd's interface, for the callback address in dispatch
	// events.
	BaseURL string
	// PlainHTTP lets endpoints be http://, for private networks.
	PlainHTTP bool
	Log       *slog.Logger // nil means the default logger
	// retention of deliveries; Retention if it is zero
	Retain time.Duration
	// Ramp limits the total power of the schedules that are sent in a minute when many are
	// late, in all and for each group; zero is no limit.
	Ramp flex.Ramp
	// Jitter returns a number in [0, 1) that jitters the n-th delay of an event, or the n-th
	// time that a dispatcher's breaker opens; nil means a hash of the id.
	Jitter func(id [16]byte, n int) float64
	// CheckDispatch refuses a dispatch for which other assets leave no headroom, in its
	// transaction; nil refuses none.
	CheckDispatch func(context.Context, *store.Tx, *store.Dispatch) error
	// NoteDispatch records more about a dispatch that is sent, in its transaction; nil records
	// nothing.
	NoteDispatch func(context.Context, *store.Tx, *store.Dispatch) error

	once        sync.Once
	stop        chan struct{} // Close closes it
	metrics     *metrics
	mu          sync.Mutex
	dispatchers map[dispatcherKey]*dispatcher
	wait        sync.WaitGroup

	numEnded atomic.Int64 // attempts that ended since the last report
}

type dispatcherKey struct {
	org  flex.OrgID
	name flex.EndpointName
}

func (s *Service) begin() {
	s.once.Do(func() {
		s.stop = make(chan struct{})
		s.dispatchers = map[dispatcherKey]*dispatcher{}
		s.metrics = newMetrics()
		if s.Jitter == nil {
			s.Jitter = hashDraw
		}

		if s.Log == nil {
			s.Log = slog.Default()
		}
	})
}

// DispatchDue starts the dispatcher of every endpoint that has something due. It does not wait
// for them, so that no endpoint waits for another.
func (s *Service) DispatchDue(ctx context.Context) (worker.Report, error) {
	s.begin()
	due, err := s.DB.DueEndpoints(ctx)
	for _, e := range due {
		s.run(e)
	}

	return worker.Report{Count: int(s.numEnded.Swap(0))}, err
}

// Recover frees the leases of a process that was killed, and gives turns to schedules that are
// late. Call it once, before the first job.
func (s *Service) Recover(ctx context.Context) error {
	return s.DB.WriteAll(ctx, func(all *store.All) error {
		if err := all.DropLeases(ctx); err != nil {
			return err
		}
		return s.spreadLate(ctx, all)
	})
}

// spreadLate gives turns to schedules whose time to be sent is past.
func (s *Service) spreadLate(ctx context.Context, all *store.All) error {
	n, err := all.SpreadLate(ctx, s.Ramp)
	if n > 0 {
		s.begin()
		s.Log.InfoContext(
			ctx,
			"late schedules are sent one after the other, so that power does not move at once",
			"waiting",
			n,
		)
	}

	return err
}

// run notifies the endpoint's dispatcher, and starts it if it is not running.
func (s *Service) run(e flex.Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.stopping() {
		return
	}

	key := dispatcherKey{e.Org, e.Name}
	d := s.dispatchers[key]
	if d == nil {
		d = newDispatcher(s, e)
		s.dispatchers[key] = d
		s.wait.Go(d.run)
	}

	d.version.Store(e.Version)
	d.notify()
}

// remove removes a dispatcher that has nothing to do, unless it was notified meanwhile.
func (s *Service) remove(d *dispatcher) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	select {
	case <-d.wakeups:
		d.woken()
		return false
	default:
		delete(s.dispatchers, dispatcherKey{d.org, d.name})
		return true
	}
}

// CloseMax is how long Close waits at most. After that, another process may claim whatever is
// not recorded, because its lease is over.
const CloseMax = lease

// Close claims no more pushes and returns when the attempts under way have ended and are
// recorded, which takes little longer than egress.AttemptTime. It waits at most CloseMax for a
// store that does not answer.
func (s *Service) Close() {
	s.begin()
	s.mu.Lock()
	if !s.stopping() {
		close(s.stop)
	}
	s.mu.Unlock()

	done := make(chan struct{})
	go func() {
		s.wait.Wait()
		close(done)
	}()

	select {
	case <-done:
	case <-time.After(CloseMax):
		s.Log.Error(
			"attempts of pushes that were under way are not recorded, as the store does not answer: they are sent again",
			"waited",
			CloseMax,
		)
	}
}

// stopping reports whether the service is being closed.
func (s *Service) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// drainPoll is the time between two checks by Drain.
const drainPoll = 2 * time.Millisecond

// Drain sends what is due to the organisation's endpoints, and to no other's. It returns when
// every such push has been attempted, except for endpoints whose breaker is open or that are
// disabled.
func (s *Service) Drain(ctx context.Context, org flex.OrgID) error {
	_, err := s.Flush(ctx, org)
	return err
}

// Flush is Drain, and reports whether there was anything to send.
func (s *Service) Flush(
	ctx context.Context,
	org flex.OrgID,
) (sent bool, err error) {
	s.begin()
	for {
		due, err := s.DB.DueEndpointsOf(ctx, org)
		if err != nil {
			return sent, err
		}

		for _, e := range due {
			s.run(e)
		}

		busy := false
		err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
			names, err := tx.BusyEndpoints(ctx)
			for _, name := range names {
				busy = busy || !s.resting(dispatcherKey{org, name})
			}
			return err
		})

		sent = sent || busy || len(due) > 0
		if err != nil || !busy {
			return sent, err
		}

		select {
		case <-ctx.Done():
			return sent, ctx.Err()
		case <-time.After(drainPoll):
		}
	}
}

// resting reports whether the endpoint's breaker forbids every attempt now. Once its time is
// over one push may be attempted, though the breaker stays half open until that is accepted.
func (s *Service) resting(key dispatcherKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.dispatchers[key]
	if d == nil || !d.resting.Load() {
		return false
	}

	return s.DB.Now().UnixMicro() < d.restsUntil.Load()
}
