package delivery

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// ReasonMax is the longest reason for halting, in bytes.
const ReasonMax = 500

// Halt stops the pushes of all organisations. An attempt that is under way ends; none begins
// from then on, on any process that shares the store. What becomes due is held.
func (d *Service) Halt(ctx context.Context, who, reason string) error {
	if reason == "" || len(reason) > ReasonMax {
		return flex.Fail(flex.Malformed, "say why, in 1 to %d bytes: whoever looks next will ask", ReasonMax)
	}
	return d.DB.WriteAll(ctx, func(all *store.All) error { return all.Halt(ctx, who, reason) })
}

// Resume has what was held sent: of each asset the newest schedule alone, and only while it
// lives.
func (d *Service) Resume(ctx context.Context) error {
	return d.DB.WriteAll(ctx, func(all *store.All) error { return all.Resume(ctx) })
}
