package registry

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// CallsUsed is how often a site may be called by instructions of the grid, and was.
type CallsUsed struct {
	Agreed flex.AgreedCalls
	Had    flex.CallCount // in this London day and month, with those that were sent and are to come in them
}

// Calls returns how often a site may be called, and was.
func (s *Service) Calls(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
) (CallsUsed, error) {
	return read(ctx, s, org, func(tx *store.Tx) (CallsUsed, error) {
		return callsStand(ctx, tx, site)
	})
}

func callsStand(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) (CallsUsed, error) {
	found, err := tx.Site(ctx, site)
	if err != nil {
		return CallsUsed{}, err
	}

	had, err := tx.CallsOf(ctx, site, tx.Now())

	return CallsUsed{Agreed: found.Calls, Had: had}, err
}
