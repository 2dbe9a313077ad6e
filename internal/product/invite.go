package product

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// InviteLate invites sites to the products that are for them and were imported before they were there. It
// is safe to run twice and on several machines at once.
func (s *Service) InviteLate(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(ctx, s.DB.OrgsBy((*store.All).OrgsWithProducts), s.InviteLateOf)
}

// InviteLateOf is InviteLate for one organisation.
func (s *Service) InviteLateOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	late := false
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		late, err = InvitesWait(tx, ctx)
		return err
	})
	if err != nil || !late {
		return worker.Report{}, err
	}

	var r worker.Report
	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.LockOrg(ctx); err != nil {
			return err
		}

		var err error
		r.Count, err = inviteLate(ctx, tx)
		return err
	})

	return r, err
}

// inviteLate invites whom InvitesWait finds, and counts them.
func inviteLate(ctx context.Context, tx *store.Tx) (int, error) {
	open, err := tx.AskedProducts(ctx)
	if err != nil {
		return 0, err
	}

	var n int
	for i := range open {
		sites, err := tx.Uninvited(ctx, &open[i])
		if err != nil {
			return n, err
		}
		if err := tx.InviteMore(ctx, &open[i], sites); err != nil {
			return n, err
		}
		n += len(sites)
	}

	return n, nil
}

// InvitesWait reports whether a product that is still asked of households was not offered to all whom it is for.
func InvitesWait(tx *store.Tx, ctx context.Context) (bool, error) {
	open, err := tx.AskedProducts(ctx)
	for i := 0; i < len(open) && err == nil; i++ {
		var sites []flex.SiteID
		sites, err = tx.Uninvited(ctx, &open[i])
		if len(sites) > 0 {
			return true, err
		}
	}

	return false, err
}

// NextInvite names no instant: what has a site be invited late is a change of the site, and no time.
func NextInvite(*store.Tx, context.Context, time.Time) (time.Time, error) {
	return time.Time{}, nil
}
