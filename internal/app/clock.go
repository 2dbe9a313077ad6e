package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// AdvanceMax is how far a sandbox clock may be advanced in one call.
const AdvanceMax = 366 * 24 * time.Hour

// settleMax bounds how often the background jobs run at one instant: each run may cause work
// for another job, but must end.
const settleMax = 100

// PushWait is how long an advance waits at one instant for the organisation's own endpoints.
// If they have not answered by then, the rest of the advance does not wait for them.
const PushWait = 20 * time.Second

// Clock returns an organisation's time, and whether that is a sandbox clock which no longer
// follows the true one.
func (a *App) Clock(
	ctx context.Context,
	org flex.OrgID,
) (now time.Time, held bool, err error) {
	err = a.DB.Read(ctx, org, func(tx *store.Tx) error {
		o, err := tx.OrgRecord(ctx)
		now, held = tx.Now(), o.ClockHeld
		return err
	})

	return now, held, err
}

// Advance sets a sandbox organisation's clock forward to the instant and returns when
// everything that is due until then has been done. The clock is set from one instant at which
// something of this organisation is due to the next; nothing of other organisations is done.
// From the last instant it runs on by itself. If the context ends, the clock stays at the last
// instant whose work was begun. A second advance of the same clock waits for the first, in
// another process too.
func (a *App) Advance(ctx context.Context, org flex.OrgID, to time.Time) error {
	if a.DB.Environment != flex.Sandbox {
		return flex.Fail(
			flex.Malformed,
			"the clock can be turned in the sandbox alone",
		)
	}

	end, err := a.advances.begin(ctx, org)
	if err != nil {
		return err
	}

	defer end()

	claim, err := a.DB.ClaimClock(ctx, org)
	if err != nil {
		return err
	}

	defer claim.Free(ctx)

	start, _, err := a.Clock(ctx, org)
	if err != nil {
		return err
	}

	if to.Before(start) {
		return flex.Fail(
			flex.Malformed,
			"the clock reads %s and only goes forward: %s is past",
			start.Format(time.RFC3339),
			to.Format(time.RFC3339),
		)
	}

	if to.Sub(start) > AdvanceMax {
		return flex.Fail(
			flex.Malformed,
			"the clock can be turned by at most %d days at once",
			AdvanceMax/(24*time.Hour),
		)
	}

	if !to.After(start) {
		return nil
	}

	if err := a.Market.InventTo(ctx, to); err != nil {
		return err
	}

	adv := advance{
		App:   a,
		org:   org,
		claim: claim,
		wait:  PushWait,
	}

	// The commits of an advance are synced to the disk together, before it returns.
	err = adv.run(store.WithoutSync(ctx), start, to)

	return errors.Join(err, a.DB.Sync())
}

// advances makes this process's advances of one organisation's clock wait for each other.
type advances struct {
	mu   sync.Mutex
	busy map[flex.OrgID]chan struct{} // closed when the advance ends
}

// begin waits for another advance of the organisation's clock, and begins one. The caller
// calls end when it is over.
func (s *advances) begin(ctx context.Context, org flex.OrgID) (end func(), err error) {
	for {
		s.mu.Lock()
		other, taken := s.busy[org]
		if !taken {
			break
		}

		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-other:
		}
	}

	defer s.mu.Unlock()

	if s.busy == nil {
		s.busy = map[flex.OrgID]chan struct{}{}
	}

	ended := make(chan struct{})
	s.busy[org] = ended

	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.busy, org)
		close(ended)
	}, nil
}

// advance is one advance of one organisation's clock.
type advance struct {
	*App
	org   flex.OrgID
	claim *store.ClockClaim // nil if the clock is not set
	wait  time.Duration     // for endpoints, at one instant
	// also do the work for which jobs name no instant
	thorough bool
}

