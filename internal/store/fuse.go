package store

import (
	"bytes"
	"context"
	"database/sql"
	"slices"
	"time"

	"flexd/internal/flex"
)

// ofSite is the condition that a session is of an asset at site $2.
const ofSite = `s.asset_id IN (SELECT id FROM asset WHERE org_id = $1 AND site_id = $2)`

// LockSite has other transactions that lock the same site wait for the end of this one: whoever
// plans what is there together locks the site before its assets, as LockToPlan says.
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
	found, err := tx.loads(ctx, ` AND `+ofSite, site.Bytes())
	slices.SortFunc(found, func(a, b Load) int {
		return bytes.Compare(a.AssetID[:], b.AssetID[:])
	})

	return found, err
}

// PlannedAt returns what is plugged in at a site and has a schedule, in the order of the assets.
func (tx *Tx) PlannedAt(
	ctx context.Context,
	site flex.SiteID,
) ([]ScheduledAsset, error) {
	return tx.planned(
		ctx,
		0,
		ofSite+` ORDER BY s.asset_id`,
		tx.org.Bytes(),
		site.Bytes(),
	)
}

// FreedAt returns what was freed at a site while it was plugged in and has not left, and may have been planned to discharge, in the order
// of the assets. It includes those that cannot be read.
func (tx *Tx) FreedAt(
	ctx context.Context,
	site flex.SiteID,
) ([]ScheduledAsset, error) {
	return tx.plannedFreed(
		ctx,
		`c.discharge IS NOT NULL AND `+ofSite+` ORDER BY s.asset_id`,
		tx.org.Bytes(),
		site.Bytes(),
	)
}

// EachPlannedAt is PlannedAt with those that cannot be read among them.
func (tx *Tx) EachPlannedAt(
	ctx context.Context,
	site flex.SiteID,
) ([]ScheduledAsset, error) {
	return tx.plannedEach(
		ctx,
		0,
		ofSite+` ORDER BY s.asset_id`,
		tx.org.Bytes(),
		site.Bytes(),
	)
}

// MarkAt has assets that are plugged in planned again at an instant, as MarkDue does at once; what
// is to be planned sooner stays so.
func (tx *Tx) MarkAt(
	ctx context.Context,
	at time.Time,
	assets ...flex.AssetID,
) error {
	for chunk := range slices.Chunk(inIDOrder(assets), outboxChunk) {
		ids, args := in([]any{tx.org.Bytes(), micros(at)}, chunk)
		_, err := tx.exec(
			ctx,
			`UPDATE session SET due_at = $2, due_for = 'inputs' WHERE org_id = $1 AND plugged_out_at IS NULL
			AND event_id IS NOT NULL AND (due_for IS NULL OR due_for <> 'inputs' OR due_at > $2) AND asset_id IN `+ids,
			args...,
		)
		if err != nil {
			return err
		}
	}

	return nil
}

// FusedSite is a site with assets that charge, or several batteries, whose main fuse was set.
type FusedSite struct {
	ID       flex.SiteID
	Fuse     flex.Watts
	Phases   int  // of a main fuse in amperes that it was given as; 0 for none
	Chargers int  // of the assets that charge, plugged in or not
	Heats    bool // it has a hot-water tank or a heat pump
	Last     Load // what the last of the assets that charge can draw, whatever is plugged in: its power and wiring
	// the home batteries, in the order of their ids
	Batteries []flex.AssetID
	Assets    []flex.Asset // all, in the order of their ids: ids and types alone
}

// FusedSites returns the sites of assets that share a main fuse which was set, in the order of their ids: those of the
// assets, or if none is named all of the organisation's at which something is plugged in.
func (tx *Tx) FusedSites(
	ctx context.Context,
	assets ...flex.AssetID,
) ([]FusedSite, error) {
	if len(assets) == 0 {
		return tx.fusedSites(ctx, nil)
	}

	known := map[flex.SiteID]bool{}

	var sites []FusedSite
	for chunk := range slices.Chunk(assets, outboxChunk) {
		some, err := tx.fusedSites(ctx, chunk)
		if err != nil {
			return nil, err
		}

		for _, s := range some {
			if !known[s.ID] {
				known[s.ID] = true
				sites = append(sites, s)
			}
		}
	}

	slices.SortFunc(sites, func(a, b FusedSite) int {
		return bytes.Compare(a.ID[:], b.ID[:])
	})

	return sites, nil
}

