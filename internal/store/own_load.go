package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// Steered returns the batteries, tanks and heat pumps of a site that are planned: those under
// control of which it is known what they can draw.
func (tx *Tx) Steered(
	ctx context.Context,
	site flex.SiteID,
) (map[flex.AssetID]bool, error) {
	ids, err := rows(
		ctx,
		tx.conn,
		scalar[flex.AssetID],
		`SELECT a.id FROM asset a LEFT JOIN model m ON m.key = `+modelKeySQL+`
		WHERE a.org_id = $1 AND a.site_id = $2 AND `+controlled+`
			AND (a.type IN (`+heatTypes+`) AND a.power_w > 0
				OR a.type = 'battery' AND COALESCE(a.power_w, m.power_w, 0) > 0 AND COALESCE(a.capacity_wh, m.capacity_wh, 0) > 0)`,
		tx.org.Bytes(),
		site.Bytes(),
	)

	steered := map[flex.AssetID]bool{}
	for _, id := range ids {
		steered[id] = true
	}

	return steered, err
}

// FormerAsset is an asset that was taken away.
type FormerAsset struct {
	ID     flex.AssetID
	Type   flex.AssetType // empty if it is not known
	GoneAt time.Time
}

// FormerAssets returns what was taken away from a site since an instant, in the order of the ids.
func (tx *Tx) FormerAssets(
	ctx context.Context,
	site flex.SiteID,
	since time.Time,
) ([]FormerAsset, error) {
	scan := func(s scanner) (FormerAsset, error) {
		var f FormerAsset
		err := s.Scan(
			&f.ID,
			&f.Type,
			instant{&f.GoneAt},
		)

		return f, err
	}

	return rows(
		ctx,
		tx.conn,
		scan,
		`SELECT id, type, gone_at FROM former_asset WHERE org_id = $1 AND site_id = $2 AND gone_at > $3 ORDER BY id`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(since),
	)
}
