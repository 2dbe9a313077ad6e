package delivery

import (
	"context"
	"sync/atomic"
	"time"

	"flexd/internal/flex"
)

const (
	// troubleWait is how long a dispatcher waits after the store failed it.
	troubleWait = time.Second
	// idleWait is how long it sleeps if it knows of nothing to come.
	idleWait = time.Hour
)

// dispatcher delivers to one endpoint; the package's documentation says how.
type dispatcher struct {
	service *Service
	org     flex.OrgID
	name    flex.EndpointName

	// Other goroutines use only these fields.
	events  chan event
	wakeups chan struct{}
	version atomic.Int64 // of the endpoint at the latest wake-up
	resting atomic.Bool  // whether the breaker is open
	// until when the breaker is open, in microseconds since 1970: one push may be tried then
	restsUntil atomic.Int64

	// All that follows belongs to the goroutine of run.
	endpoint flex.Endpoint
	disabled bool // the endpoint, by the latest claim
	gone     bool // the endpoint answered that it is gone; not recorded yet
	sending  int  // attempts under way

	due bool // something may be due
	// the endpoint was down: what is due may be a whole fleet's
	late bool
	// when something will be due; zero: never, as far as is known
	dueAt time.Time
	// the rate or a failing store forbids claims until then
	blockedUntil time.Time
	readAt       time.Time // by the clock, when it was read last

	claimer  claimer
	recorder recorder
	breaker  breaker
}

// event is what another goroutine reports to the dispatcher's.
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

// notify has the dispatcher look for something due.
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

		if d.idle() && (stopping || d.finished()) {
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

// woken has the dispatcher claim, as if the endpoint were enabled: the claim says whether it is. An endpoint that was
// set again since starts with a closed breaker.
func (d *dispatcher) woken() {
	d.due = true
	d.disabled = false

	if d.version.Load() != d.endpoint.Version {
		d.blockedUntil = time.Time{}
		d.breaker.reset()
		d.setResting(false)
	}
}

// followClock puts the instants before which nothing is claimed back by as
// much as the clock was set back since it was read last: nothing waits until
// the clock is there again. What is due later was read from the database, and
// is read there again.
func (d *dispatcher) followClock() {
	now := d.now()
	back := min(now.Sub(d.readAt), 0)
	d.readAt = now
	if back == 0 {
		return
	}

	d.blockedUntil = d.blockedUntil.Add(back)
	d.breaker.until = d.breaker.until.Add(back)
	d.restsUntil.Add(back.Microseconds())
	d.claimer.at = d.claimer.at.Add(back)
}

// checkDue notes whether what was to be due later is due now.
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

// finished reports whether there is nothing to do now or later, and if so takes the dispatcher
// from the service.
func (d *dispatcher) finished() bool {
	nothingDue := d.disabled || !d.due
	nothingLater := d.disabled || d.dueAt.IsZero()
	return nothingDue && nothingLater && d.service.remove(d)
}

// nextDue asks the store when there is something to send; now, if it cannot say.
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

// expect takes an answer of nextDue. While a claim is under way there are two such answers, and
// which of them is the newer is not known: the earlier instant counts.
func (d *dispatcher) expect(next time.Time) {
	earlierKnown := !d.dueAt.IsZero() && (next.IsZero() || d.dueAt.Before(next))
	if d.claimer.busy && earlierKnown {
		next = d.dueAt
	}

	d.dueAt = next
	if !next.IsZero() && !d.now().Before(next) {
		d.due = true
		d.dueAt = time.Time{}
	}
}

// block forbids claims until an instant. What is due stays due.
func (d *dispatcher) block(until time.Time) {
	d.due = true
	d.blockedUntil = until
}

// blocked returns until when claims are forbidden: by the rate, a failing store or the breaker.
func (d *dispatcher) blocked() time.Time {
	if d.breaker.until.After(d.blockedUntil) {
		return d.breaker.until
	}
	return d.blockedUntil
}

// pause is how long the dispatcher may sleep if nothing happens.
func (d *dispatcher) pause() time.Duration {
	now := d.now()
	if d.due {
		if d.disabled || d.gone {
			return idleWait
		}

		// Nothing is claimed until an event changes that: an attempt ends, or outcomes are recorded.
		if d.stopping() || d.recorder.full() {
			return idleWait
		}

		if d.blocked().After(now) {
			return d.blocked().Sub(now)
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

// setResting publishes and counts whether the breaker is open.
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

// trouble logs what the store failed at and has the dispatcher wait a little.
func (d *dispatcher) trouble(what string, err error) {
	if d.stopping() {
		return
	}
	d.service.Log.Error(
		"cannot "+what,
		"org",
		d.org,
		"endpoint",
		d.name,
		"err",
		err,
	)

	d.block(d.now().Add(troubleWait))
}