// run sets the clock from one due instant to the next. Work without an instant, because of a
// new reading or a car that was plugged in, is done before the first and after the last.
func (adv *advance) run(ctx context.Context, now, to time.Time) error {
	a, err := adv.sweep(ctx)
	if err != nil {
		return err
	}

	for now.Before(to) {
		a, err = adv.upcoming(ctx, a)
		if err != nil {
			return err
		}

		now = a.next(to)
		if err := adv.set(ctx, now); err != nil {
			return err
		}
		if !now.Before(to) { // all that is due is done below
			break
		}

		a.now = now
		a, err = adv.work(ctx, a)
		if err != nil {
			return err
		}
	}

	_, err = adv.sweep(ctx)

	return err
}

// set sets the clock to the instant, unless it is past it already.
func (adv *advance) set(ctx context.Context, to time.Time) error {
	err := adv.DB.Write(ctx, adv.org, func(tx *store.Tx) error {
		o, err := tx.OrgRecord(ctx)
		if err != nil {
			return err
		}
		return tx.MoveClock(ctx, adv.claim, o.ClockOffset+max(0, to.Sub(tx.Now())))
	})
	if err != nil {
		return fmt.Errorf("advance the clock: %w", err)
	}

	return nil
}

// agenda is when each job is due, in the jobs' order, as known at an instant.
type agenda struct {
	now    time.Time
	at     []time.Time // zero for never
	pushes bool        // an endpoint may be sent something
}

// due reports whether a job is due at the agenda's instant.
func (a *agenda) due(i int) bool {
	return !a.at[i].IsZero() && !a.at[i].After(a.now)
}

// next returns the first instant after the agenda's at which a job is due, or the end.
func (a *agenda) next(to time.Time) time.Time {
	first := to
	for _, at := range a.at {
		if at.After(a.now) && at.Before(first) {
			first = at
		}
	}

	return first
}

// look asks the jobs when they are due.
func (adv *advance) look(ctx context.Context) (agenda, error) {
	var a agenda
	err := adv.DB.Read(ctx, adv.org, func(tx *store.Tx) error {
		a = agenda{
			now: tx.Now(),
			at:  make([]time.Time, len(adv.jobs)),
		}

		var err error
		a.pushes, err = tx.AskDue(ctx, time.Time{}, adv.thorough)
		if err != nil {
			return err
		}

		return adv.ask(ctx, tx, &a, time.Time{}, func(int) bool { return true })
	})

	return a, err
}

// upcoming asks the jobs that are still due, although they found nothing to do, when they are
// due after that.
func (adv *advance) upcoming(ctx context.Context, a agenda) (agenda, error) {
	late := false
	for i := range a.at {
		late = late || a.due(i)
	}

	if !late {
		return a, nil
	}

	err := adv.DB.Read(ctx, adv.org, func(tx *store.Tx) error {
		return adv.ask(ctx, tx, &a, a.now, a.due)
	})

	return a, err
}

// ask asks some jobs when they are due after an instant.
func (adv *advance) ask(
	ctx context.Context,
	tx *store.Tx,
	a *agenda,
	after time.Time,
	which func(i int) bool,
) error {
	var err error
	for i, j := range adv.jobs {
		if j.next == nil || !which(i) {
			continue
		}

		a.at[i], err = j.next(tx, ctx, after)
		if err != nil {
			return fmt.Errorf("when job %s is due: %w", j.Name, err)
		}

		if !adv.thorough || j.hasUndatedWork == nil || a.due(i) {
			continue
		}

		waits, err := j.hasUndatedWork(tx, ctx)
		if err != nil {
			return fmt.Errorf("whether job %s has work: %w", j.Name, err)
		}
		if waits {
			a.at[i] = tx.Now()
		}
	}

	return nil
}

// work runs the jobs that are due until none is. A job that did nothing is not asked again
// until another did something.
func (adv *advance) work(ctx context.Context, a agenda) (agenda, error) {
	idle := map[string]bool{}
	for range settleMax {
		did, err := adv.runDue(ctx, &a, idle)
		if err != nil {
			return a, err
		}

		if !did && !a.pushes {
			return a, nil
		}
		if !did {
			more, err := adv.pushed(ctx, &a, idle)
			if err != nil || !more {
				return a, err
			}
			continue
		}

		a, err = adv.look(ctx)
		if err != nil {
			return a, err
		}
	}

	return a, fmt.Errorf("the jobs still found work after %d runs", settleMax)
}

