package control

import (
	"context"

	"flexd/internal/flex"
)

// Due weighs the market again for what was marked, as a run does that began before caps were set.
func (s *Service) Due(ctx context.Context, org flex.OrgID) error {
	return s.due(ctx, flex.Org{ID: org}, &tally{})
}

// LookAtOnce sets how many marked sessions are looked at in one transaction, so that a few cars are more than that.
func (s *Service) LookAtOnce(n int) { s.dueAtOnce = n }
