package registry

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Offboarded is what was deleted with a site.
type Offboarded struct {
	Site   flex.SiteRecord
	Assets []flex.Asset
}

// Offboard ends everything between a site and the service: its enrolments and consents, its
// sessions, its assets and the record of the site itself. Its readings and transactions stay
// under the site's id, which then identifies nobody. While a payment to the user is under way
// it is Malformed. It returns what was deleted.
func (s *Service) Offboard(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
) (flex.SiteRecord, []flex.Asset, error) {
	o, err := write(ctx, s, org, func(tx *store.Tx) (Offboarded, error) {
		return offboard(ctx, tx, id)
	})

	return o.Site, o.Assets, err
}

// checkNoOpenWithdrawal fails while a payment to a site's user is under way: the bank account is deleted
// with the site, and a returned payment would belong to nobody. The site is locked, so that no
// payment begins meanwhile.
func checkNoOpenWithdrawal(ctx context.Context, tx *store.Tx, id flex.SiteID) error {
	under, err := tx.PaymentUnderWay(ctx, id)
	if err == nil && under {
		err = flex.Fail(
			flex.Malformed,
			"a withdrawal of the site's is under way: wait for it to be paid, or have it cancelled",
		)
	}

	return err
}

// offboard is Offboard within a transaction.
func offboard(
	ctx context.Context,
	tx *store.Tx,
	id flex.SiteID,
) (Offboarded, error) {
	var o Offboarded
	if _, err := lockToStop(ctx, tx, id); err != nil {
		return o, err
	}

	var err error
	o.Site, err = tx.SiteRecord(ctx, id)
	if err != nil {
		return o, err
	}

	o.Assets, err = tx.LockAssetsOf(ctx, id)
	if err != nil {
		return o, err
	}

	if err := checkNoOpenWithdrawal(ctx, tx, id); err != nil {
		return o, err
	}

	for _, m := range o.Site.Methods {
		if err := withdraw(ctx, tx, id, m); err != nil {
			return o, err
		}
	}

	if err := stopControl(ctx, tx, o.Assets...); err != nil {
		return o, err
	}

	for _, a := range o.Assets {
		if err := tx.DropAsset(ctx, a.ID); err != nil {
			return o, err
		}
	}

	return o, tx.DropSite(ctx, id)
}
