package control

import (
	"context"

	"flexd/internal/flex"
)

// Due weighs the market again for what was marked, as a run does that began before caps were set.
func (d *Service) Due(ctx context.Context, org flex.OrgID) error {
	return d.due(ctx, flex.Org{ID: org}, &tally{})
}

// LookAtOnce sets how many marked sessions are looked at in one transaction, so that a few cars are more than that.
func (d *Service) LookAtOnce(n int) { d.dueAtOnce = n }