// pushed sends what is due and asks the jobs again. It reports whether a job is due that was
// not before: a push that was accepted may cause that, such as the plan of a heat pump that
// waits for a car's schedule.
func (adv *advance) pushed(
	ctx context.Context,
	a *agenda,
	idle map[string]bool,
) (more bool, err error) {
	sent, err := adv.push(ctx)
	if err != nil || !sent {
		return false, err
	}

	before := *a
	*a, err = adv.look(ctx)
	if err != nil {
		return false, err
	}

	for i, j := range adv.jobs {
		if a.due(i) && !before.due(i) {
			idle[j.Name], more = false, true
		}
	}

	return more, nil
}

// runDue runs the jobs that are due and not idle, and reports whether one of them did something.
func (adv *advance) runDue(
	ctx context.Context,
	a *agenda,
	idle map[string]bool,
) (did bool, err error) {
	for i, j := range adv.jobs {
		if !a.due(i) || idle[j.Name] {
			continue
		}

		// Work that is put off is tried again at an instant of its own; the rest was done.
		r, err := j.run(ctx, adv.org)
		if err != nil && !flex.Only[*worker.PutOff](err) {
			return did, fmt.Errorf("job %s: %w", j.Name, err)
		}

		if r.Count > 0 {
			did = true
			clear(idle)
		}
		idle[j.Name] = r.Count == 0
	}

	return did, nil
}

// sweep does all work that there is at this instant, whether or not a job named the instant.
func (adv *advance) sweep(ctx context.Context) (agenda, error) {
	adv.thorough = true
	defer func() { adv.thorough = false }()

	a, err := adv.look(ctx)
	if err != nil {
		return a, err
	}

	return adv.work(ctx, a)
}

// push sends what is due to the organisation's endpoints and waits for their answers, up to
// the advance's limit. It reports whether anything may have been sent.
func (adv *advance) push(ctx context.Context) (sent bool, err error) {
	if adv.wait == 0 {
		return true, nil // the background job sends it
	}

	// What a push contains is on the disk before it is sent.
	limited, cancel := context.WithTimeout(store.WithSync(ctx), adv.wait)
	defer cancel()

	sent, err = adv.Push.Flush(limited, adv.org)
	if limited.Err() != nil && ctx.Err() == nil {
		adv.wait = 0
		return true, nil
	}

	return sent, err
}

// RunDue does what is due for one organisation at this instant, as an advance of its clock
// does: only jobs with something due are run, and only for this organisation. It waits for the
// organisation's own endpoints.
func (a *App) RunDue(ctx context.Context, org flex.OrgID) error {
	adv := advance{
		App:  a,
		org:  org,
		wait: PushWait,
	}

	_, err := adv.sweep(ctx)

	return err
}

// RunUntilIdle runs all background jobs of all organisations, in their order, until none has
// anything to do.
func (a *App) RunUntilIdle(ctx context.Context) error {
	return untilIdle(a.jobs, func(j job) (int, error) {
		r, err := j.Job(ctx)
		return r.Count, err
	})
}

// untilIdle runs jobs in their order, again and again until each has been run and did nothing
// since the last one that did something.
func untilIdle(jobs []job, run func(job) (did int, err error)) error {
	idle := 0
	for range settleMax {
		for _, j := range jobs {
			did, err := run(j)
			if err != nil {
				return fmt.Errorf("job %s: %w", j.Name, err)
			}

			idle++
			if did > 0 {
				idle = 0
			}
			if idle == len(jobs) {
				return nil
			}
		}
	}

	return fmt.Errorf("the jobs still found work after %d runs", settleMax)
}
