package registry

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// lockFound finds a site, locks it until the transaction ends, and returns its current record,
// since records are written as a whole. A site that is deleted meanwhile is not found.
func lockFound(
	ctx context.Context,
	tx *store.Tx,
	find func() (*flex.Site, error),
) (*flex.Site, error) {
	for {
		found, err := find()
		if err != nil || found == nil {
			return nil, err
		}

		locked, err := tx.LockedSite(ctx, found.ID)
		if flex.KindOf(err) != flex.NotFound {
			return &locked, err
		}
	}
}

// lockUser is lockFound by the client's id of an end user.
func lockUser(
	ctx context.Context,
	tx *store.Tx,
	user string,
) (*flex.Site, error) {
	return lockFound(ctx, tx, func() (*flex.Site, error) { return tx.SiteByUser(ctx, user) })
}

// lockAssetFound finds an asset by the vendor's own id, and locks it as lockFound does a site.
func lockAssetFound(
	ctx context.Context,
	tx *store.Tx,
	external string,
) (*flex.Asset, error) {
	for {
		found, err := tx.AssetByExternalID(ctx, external)
		if err != nil || found == nil {
			return nil, err
		}

		locked, err := tx.LockedAsset(ctx, found.ID)
		if flex.KindOf(err) != flex.NotFound {
			return &locked, err
		}
	}
}

// lockSite locks a site until the transaction ends, and returns its current record. The
// organisation is locked before its sites, and the sites before their assets, because every
// change of a site or an asset increments the version of the organisation's register.
func lockSite(
	ctx context.Context,
	tx *store.Tx,
	id flex.SiteID,
) (flex.Site, error) {
	if err := tx.LockOrg(ctx); err != nil {
		return flex.Site{}, err
	}
	return tx.LockedSite(ctx, id)
}

// lockToStop is lockSite for a change that may end the control of assets. The caps are locked
// before the site, in the same order as by planners, because power that is freed marks them.
func lockToStop(
	ctx context.Context,
	tx *store.Tx,
	id flex.SiteID,
) (flex.Site, error) {
	if err := tx.LockOrg(ctx); err != nil {
		return flex.Site{}, err
	}
	if err := tx.LockCapsUnread(ctx); err != nil {
		return flex.Site{}, err
	}

	return tx.LockedSite(ctx, id)
}

// lockAsset locks an asset until the transaction ends, with its site (by lockSite or
// lockToStop) and the site's other assets in the order of their ids, because a change of it
// has those planned again too. It returns the asset's current record.
func lockAsset(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
	lock func(context.Context, *store.Tx, flex.SiteID) (flex.Site, error),
) (flex.Asset, error) {
	found, err := tx.Asset(ctx, id)
	if err != nil {
		return found, err
	}

	_, err = lock(ctx, tx, found.SiteID)
	if err != nil && flex.KindOf(err) != flex.NotFound { // NotFound: it was offboarded meanwhile
		return found, err
	}

	all, err := tx.LockAssetsOf(ctx, found.SiteID)
	if err != nil {
		return found, err
	}

	for _, a := range all {
		if a.ID == id {
			return a, nil
		}
	}

	return flex.Asset{}, flex.Fail(flex.NotFound, flex.AssetMissing)
}
