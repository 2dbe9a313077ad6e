package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
)

// addSupply records what a site's connection can carry from now on. The later of two changes
// at one instant counts.
func (tx *Tx) addSupply(ctx context.Context, site flex.SiteID, s flex.Supply) error {
	_, err := tx.exec(ctx, `INSERT INTO supply (site_id, org_id, import_w, export_w, known_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (site_id, known_at) DO UPDATE SET import_w = excluded.import_w, export_w = excluded.export_w`,
		site.Bytes(), tx.org.Bytes(), int64(s.Import), int64(s.Export), micros(tx.now))
	return err
}

// SupplyOf returns what the connections of the sites can carry, also of sites that are gone,
// as it was known at an instant; the zero time stands for now. Each of the sites is in it: one
// whose capacity was never told has the default.
func (tx *Tx) SupplyOf(ctx context.Context, sites []flex.SiteID, knownAt time.Time) (map[flex.SiteID]flex.Supply, error) {
	if knownAt.IsZero() {
		knownAt = tx.now
	}

	supplies := make(map[flex.SiteID]flex.Supply, len(sites))
	for chunk := range slices.Chunk(sites, ownersChunk) {
		for _, id := range chunk {
			supplies[id] = flex.DefaultSupply
		}

		list, args := in([]any{tx.org.Bytes(), micros(knownAt)}, chunk)

		type line struct {
			site flex.SiteID
			flex.Supply
		}

		scan := func(s scanner) (l line, err error) {
			err = s.Scan(&l.site, &l.Import, &l.Export)
			return l, err
		}

		lines, err := rows(ctx, tx.conn, scan, `SELECT site_id, import_w, export_w FROM supply
			WHERE org_id = $1 AND known_at <= $2 AND site_id IN `+list+` ORDER BY known_at`, args...)
		if err != nil {
			return nil, err
		}

		for _, l := range lines {
			supplies[l.site] = l.Supply
		}
	}

	return supplies, nil
}

var _ = law("a supply's capacity is within its limits, and a site has the newest of its own",
	`SELECT site_id AS what FROM supply WHERE import_w < 1000 OR import_w > 10000000 OR export_w < 0 OR export_w > 10000000
	 UNION ALL
	 SELECT s.id AS what FROM site s JOIN supply u ON u.site_id = s.id
	 WHERE u.known_at = (SELECT max(known_at) FROM supply WHERE site_id = s.id) AND (u.import_w <> s.import_w OR u.export_w <> s.export_w)`)

// supplyColumn is the supply of a site's record in one column, null where it is the default.
var supplyColumn = fmt.Sprintf(`CASE WHEN s.import_w <> %d OR s.export_w <> %d THEN s.import_w || ',' || s.export_w END`,
	flex.DefaultSupply.Import, flex.DefaultSupply.Export)

// readSupply reads supplyColumn.
func readSupply(text sql.NullString) (flex.Supply, error) {
	if !text.Valid {
		return flex.DefaultSupply, nil
	}
	var s flex.Supply
	_, err := fmt.Sscanf(text.String, "%d,%d", &s.Import, &s.Export)
	return s, err
}
