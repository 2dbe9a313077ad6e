package delivery

import (
	"context"
	"sync/atomic"
	"time"

	"flexd/internal/flex"
)

const (
	// troubleWait is how long a dispatcher waits after an error of the store.
	troubleWait = time.Second
	// idleWait is how long it sleeps if it expects nothing.
	idleWait = time.Hour
)

// dispatcher delivers to one endpoint, as the package's documentation describes.
type dispatcher struct {
	service *Service
	org     flex.OrgID
	name    flex.EndpointName

	// Other goroutines use these fields only.
	events  chan event
	wakeups chan struct{}
	version atomic.Int64 // of the endpoint at the latest wake-up
	resting atomic.Bool  // whether the breaker is open
	// until when the breaker is open, in microseconds since 1970; then one push may be
	// attempted
	restsUntil atomic.Int64

	// The following fields belong to the goroutine of run.
	endpoint   flex.Endpoint
	isDisabled bool // whether the endpoint is disabled, by the latest claim
	isGone     bool // the endpoint answered that it is gone; not recorded yet
	sending    int  // attempts under way

	due bool // something may be due
	// the endpoint was down: schedules of a whole fleet may be due
	late bool
	// when something will be due; zero if nothing is expected
	dueAt time.Time
	// no claims before then, because of the rate or a failing store
	blockedUntil time.Time
	readAt       time.Time // when the clock was read last

	claimer  claimer
	recorder recorder
	breaker  breaker
}

// event is a message from another goroutine, applied in the dispatcher's own.
type event interface{ apply(*dispatcher) }

func newDispatcher(s *Service, e flex.Endpoint) *dispatcher {
	return &dispatcher{
		service:  s,
		org:      e.Org,
		name:     e.Name,
		endpoint: e,
		events:   make(chan event, 64),
		wakeups:  make(chan struct{}, 1),
	}
}

// notify wakes the dispatcher to look for due pushes.
func (d *dispatcher) notify() {
	select {
	case d.wakeups <- struct{}{}:
	default:
	}
}

func (d *dispatcher) now() time.Time { return d.service.DB.Now() }

// stopping reports whether the service is being closed.
func (d *dispatcher) stopping() bool { return d.service.stopping() }

// run delivers until there is nothing to do.
func (d *dispatcher) run() {
	timer := time.NewTimer(idleWait)
	defer timer.Stop()
	defer d.setResting(false)

	stop := d.service.stop
	for {
		d.followClock()

		stopping := d.stopping()
		if !stopping && d.mayClaim() {
			d.claim()
		}

		if d.recorder.ready() {
			d.record()
		}

		if d.idle() && (stopping || d.isFinished()) {
			return
		}

		timer.Reset(d.pause())

		select {
		case e := <-d.events:
			e.apply(d)
		case <-d.wakeups:
			d.woken()
		case <-timer.C:
			d.checkDue()
		case <-stop:
			stop = nil
		}
	}
}

// woken lets the dispatcher claim as if the endpoint were enabled; the claim returns whether
// it is. If the endpoint was set again since, its breaker is closed.
func (d *dispatcher) woken() {
	d.due = true
	d.isDisabled = false

	if d.version.Load() != d.endpoint.Version {
		d.blockedUntil = time.Time{}
		d.breaker.reset()
		d.setResting(false)
	}
}

// followClock corrects for a clock that was set back since it was read last. It moves the
// instants before which nothing is claimed back by as much, so that pauses do not become
// longer. The time at which something is due is in the database, and is read again.
func (d *dispatcher) followClock() {
	now := d.now()
	setBack := min(now.Sub(d.readAt), 0)
	d.readAt = now
	if setBack == 0 {
		return
	}

	d.blockedUntil = d.blockedUntil.Add(setBack)
	d.breaker.until = d.breaker.until.Add(setBack)
	d.restsUntil.Add(setBack.Microseconds())
	d.claimer.at = d.claimer.at.Add(setBack)
}

// checkDue records whether the time at which something is due has come.
func (d *dispatcher) checkDue() {
	if !d.dueAt.IsZero() && !d.now().Before(d.dueAt) {
		d.due = true
	}
	if d.due {
		d.dueAt = time.Time{}
	}
}

// idle reports whether nothing is under way.
func (d *dispatcher) idle() bool {
	return d.sending == 0 && !d.claimer.busy && d.recorder.empty()
}

// isFinished reports whether there is nothing to do now or later, and if so removes the
// dispatcher from the service.
func (d *dispatcher) isFinished() bool {
	nothingDue := d.isDisabled || !d.due
	nothingLater := d.isDisabled || d.dueAt.IsZero()
	return nothingDue && nothingLater && d.service.remove(d)
}

// nextDue reads from the store when the next push is due; now, if the store fails.
func (d *dispatcher) nextDue() time.Time {
	at, err := d.service.DB.NextTurn(
		context.Background(),
		d.org,
		d.name,
	)

	if err != nil {
		d.service.Log.Error(
			"cannot look for the next push",
			"org",
			d.org,
			"endpoint",
			d.name,
			"err",
			err,
		)

		return d.now().Add(troubleWait)
	}

	return at
}

// expect applies an answer of nextDue. While a claim is under way there are two such answers,
// and it is unknown which is newer: the earlier instant counts.
func (d *dispatcher) expect(next time.Time) {
	hasEarlier := !d.dueAt.IsZero() && (next.IsZero() || d.dueAt.Before(next))
	if d.claimer.busy && hasEarlier {
		next = d.dueAt
	}

	d.dueAt = next
	if !next.IsZero() && !d.now().Before(next) {
		d.due = true
		d.dueAt = time.Time{}
	}
}

// block forbids claims until an instant. Pushes that are due stay due.
func (d *dispatcher) block(until time.Time) {
	d.due = true
	d.blockedUntil = until
}

// blockedUntilTime returns until when claims are forbidden: by the rate, a failing store or the breaker.
func (d *dispatcher) blockedUntilTime() time.Time {
	if d.breaker.until.After(d.blockedUntil) {
		return d.breaker.until
	}
	return d.blockedUntil
}

// pause is how long the dispatcher may sleep if nothing happens.
func (d *dispatcher) pause() time.Duration {
	now := d.now()
	if d.due {
		if d.isDisabled || d.isGone {
			return idleWait
		}

		// Nothing is claimed until an event changes that: an attempt ends, or outcomes are
		// recorded.
		if d.stopping() || d.recorder.full() {
			return idleWait
		}

		if d.blockedUntilTime().After(now) {
			return d.blockedUntilTime().Sub(now)
		}

		if d.free() > 0 && !d.claimer.busy {
			return max(d.claimer.at.Add(claimPause).Sub(now), 0)
		}
	}

	if !d.dueAt.IsZero() {
		return max(d.dueAt.Sub(now), 0)
	}

	return idleWait
}

// setResting publishes whether the breaker is open, and counts that in the metrics.
func (d *dispatcher) setResting(resting bool) {
	if d.resting.Swap(resting) == resting {
		return
	}
	if resting {
		d.service.metrics.resting.Inc()
	} else {
		d.service.metrics.resting.Dec()
	}
}

// trouble logs an error of the store and lets the dispatcher wait a little.
func (d *dispatcher) trouble(action string, err error) {
	if d.stopping() {
		return
	}
	d.service.Log.Error(
		"cannot "+action,
		"org",
		d.org,
		"endpoint",
		d.name,
		"err",
		err,
	)

	d.block(d.now().Add(troubleWait))
}
