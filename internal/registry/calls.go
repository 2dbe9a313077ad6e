package registry

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// CallsUsed is how often grid instructions may call a site, and how often they did.
type CallsUsed struct {
	Agreed  flex.AgreedCalls
	Counted flex.CallCount // in this London day and month, with calls that were sent and are to begin in them
}

// Calls returns how often a site may be called, and how often it was.
func (s *Service) Calls(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
) (CallsUsed, error) {
	return read(ctx, s, org, func(tx *store.Tx) (CallsUsed, error) {
		return callsUsed(ctx, tx, site)
	})
}

func callsUsed(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) (CallsUsed, error) {
	found, err := tx.Site(ctx, site)
	if err != nil {
		return CallsUsed{}, err
	}

	counted, err := tx.CallsOf(ctx, site, tx.Now())

	return CallsUsed{Agreed: found.Calls, Counted: counted}, err
}
