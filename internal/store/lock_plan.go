package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"flexd/internal/flex"
)

// LockAllToPlan is LockToPlan for the assets of many sites, by one statement for each of its
// steps: the caps, then all sites at which assets are planned together, then all assets, both
// in the order of their ids. One asset with its site after the other would lock the sites in
// the order of their assets, and two who do so would wait for each other. It is NotFound if
// there is none of one of the assets.
func (tx *Tx) LockAllToPlan(
	ctx context.Context,
	assets []flex.AssetID,
) error {
	distinct := slices.Compact(inIDOrder(assets))
	found, err := tx.lockAll(ctx, idList(distinct))
	if err == nil && found < int64(len(distinct)) {
		return flex.Fail(flex.NotFound, flex.AssetMissing)
	}

	return err
}

// LockCapsUnread is LockCaps for who needs nothing of the caps.
func (tx *Tx) LockCapsUnread(ctx context.Context) error {
	if tx.pipe == nil { // of a store with one writer
		return nil
	}

	_, err := rows(
		ctx,
		tx.conn,
		scalar[int],
		`SELECT 1 FROM caps WHERE org_id = $1`+tx.db.d.forUpdate,
		tx.org.Bytes(),
	)

	return err
}

// lockAll locks the assets of a list of ids, and what comes before them, and returns how many
// there are.
func (tx *Tx) lockAll(
	ctx context.Context,
	list string,
) (int64, error) {
	these := ` IN (` + fmt.Sprintf(tx.db.d.idSet, "$2") + `)`
	ofThese := ` FROM asset WHERE org_id = $1 AND id` + these
	if tx.pipe == nil { // of a store with one writer
		var n int64
		err := tx.row(
			ctx,
			`SELECT count(*)`+ofThese,
			tx.org.Bytes(),
			list,
		).Scan(&n)

		return n, err
	}

	statements := []string{
		`SELECT 1 FROM caps WHERE org_id = $1 AND CAST($2 AS json) IS NOT NULL`,
		`SELECT 1 FROM site t WHERE t.org_id = $1 AND t.id IN (SELECT site_id` + ofThese + `) AND ` + plannedTogether + ` ORDER BY t.id`,
		`SELECT 1` + ofThese + ` ORDER BY id`,
		`SELECT 1 FROM session WHERE org_id = $1 AND plugged_out_at IS NULL AND asset_id` + these + ` ORDER BY asset_id`,
	}
	for i := range statements {
		statements[i] += tx.db.d.forUpdate
	}

	found, err := tx.pipe.batch(ctx, statements, tx.org.Bytes(), list)
	if err != nil {
		return 0, err
	}

	return found[2], nil
}

// idList is some ids as the dialect's idSet reads them.
func idList(ids []flex.AssetID) string {
	if len(ids) == 0 {
		return "[]"
	}

	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = hex.EncodeToString(id[:])
	}

	return `["` + strings.Join(words, `","`) + `"]`
}

// LockAssetsOf is AssetsOf, and has other transactions that lock one of the assets wait for
// the end of this one. They are locked in the order of their ids, as by whoever plans them.
func (tx *Tx) LockAssetsOf(
	ctx context.Context,
	site flex.SiteID,
) ([]flex.Asset, error) {
	return rows(
		ctx,
		tx.conn,
		scanAsset,
		`SELECT `+assetColumns+` FROM asset WHERE org_id = $1 AND site_id = $2 ORDER BY id`+
			tx.db.d.forUpdate,
		tx.org.Bytes(),
		site.Bytes(),
	)
}

// SuppliedSites are the sites of assets whose connection was set, in the order of their ids.
func (tx *Tx) SuppliedSites(
	ctx context.Context,
	assets []flex.AssetID,
) ([]flex.SiteID, error) {
	return rows(
		ctx,
		tx.conn,
		scalar[flex.SiteID],
		`SELECT t.id FROM site t WHERE t.org_id = $1 AND t.supply_set AND t.id IN
			(SELECT site_id FROM asset WHERE org_id = $1 AND id IN (`+fmt.Sprintf(tx.db.d.idSet, "$2")+`)) ORDER BY t.id`,
		tx.org.Bytes(),
		idList(assets),
	)
}

// inIDOrder returns ids in their order, in which several statements change many rows, so that
// two transactions never deadlock.
func inIDOrder[Of any](ids []flex.ID[Of]) []flex.ID[Of] {
	ordered := slices.Clone(ids)
	slices.SortFunc(ordered, func(a, b flex.ID[Of]) int {
		return bytes.Compare(a[:], b[:])
	})

	return ordered
}
