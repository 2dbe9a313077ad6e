package delivery

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// ReasonMax is the longest reason for halting, in bytes.
const ReasonMax = 500

// Halt stops the pushes of all organisations. An attempt that is under way ends; none begins
// from then on, on any process that shares the store. What becomes due is held.
func (d *Service) Halt(ctx context.Context, who, reason string) error {
	if err := checkReason(reason); err != nil {
		return err
	}
	return d.DB.WriteAll(ctx, func(all *store.All) error { return all.Halt(ctx, who, reason) })
}

func checkReason(reason string) error {
	if reason == "" || len(reason) > ReasonMax {
		return flex.Fail(flex.Malformed, "say why, in 1 to %d bytes: whoever looks next will ask", ReasonMax)
	}
	return nil
}

// Resume has what was held sent: of each asset the newest schedule alone, and only while it
// lives. It ends a halt that two people end, too, as the machine's own people may.
func (d *Service) Resume(ctx context.Context) error {
	return d.DB.WriteAll(ctx, func(all *store.All) error { return all.Resume(ctx) })
}

// HaltForTwo is Halt, and two people end it.
func (d *Service) HaltForTwo(ctx context.Context, who, reason string) error {
	if err := checkReason(reason); err != nil {
		return err
	}

	return d.DB.WriteAll(ctx, func(all *store.All) error {
		if err := all.Halt(ctx, who, reason); err != nil {
			return err
		}
		return all.HaltNeedsTwo(ctx)
	})
}

// ResumeAskedFor is how long it counts that somebody asked for a halt's end.
const ResumeAskedFor = time.Hour

// ResumeBy is Resume in somebody's name. A halt that two people end it ends when somebody else has
// asked for its end a short while ago; else it notes that this one asks. It reports whether the
// halt has ended. Whoever asked cannot be the second, too: Conflict.
func (d *Service) ResumeBy(ctx context.Context, who string) (ended bool, err error) {
	err = d.DB.WriteAll(ctx, func(all *store.All) error {
		ended = false // a write may be run again

		h, err := all.Halted(ctx)
		if err != nil {
			return err
		}

		asked := h != nil && !h.AskedAt.IsZero() && all.Now().Sub(h.AskedAt) < ResumeAskedFor
		switch {
		case h == nil || !h.NeedsTwo:
		case asked && h.AskedBy == who:
			return flex.Fail(flex.Conflict, "you have asked for the end of this halt: somebody else ends it")
		case !asked:
			return all.AskResume(ctx, who)
		}

		err = all.Resume(ctx)
		ended = err == nil
		return err
	})
	return ended && err == nil, err
}