// fusedAsset is an asset of a fused site.
type fusedAsset struct {
	FusedSite
	asset flex.AssetID
	kind  flex.AssetType
	power sql.NullInt64
	wired flex.Wiring
}

func scanFusedAsset(s scanner) (fusedAsset, error) {
	var r fusedAsset
	err := s.Scan(
		&r.ID,
		&r.Fuse,
		&r.Phases,
		&r.asset,
		&r.kind,
		&r.power,
		&r.wired.Phases,
		&r.wired.Phase,
	)

	return r, err
}

// join counts an asset of the site.
func (s *FusedSite) join(r *fusedAsset) {
	s.Assets = append(s.Assets, flex.Asset{ID: r.asset, Type: r.kind})
	switch {
	case r.kind == flex.Battery:
		s.Batteries = append(s.Batteries, r.asset)

	case r.kind.Charges():
		power := flex.Watts(r.power.Int64)
		r.wired.Phases = flex.PhasesOf(r.wired.Phases, &power)
		s.Chargers++
		s.Last = Load{AssetID: r.asset, Power: power, Assumed: power <= 0, Wired: r.wired}

	case r.kind.Heats():
		s.Heats = true
	}
}

// fusedSites is FusedSites for as many assets as one statement names.
func (tx *Tx) fusedSites(
	ctx context.Context,
	assets []flex.AssetID,
) ([]FusedSite, error) {
	args := []any{tx.org.Bytes()}
	which := `SELECT o.site_id FROM session s JOIN asset o ON o.id = s.asset_id
			WHERE s.org_id = $1 AND s.plugged_out_at IS NULL`
	if len(assets) > 0 {
		which, args = in(args, assets)
		which = `SELECT o.site_id FROM asset o WHERE o.org_id = $1 AND o.id IN ` + which
	}

	found, err := rows(
		ctx,
		tx.conn,
		scanFusedAsset,
		`SELECT t.id, t.import_w, t.fuse_phases, a.id, a.type, a.power_w, a.phases, a.phase FROM site t
			JOIN asset a ON a.org_id = t.org_id AND a.site_id = t.id
		WHERE t.org_id = $1 AND t.supply_set AND t.import_w > 0 AND t.id IN (`+which+`)
		ORDER BY t.id, a.id`,
		args...,
	)

	var sites []FusedSite
	for i := range found {
		r := &found[i]
		if n := len(sites); n == 0 || sites[n-1].ID != r.ID {
			sites = append(sites, r.FusedSite)
		}

		sites[len(sites)-1].join(r)
	}

	return slices.DeleteFunc(sites, func(s FusedSite) bool {
		return s.Chargers == 0 && len(s.Batteries) < 2
	}), err
}

// FusedCar is an asset that charges at a site whose main fuse was set.
type FusedCar struct {
	AssetID flex.AssetID
	Site    flex.SiteID
	Fuse    flex.Watts // what the site's import can carry
	Phases  int        // of a main fuse in amperes that it was given as; 0 for none
	Wired   flex.Wiring
}

// FusedCars returns what is plugged in and charges at the organisation's sites whose main fuse was set, site by site.
func (tx *Tx) FusedCars(ctx context.Context) ([]FusedCar, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (FusedCar, error) {
			var c FusedCar
			var power sql.NullInt64
			err := s.Scan(
				&c.AssetID,
				&c.Site,
				&c.Fuse,
				&c.Phases,
				&c.Wired.Phases,
				&c.Wired.Phase,
				&power,
			)
			own := flex.Watts(power.Int64)
			c.Wired.Phases = flex.PhasesOf(c.Wired.Phases, &own)

			return c, err
		},
		`SELECT a.id, t.id, t.import_w, t.fuse_phases, a.phases, a.phase, a.power_w FROM site t
			JOIN asset a ON a.org_id = t.org_id AND a.site_id = t.id
			JOIN session s ON s.org_id = a.org_id AND s.asset_id = a.id AND s.plugged_out_at IS NULL
		WHERE t.org_id = $1 AND t.supply_set AND t.import_w > 0 ORDER BY t.id, a.id`,
		tx.org.Bytes(),
	)
}
