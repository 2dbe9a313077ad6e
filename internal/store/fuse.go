package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// ofSite is the condition that a session is of an asset at site $2.
const ofSite = `s.asset_id IN (SELECT id FROM asset WHERE org_id = $1 AND site_id = $2)`

// LockSite has other transactions that lock the same site wait for the end of this one: whoever
// plans what shares a main fuse locks the site first.
func (tx *Tx) LockSite(ctx context.Context, id flex.SiteID) error {
	_, err := rows(
		ctx,
		tx.conn,
		scalar[int],
		`SELECT 1 FROM site WHERE org_id = $1 AND id = $2`+tx.db.d.forUpdate,
		tx.org.Bytes(),
		id.Bytes(),
	)

	return err
}

// SiteLoads returns what is plugged in at a site, as Loads does, in the order of the assets.
func (tx *Tx) SiteLoads(ctx context.Context, site flex.SiteID) ([]Load, error) {
	return tx.loads(ctx, ` AND `+ofSite+` ORDER BY s.asset_id`, site.Bytes())
}

// PlannedAt returns what is plugged in at a site and has a schedule, in the order of the assets.
func (tx *Tx) PlannedAt(
	ctx context.Context,
	site flex.SiteID,
) ([]Planned, error) {
	return tx.planned(
		ctx,
		0,
		ofSite+` ORDER BY s.asset_id`,
		tx.org.Bytes(),
		site.Bytes(),
	)
}

// MarkAt has assets that are plugged in planned anew at an instant, as MarkDue does at once; what
// is to be planned sooner stays so.
func (tx *Tx) MarkAt(
	ctx context.Context,
	at time.Time,
	assets ...flex.AssetID,
) error {
	if len(assets) == 0 {
		return nil
	}

	ids, args := in([]any{tx.org.Bytes(), micros(at)}, assets)
	_, err := tx.exec(
		ctx,
		`UPDATE session SET due_at = $2, due_for = 'inputs' WHERE org_id = $1 AND plugged_out_at IS NULL
		AND event_id IS NOT NULL AND (due_for IS NULL OR due_for <> 'inputs' OR due_at > $2) AND asset_id IN `+ids,
		args...,
	)

	return err
}
