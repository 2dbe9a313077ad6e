package delivery

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
)

const (
	// lease is how long a push is ours: an attempt, and time to record it.
	lease = egress.AttemptTime + 15*time.Second
	// leaseSlack of it must be left when the attempt has ended.
	leaseSlack = 5 * time.Second
	// claimMax and finishMax bound one transaction.
	claimMax, finishMax = 500, 1000
	// claimPause spares a busy lane claims for a slot or two.
	claimPause = 10 * time.Millisecond
	// restAfter is how many failures in a row, none between them taken, put a lane to rest.
	restAfter = 10
	// troubleWait is how long a lane waits after the store failed it.
	troubleWait = time.Second
)

// lane delivers to one endpoint. All its fields but do, nudge, asleep and told belong
// to the goroutine of run; what others do for it ends by handing run a function.
type lane struct {
	d      *Service
	org    flex.OrgID
	name   store.EndpointName
	do     chan func()
	nudge  chan struct{}
	asleep atomic.Bool  // resting
	told   atomic.Int64 // the endpoint's version, as it was when the lane was last nudged

	endpoint  store.Endpoint
	due       bool      // something may be due
	lookAt    time.Time // when it will be; zero: never, as far as is known
	notBefore time.Time // the rate, a rest or trouble forbid claims until then
	claimedAt time.Time
	claiming  bool
	holder    int64 // of the latest claim's leases
	lost      bool  // the answer to it: there may be leases that nobody knows of
	finishing bool
	shut      bool // the endpoint is not enabled, or was not at the latest claim
	gone      bool // it said so, and that is not recorded yet
	running   int  // attempts under way
	results   []store.Outcome
	failures  int // in a row
	rests     int
}

func newLane(d *Service, e store.Endpoint) *lane {
	return &lane{d: d, org: e.Org, name: e.Name, endpoint: e, do: make(chan func(), 64), nudge: make(chan struct{}, 1)}
}

// wake has the lane look for something due.
func (l *lane) wake() {
	select {
	case l.nudge <- struct{}{}:
	default:
	}
}

func (l *lane) now() time.Time { return l.d.DB.Now() }

// run delivers until there is nothing to do.
func (l *lane) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	defer l.rest(false)
	stop := l.d.ctx.Done()

	for {
		stopping := l.d.ctx.Err() != nil
		if l.mayClaim() && !stopping {
			l.claim()
		}

		if len(l.results) > 0 && !l.finishing {
			l.finish()
		}

		if l.quiet() && (stopping || l.rested() && l.over()) {
			return
		}

		timer.Reset(l.pause())

		select {
		case f := <-l.do:
			f()
		case <-l.nudge:
			l.nudged()
		case <-timer.C:
			l.due = l.due || !l.lookAt.IsZero() && !l.now().Before(l.lookAt)
			if l.due {
				l.lookAt = time.Time{} // it is now
			}
		case <-stop:
			stop = nil
		}
	}
}

// nudged looks for something due, as the endpoint was enabled a moment ago. One that was set
// anew since is not left alone for what it failed at before.
func (l *lane) nudged() {
	l.due, l.shut = true, false
	if l.told.Load() != l.endpoint.Version {
		l.failures = 0
		l.rests = 0
		l.notBefore = time.Time{}
		l.rest(false)
	}
}

// quiet reports whether nothing is under way.
func (l *lane) quiet() bool {
	return l.running == 0 && !l.claiming && !l.finishing && len(l.results) == 0
}

// rested reports whether nothing is due that the lane waits to be let to.
func (l *lane) rested() bool { return l.shut || !l.due }

// over reports whether the lane has nothing to do now or later, and if so leaves the service.
func (l *lane) over() bool {
	return (l.shut || l.lookAt.IsZero()) && l.d.leave(l)
}

// next asks the store when there is something to send; now, if it cannot say.
func (l *lane) next() time.Time {
	at, err := l.d.DB.NextTurn(context.WithoutCancel(l.d.ctx), l.org, l.name)
	if err != nil {
		l.d.Log.Error("cannot look for the next push", "org", l.org, "endpoint", l.name, "err", err)
		at = l.now().Add(troubleWait)
	}
	return at
}

// expect takes what next answered. While a claim is under way there are two such answers, and
// which of them is the newer is not known: the earlier instant holds.
func (l *lane) expect(next time.Time) {
	if l.claiming && !l.lookAt.IsZero() && (next.IsZero() || l.lookAt.Before(next)) {
		next = l.lookAt
	}
	l.lookAt = next
	if !next.IsZero() && !l.now().Before(next) {
		l.due, l.lookAt = true, time.Time{}
	}
}

