package app

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// AdvanceMax is how far a sandbox clock may be turned in one call.
const AdvanceMax = 366 * 24 * time.Hour

// settleMax bounds how often the background jobs are run at one instant: each run may give another
// job work, but not for ever.
const settleMax = 100

// PushWait is how long a turn waits at one instant for the organisation's own endpoints to answer.
// Once they have not answered for so long, the rest of the turn waits for them no more.
const PushWait = 20 * time.Second

// Clock returns an organisation's time, and whether it has taken its sandbox clock into
// its own hands.
func (h *App) Clock(ctx context.Context, org flex.OrgID) (now time.Time, held bool, err error) {
	err = h.DB.Read(ctx, org, func(tx *store.Tx) error {
		o, err := tx.OrgRecord(ctx)
		now, held = tx.Now(), o.ClockHeld
		return err
	})
	return now, held, err
}

// Advance turns a sandbox organisation's clock forward to the instant and returns when all
// that is due on the way has been done: the clock goes from one instant at which something of this
// organisation's is due to the next, and nothing of anybody else's is done. It goes on from there by
// itself. A context that ends leaves the clock at the last instant whose work was begun; a second
// turn of the same clock waits for the first.
func (h *App) Advance(ctx context.Context, org flex.OrgID, to time.Time) error {
	if h.DB.Environment != flex.Sandbox {
		return flex.Fail(flex.Malformed, "the clock can be turned in the sandbox alone")
	}

	release, err := h.turns.take(ctx, org)
	if err != nil {
		return err
	}

	defer release()

	start, _, err := h.Clock(ctx, org)
	if err != nil {
		return err
	}

	switch {
	case to.Before(start):
		return flex.Fail(flex.Malformed, "the clock reads %s and only goes forward: %s is past", start.Format(time.RFC3339), to.Format(time.RFC3339))
	case to.Sub(start) > AdvanceMax:
		return flex.Fail(flex.Malformed, "the clock can be turned by at most %d days at once", AdvanceMax/(24*time.Hour))
	case !to.After(start):
		return nil
	}

	if err := h.Market.InventTo(ctx, to); err != nil {
		return err
	}

	t := turning{App: h, org: org, wait: PushWait}
	return t.run(ctx, start, to)
}

// turning is one turn of one organisation's clock.
type turning struct {
	*App
	org  flex.OrgID
	wait time.Duration // for endpoints, at one instant
}

// run goes from one due instant to the next. What waits for no instant, a reading that came since
// or a car that was plugged in, is found before the first and after the last.
func (t *turning) run(ctx context.Context, now, to time.Time) error {
	if err := t.sweep(ctx); err != nil {
		return err
	}

	for now.Before(to) {
		next, err := t.next(ctx, to)
		if err != nil {
			return err
		}
		if err := t.set(ctx, next); err != nil {
			return err
		}
		if err := t.work(ctx); err != nil {
			return err
		}

		now = next
	}

	return t.sweep(ctx)
}

// set moves the clock to the instant. It may have run past it by itself in the meantime.
func (t *turning) set(ctx context.Context, to time.Time) error {
	err := t.DB.Write(ctx, t.org, func(tx *store.Tx) error {
		o, err := tx.OrgRecord(ctx)
		if err != nil {
			return err
		}
		return tx.SetClock(ctx, o.ClockOffset+max(0, to.Sub(tx.Now())))
	})
	if err != nil {
		return fmt.Errorf("turn the clock: %w", err)
	}

	return nil
}

// next returns the first instant after the clock's at which a job has something to do, or the end.
func (t *turning) next(ctx context.Context, to time.Time) (time.Time, error) {
	first := to
	err := t.DB.Read(ctx, t.org, func(tx *store.Tx) error {
		for _, j := range t.jobs {
			if j.next == nil {
				continue
			}

			at, err := j.next(tx, ctx, tx.Now())
			if err != nil {
				return fmt.Errorf("when job %s is due: %w", j.Name, err)
			}

			if at.After(tx.Now()) && at.Before(first) {
				first = at
			}
		}

		return nil
	})
	return first, err
}

// due returns the jobs that have something to do by now.
func (t *turning) due(ctx context.Context) (due []job, err error) {
	err = t.DB.Read(ctx, t.org, func(tx *store.Tx) error {
		due = nil
		for _, j := range t.jobs {
			if j.next == nil {
				continue
			}

			at, err := j.next(tx, ctx, time.Time{})
			if err != nil {
				return fmt.Errorf("when job %s is due: %w", j.Name, err)
			}

			if !at.IsZero() && !at.After(tx.Now()) {
				due = append(due, j)
			}
		}

		return nil
	})
	return due, err
}

// work runs the jobs that are due until none is. One that did nothing is not asked again
// before another one did something.
func (t *turning) work(ctx context.Context) error {
	idle := map[string]bool{}
	for range settleMax {
		due, err := t.due(ctx)
		if err != nil {
			return err
		}

		ran := false
		for _, j := range due {
			if idle[j.Name] {
				continue
			}

			r, err := j.run(ctx, t.org)
			if err != nil {
				return fmt.Errorf("job %s: %w", j.Name, err)
			}

			ran = true
			if r.Did > 0 {
				clear(idle)
			}
			idle[j.Name] = r.Did == 0
		}

		if !ran {
			return t.push(ctx)
		}
	}

	return fmt.Errorf("the jobs still found work after %d runs", settleMax)
}

// sweep runs every job of the organisation until none did anything.
func (t *turning) sweep(ctx context.Context) error {
	err := untilIdle(t.jobs, func(j job) (int, error) {
		if j.run == nil {
			return 0, nil
		}
		r, err := j.run(ctx, t.org)
		return r.Did, err
	})
	if err != nil {
		return err
	}

	return t.push(ctx)
}

// push sends what is due to the organisation's endpoints and waits for their answers, but not for
// longer than a turn may.
func (t *turning) push(ctx context.Context) error {
	if t.wait == 0 {
		return nil // the background job sends it
	}

	limited, cancel := context.WithTimeout(ctx, t.wait)
	defer cancel()

	err := t.Push.Drain(limited, t.org)
	if limited.Err() != nil && ctx.Err() == nil {
		t.wait = 0
		return nil
	}

	return err
}

// RunUntilIdle runs all background jobs of all organisations, in their order, until none has
// anything left to do.
func (h *App) RunUntilIdle(ctx context.Context) error {
	return untilIdle(h.jobs, func(j job) (int, error) {
		r, err := j.Job(ctx)
		return r.Did, err
	})
}

// untilIdle runs jobs in their order, again and again until none did anything.
func untilIdle(jobs []job, run func(job) (did int, err error)) error {
	for range settleMax {
		did := 0
		for _, j := range jobs {
			n, err := run(j)
			if err != nil {
				return fmt.Errorf("job %s: %w", j.Name, err)
			}
			did += n
		}

		if did == 0 {
			return nil
		}
	}

	return fmt.Errorf("the jobs still found work after %d runs", settleMax)
}
