package control

import (
	"context"

	"flexd/internal/flex"
)

// Due weighs the market again for what was marked, as a run does that began before caps were set.
func (d *Service) Due(ctx context.Context, org flex.OrgID) error {
	return d.due(ctx, flex.Org{ID: org}, &tally{})
}