// pause is how long the lane may sleep if nothing happens.
func (l *lane) pause() time.Duration {
	now := l.now()
	switch {
	case l.due && (l.shut || l.gone):
		return time.Hour
	case l.due && l.notBefore.After(now):
		return l.notBefore.Sub(now)
	case l.due && l.free() > 0 && !l.claiming:
		return max(l.claimedAt.Add(claimPause).Sub(now), 0)
	case !l.lookAt.IsZero():
		return max(l.lookAt.Sub(now), 0)
	}

	return time.Hour
}

// free is how many more attempts may be under way. A lane that rested tries one.
func (l *lane) free() int {
	if l.rests > 0 {
		return 1 - l.running
	}
	return min(l.endpoint.Concurrency-l.running, claimMax)
}

func (l *lane) mayClaim() bool {
	now := l.now()
	if !l.due || l.claiming || l.shut || l.gone || now.Before(l.notBefore) || l.free() <= 0 || len(l.results) > finishMax {
		return false
	}
	return 2*l.free() >= l.endpoint.Concurrency || l.rests > 0 || now.Sub(l.claimedAt) >= claimPause
}

// claim leases what is due, and starts an attempt at each.
func (l *lane) claim() {
	l.claiming, l.due, l.lookAt, l.claimedAt = true, false, time.Time{}, l.now()
	if !l.lost {
		l.holder = rand.Int64() | 1
	}

	order := store.ClaimOrder{Name: l.name, Holder: l.holder, Most: l.free(), Lease: lease, Lost: l.lost}
	go func() {
		c, err := l.d.DB.ClaimPushes(context.WithoutCancel(l.d.ctx), l.org, order)
		var next time.Time

		if err == nil && !c.More {
			next = l.next()
		}

		l.do <- func() { l.claimed(c, next, err) }
	}()
}

func (l *lane) claimed(c store.Claim, next time.Time, err error) {
	defer func() { l.claiming = false }()

	l.lost = err != nil
	if l.lost {
		l.trouble("claim pushes", err)
		return
	}

	if !c.Endpoint.Enabled {
		l.shut = !l.due // a nudge since may know better
		return
	}

	l.endpoint = c.Endpoint
	l.expect(next)
	l.due = l.due || c.More

	if !c.Allowed.IsZero() {
		l.due, l.notBefore = true, c.Allowed
	}

	keys, err := keysOf(&c.Endpoint, l.now())
	if err != nil {
		l.trouble("read the endpoint's secret", err)
		return
	}

	ends := l.claimedAt.Add(lease)
	for _, letter := range c.Letters {
		if l.d.ctx.Err() != nil { // we are closing: its turn comes again at once
			l.results = append(l.results, store.Outcome{Letter: letter, Verdict: store.PushDropped})
			continue
		}

		l.running++
		l.d.metrics.underway.Inc()
		endpoint := c.Endpoint
		go func() {
			o, j := l.attempt(&endpoint, keys, letter, ends)
			l.do <- func() { l.attempted(o, j) }
		}()
	}
}

// attempt tries a push once.
func (l *lane) attempt(e *store.Endpoint, keys [][]byte, letter store.Letter, ends time.Time) (o store.Outcome, j judgement) {
	o.Letter, o.Version = letter, e.Version
	defer func() {
		if p := recover(); p != nil {
			j = judgement{verdict: store.PushPending, words: "an internal error"}
			o.Verdict, o.Error = j.verdict, j.words
			l.d.Log.Error("panic while pushing", "event", letter.EventID, "panic", p, "stack", string(debug.Stack()))
		}
	}()

	now := l.now()
	switch {
	case letter.Expired:
		o.Verdict, o.Error = store.PushExpired, "its time was over before it could be sent"
		return o, j
	case now.Add(egress.AttemptTime + leaseSlack).After(ends):
		o.Verdict = store.PushDropped // the claim took too long to come back
		return o, j
	}

	body, err := render(e, &letter, l.d.BaseURL)
	if err != nil {
		o.Verdict, o.Error = store.PushExpired, "it cannot be written: "+err.Error()
		return o, j
	}

	start := time.Now()
	a, err := l.d.Out.Do(context.WithoutCancel(l.d.ctx), egress.Request{
		Method: "POST", URL: address(e.URL, &letter), Header: header(e, keys, &letter, body, now), Body: body,
	})

	o.Took = time.Since(start)
	j = judge(a, err, l.now())
	o.Verdict, o.Attempt.At, o.Status, o.Error = j.verdict, now, a.Status, j.words
	o.Answer = excerpt(a.Body, j.verdict == store.PushAccepted)

	return o, j
}

