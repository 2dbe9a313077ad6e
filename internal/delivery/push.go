// Package delivery is the delivery service: it delivers to each organisation's endpoint what the other
// services have left in the outbox, at least once and signed, the newest schedule of an asset
// and never an older one after it.
//
//	queued ─► under way ─► accepted                   2xx
//	  ▲          │  │
//	  │          │  └────► rejected                   4xx but those below
//	  │          ▼
//	  └──── pending ─────► superseded                 a newer schedule took its place
//	 5 s … 5 min    │
//	 408 425 429    ├────► expired                    its schedule is over
//	 3xx 5xx        └────► retracted                  the car was unplugged, control ended
//	 no answer             410: it waits, and the endpoint is disabled
//
// A claim leases rows of the outbox, so that several processes share the work; a process
// that dies leaves leases that run out. A newer schedule never overtakes an older one that
// is under way: it has its turn when that attempt has ended.
//
// Each endpoint has a lane of its own, with its own limit of attempts at once and its own
// rate, so that a slow one delays nobody else. A lane whose endpoint fails over and over
// rests, and tries a single push now and then until one is taken.
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

// Service delivers pushes and keeps endpoints. Set its fields before its first use.
type Service struct {
	DB  *store.DB
	Out *egress.Client
	// BaseURL is the interface's own address, which dispatch events tell their callback.
	BaseURL string
	// PlainHTTP lets endpoints be http://, for private networks.
	PlainHTTP bool
	Log       *slog.Logger // nil means the default logger
	// Chance returns the number in [0, 1) that the n-th delay of an event, or the n-th rest
	// of an organisation's lane, is jittered by; nil means one that is drawn from the id.
	Chance func(id [16]byte, n int) float64

	once    sync.Once
	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	metrics *metrics
	mu      sync.Mutex
	lanes   map[laneKey]*lane
	wait    sync.WaitGroup

	ended atomic.Int64 // attempts that ended since the last report
}

type laneKey struct {
	org  flex.OrgID
	name store.EndpointName
}

func (d *Service) begin() {
	d.once.Do(func() {
		d.ctx, d.stop = context.WithCancel(context.Background())
		d.lanes, d.metrics = map[laneKey]*lane{}, newMetrics()
		if d.Chance == nil {
			d.Chance = drawn
		}

		if d.Log == nil {
			d.Log = slog.Default()
		}
	})
}

// DispatchDue has every endpoint's lane run that has something due. It does not wait for them, so
// that no endpoint waits for another.
func (d *Service) DispatchDue(ctx context.Context) (worker.Report, error) {
	d.begin()
	due, err := d.DB.DueEndpoints(ctx)
	for _, e := range due {
		d.run(e)
	}
	return worker.Report{Did: int(d.ended.Swap(0))}, err
}

// Recover takes up what a process that was killed had under way. Call it once, before the
// first job.
func (d *Service) Recover(ctx context.Context) error {
	return d.DB.WriteAll(ctx, func(all *store.All) error { return all.DropLeases(ctx) })
}

// run nudges the endpoint's lane, and starts it if it is not running.
func (d *Service) run(e store.Endpoint) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.ctx.Err() != nil {
		return
	}

	key := laneKey{e.Org, e.Name}
	l := d.lanes[key]
	if l == nil {
		l = newLane(d, e)
		d.lanes[key] = l
		d.wait.Go(l.run)
	}

	l.told.Store(e.Version)
	l.wake()
}

// leave forgets a lane that has nothing to do, unless it was nudged meanwhile.
func (d *Service) leave(l *lane) bool {
	d.mu.Lock()
	defer d.mu.Unlock()

	select {
	case <-l.nudge:
		l.nudged()
		return false
	default:
		delete(d.lanes, laneKey{l.org, l.name})
		return true
	}
}

// Close takes up no more pushes and returns when the attempts under way have ended and are
// recorded, which takes little longer than egress.AttemptTime.
func (d *Service) Close() {
	d.begin()
	d.mu.Lock()
	d.stop()
	d.mu.Unlock()
	d.wait.Wait()
}

// settleLook is how often Settle looks.
const settleLook = 2 * time.Millisecond

// Drain sends what is due to the organisation's endpoints, and returns when every such
// push has been tried, but for endpoints that are resting or disabled.
func (d *Service) Drain(ctx context.Context, org flex.OrgID) error {
	for {
		if _, err := d.DispatchDue(ctx); err != nil {
			return err
		}

		busy := false
		err := d.DB.Read(ctx, org, func(tx *store.Tx) error {
			names, err := tx.BusyEndpoints(ctx)
			for _, name := range names {
				busy = busy || !d.resting(laneKey{org, name})
			}
			return err
		})
		if err != nil || !busy {
			return err
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settleLook):
		}
	}
}

func (d *Service) resting(key laneKey) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lanes[key]
	return l != nil && l.asleep.Load()
}
