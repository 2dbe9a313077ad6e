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
// that is due on the way has been done: at every half-hour, where prices are published,
// plans made, pushes sent and sessions settled, the clock stops until the background jobs have
// nothing left to do. The clock goes on from there by itself.
func (h *App) Advance(ctx context.Context, org flex.OrgID, to time.Time) error {
	if h.DB.Environment != flex.Sandbox {
		return flex.Fail(flex.Malformed, "the clock can be turned in the sandbox alone")
	}

	start, _, err := h.Clock(ctx, org)
	if err != nil {
		return err
	}

	switch {
	case to.Before(start):
		return flex.Fail(flex.Malformed, "the clock reads %s and only goes forward: %s is past", start.Format(time.RFC3339), to.Format(time.RFC3339))
	case to.Sub(start) > AdvanceMax:
		return flex.Fail(flex.Malformed, "the clock can be turned by at most %d days at once", AdvanceMax/(24*time.Hour))
	}

	for now := start; now.Before(to); {
		now = flex.PeriodAt(now).End()
		if now.After(to) {
			now = to
		}

		if err := h.turn(ctx, org, now); err != nil {
			return err
		}
	}

	return nil
}

func (h *App) turn(ctx context.Context, org flex.OrgID, to time.Time) error {
	err := h.DB.Write(ctx, org, func(tx *store.Tx) error {
		o, err := tx.OrgRecord(ctx)
		if err != nil {
			return err
		}

		// The clock may have run past the instant by itself in the meantime.
		ahead := max(0, to.Sub(tx.Now()))
		return tx.SetClock(ctx, o.ClockOffset+ahead)
	})
	if err != nil {
		return fmt.Errorf("turn the clock: %w", err)
	}
	if err := h.RunUntilIdle(ctx); err != nil {
		return err
	}

	return h.Push.Drain(ctx, org)
}

// RunUntilIdle runs all background jobs, in their order, until none has anything left to do.
func (h *App) RunUntilIdle(ctx context.Context) error {
	for range settleMax {
		did := 0
		for _, w := range h.workers {
			r, err := w.Job(ctx)
			if err != nil {
				return fmt.Errorf("job %s: %w", w.Name, err)
			}
			did += r.Did
		}

		if did == 0 {
			return nil
		}
	}

	return fmt.Errorf("the rounds still found work after %d runs", settleMax)
}
