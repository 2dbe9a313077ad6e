package delivery

import (
	"context"
	"math/rand/v2"
	"time"

	"flexd/internal/egress"
	"flexd/internal/store"
)

const (
	// lease is how long a claimed push belongs to its claimer: an attempt, and time to record
	// it.
	lease = egress.AttemptTime + 15*time.Second
	// leaseSlack is how much of the lease must be left when the attempt ends.
	leaseSlack = 5 * time.Second
	// claimMax bounds the pushes of one claim.
	claimMax = 500
	// claimPause is how long a busy dispatcher waits before it claims only a few pushes.
	claimPause = 10 * time.Millisecond
)

// claimer leases due pushes, one claim at a time.
type claimer struct {
	busy   bool
	at     time.Time // when the latest claim began
	holder int64     // of the latest claim's leases
	// the answer to the claim was lost: rows may be leased to this holder that it does not
	// know
	leaseLost bool
}

// free returns how many more attempts may be under way. A half-open breaker allows one.
func (d *dispatcher) free() int {
	if d.breaker.halfOpen() {
		return 1 - d.sending
	}
	return min(d.endpoint.Concurrency-d.sending, claimMax)
}

// mayClaim reports whether to claim now.
func (d *dispatcher) mayClaim() bool {
	if !d.due || d.claimer.busy {
		return false
	}
	if d.isDisabled || d.isGone {
		return false
	}

	now := d.now()
	if now.Before(d.blockedUntilTime()) || d.free() <= 0 || d.recorder.full() {
		return false
	}

	// A claim for few pushes costs as much as one for many: wait until half are free.
	halfFree := 2*d.free() >= d.endpoint.Concurrency

	return halfFree || d.breaker.halfOpen() ||
		now.Sub(d.claimer.at) >= claimPause
}

// claim leases due pushes in a separate goroutine.
func (d *dispatcher) claim() {
	d.due = false
	d.dueAt = time.Time{}
	d.claimer.busy = true
	d.claimer.at = d.now()

	// After a lost answer the same holder claims again, so that it gets the rows that were
	// leased to it.
	if !d.claimer.leaseLost {
		d.claimer.holder = rand.Int64() | 1
	}

	order := store.ClaimOrder{
		Name:   d.name,
		Holder: d.claimer.holder,
		Most:   d.free(),
		Lease:  lease,
		Lost:   d.claimer.leaseLost,
	}

	late := d.late
	if late {
		order.Late = d.service.Ramp
	}

	go func() {
		claim, err := d.service.DB.ClaimPushes(
			context.Background(),
			d.org,
			order,
		)
		if store.OrgMissing(err) { // the organisation has moved to another cell, and its endpoint with it
			err = nil
		}

		result := claimed{
			claim:  claim,
			err:    err,
			spread: err == nil && late,
		}

		if err == nil && !claim.More {
			result.nextDue = d.nextDue()
		}

		d.events <- result
	}()
}

// claimed is the answer to a claim.
type claimed struct {
	claim   store.Claim
	nextDue time.Time
	err     error
	spread  bool // schedules that are late were given turns
}

func (c claimed) apply(d *dispatcher) {
	// The claim counts as under way until its answer was processed: see expect.
	defer func() { d.claimer.busy = false }()

	d.claimer.leaseLost = c.err != nil
	d.late = d.late && !c.spread
	if c.err != nil {
		d.trouble("claim pushes", c.err)
		return
	}

	if !c.claim.Endpoint.Enabled {
		d.isDisabled = !d.due // a wake-up since then may be newer
		return
	}

	d.endpoint = c.claim.Endpoint
	d.expect(c.nextDue)
	d.due = d.due || c.claim.More

	if !c.claim.Allowed.IsZero() {
		d.block(c.claim.Allowed)
	}

	keys, err := keysOf(&c.claim.Endpoint, d.now())
	if err != nil {
		d.trouble("read the endpoint's secret", err)
		return
	}

	s := sender{
		service:   d.service,
		endpoint:  c.claim.Endpoint,
		keys:      keys,
		leaseEnds: d.claimer.at.Add(lease),
	}

	for _, push := range c.claim.Pushes {
		// A service that is closing returns the push, which is due again at once.
		if d.stopping() {
			d.recorder.add(store.Outcome{Push: push, State: store.PushDropped})
			continue
		}

		d.sending++
		d.service.metrics.underway.Inc()
		go func() { d.events <- s.send(push) }()
	}
}
