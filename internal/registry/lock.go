package registry

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// lockFound finds a site and keeps it from others until the transaction ends, as it is now: it is written whole. One that leaves
// meanwhile is not found.
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

		held, err := tx.LockedSite(ctx, found.ID)
		if flex.KindOf(err) != flex.NotFound {
			return &held, err
		}
	}
}

// lockUser is lockFound for the site of an end user.
func lockUser(
	ctx context.Context,
	tx *store.Tx,
	user string,
) (*flex.Site, error) {
	return lockFound(ctx, tx, func() (*flex.Site, error) { return tx.SiteByUser(ctx, user) })
}

// lockAssetFound finds an asset by the vendor's own id, and keeps it from others as lockFound does a site.
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

		held, err := tx.LockedAsset(ctx, found.ID)
		if flex.KindOf(err) != flex.NotFound {
			return &held, err
		}
	}
}

// lockAssets finds the assets of a site, and keeps them from others until the transaction ends. One that is deleted meanwhile is
// not among them.
func lockAssets(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) ([]flex.Asset, error) {
	found, err := tx.AssetsOf(ctx, site)
	if err != nil {
		return nil, err
	}

	var held []flex.Asset
	for _, a := range found {
		a, err := tx.LockedAsset(ctx, a.ID)
		if flex.KindOf(err) == flex.NotFound {
			continue
		}

		if err != nil {
			return nil, err
		}

		held = append(held, a)
	}

	return held, nil
}