// attempted takes an attempt's outcome and minds the endpoint's health.
func (l *lane) attempted(o store.Outcome, j judgement) {
	l.running--
	l.d.ended.Add(1)
	l.d.metrics.underway.Dec()
	now := l.now()

	if o.Verdict == store.PushPending {
		o.Again = now
		if !j.gone {
			o.Again = now.Add(delay(o.Letter.Tries+1, l.d.Chance(o.Letter.EventID, o.Letter.Tries+1), j.after))
		}

		if !o.Again.Before(o.Letter.Lapses) {
			o.Verdict, o.Error = store.PushExpired, o.Error+"; its time is over before the next try"
		}
	}

	switch {
	case o.Attempt.At.IsZero(), o.Version != l.endpoint.Version: // it did not leave, or to where it was before
	case j.verdict != store.PushPending:
		l.failures, l.rests = 0, 0
		l.rest(false)
	case now.Before(l.notBefore) && l.rests > 0: // begun before the rest
	default:
		if l.failures++; l.failures >= restAfter {
			l.rests++
			l.notBefore = now.Add(backoff(l.rests, l.d.Chance(l.org, l.rests)))
			l.due = true
			l.rest(true)
		}
	}

	l.gone = l.gone || j.gone
	l.d.metrics.observe(&o)
	l.results = append(l.results, o)
}

// finish records outcomes, many in one transaction.
func (l *lane) finish() {
	l.finishing = true
	outs := l.results[:min(len(l.results), finishMax)]
	l.results = append([]store.Outcome(nil), l.results[len(outs):]...)
	go func() {
		err := l.record(outs)
		var next time.Time

		if err == nil {
			next = l.next() // a newer push may have waited for one of these
		}

		l.do <- func() { l.finished(outs, next, err) }
	}()
}

// record records outcomes. Where the endpoint was set anew since the attempt, what came of it
// at the former one is not held against the push: it is due again at once.
func (l *lane) record(outs []store.Outcome) error {
	ctx := context.WithoutCancel(l.d.ctx)
	return l.d.DB.Write(ctx, l.org, func(tx *store.Tx) error {
		outs := slices.Clone(outs) // this may run again
		if slices.ContainsFunc(outs, failed) {
			e, err := tx.LockEndpoint(ctx, l.name)
			if err != nil && flex.KindOf(err) != flex.NotFound {
				return err
			}
			l.offerAgain(outs, e)
		}

		if err := tx.FinishPushes(ctx, outs); err != nil {
			return err
		}

		for _, o := range outs {
			if o.Status == statusGone {
				l.d.Log.Error("an endpoint is gone and is disabled, unless it was set anew", "org", l.org, "endpoint", l.name)
				reason := fmt.Sprintf("it answered 410 (gone) at %s", o.Attempt.At.Format(time.RFC3339))
				if err := tx.DisableEndpoint(ctx, l.name, o.Version, reason); err != nil {
					return err
				}
			}
		}

		return nil
	})
}

// offerAgain has what another version of the endpoint refused or failed at tried again at once.
func (l *lane) offerAgain(outs []store.Outcome, e store.Endpoint) {
	now := l.now()
	for i := range outs {
		if o := &outs[i]; failed(*o) && o.Version != e.Version && now.Before(o.Letter.Lapses) {
			o.Verdict, o.Again = store.PushPending, now
		}
	}
}

// failed reports whether a push left, and was not taken.
func failed(o store.Outcome) bool { return o.Verdict != store.PushAccepted && !o.Attempt.At.IsZero() }

func (l *lane) finished(outs []store.Outcome, next time.Time, err error) {
	l.finishing = false
	if err != nil {
		l.d.Log.Error("cannot record deliveries", "org", l.org, "endpoint", l.name, "deliveries", len(outs), "err", err)

		if l.d.ctx.Err() == nil && len(l.results)+len(outs) <= 10*finishMax {
			l.finishing = true
			time.AfterFunc(troubleWait, func() {
				l.do <- func() { l.finishing, l.results = false, append(outs, l.results...) }
			})
			return
		} // their leases run out, and they are sent again
	}

	l.gone = slices.ContainsFunc(l.results, func(o store.Outcome) bool { return o.Status == statusGone })
	if err == nil {
		l.expect(next)
	}
}

// trouble logs what the store failed at and has the lane wait a little.
func (l *lane) trouble(what string, err error) {
	if l.d.ctx.Err() != nil {
		return
	}
	l.d.Log.Error("cannot "+what, "org", l.org, "endpoint", l.name, "err", err)
	l.due, l.notBefore = true, l.now().Add(troubleWait)
}
