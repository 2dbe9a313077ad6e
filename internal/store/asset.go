package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"flexd/internal/flex"
)

// assetColumns are the columns that scanAsset reads, in its order.
const assetColumns = `id, site_id, external_id, type, power_w, capacity_wh, model, installed_on, serial_number, created_at,
	phases, firmware, heat, discharge, phase`

// columnsOf qualifies a table's columns by its alias in a query.
func columnsOf(alias, columns string) string {
	return alias + "." + strings.Join(strings.Fields(columns), " "+alias+".")
}

func scanAsset(s scanner) (flex.Asset, error) {
	// scanned as a string: a page of assets reads a thousand columns, and this is faster
	var kind string
	var power, capacity sql.Null[int64]
	var heat sql.Null[string]
	var a flex.Asset
	err := s.Scan(
		&a.ID,
		&a.SiteID,
		&a.ExternalID,
		&kind,
		&power,
		&capacity,
		&a.Model,
		&a.InstalledOn,
		&a.SerialNumber,
		instant{&a.CreatedAt},
		&a.Phases,
		&a.Firmware,
		&heat,
		dischargeText{&a.Discharge},
		&a.Phase,
	)

	a.Type = flex.AssetType(kind)
	a.Power, a.Capacity = quantity[flex.Watts](power), quantity[flex.WattHours](capacity)
	if err == nil && heat.Valid {
		a.Heat, err = readHeat(heat.V)
	}

	return a, err
}

// AddAsset stores a new asset and sets its id and its instant.
func (tx *Tx) AddAsset(ctx context.Context, a *flex.Asset) error {
	a.ID, a.CreatedAt = flex.AssetID(tx.newID()), tx.now

	row := append(assetValues(a),
		value{"id", a.ID.Bytes()},
		value{"org_id", tx.org.Bytes()},
		value{"site_id", a.SiteID.Bytes()},
		value{"external_id", a.ExternalID},
		value{"type", string(a.Type)},
		value{"created_at", micros(a.CreatedAt)},
	)
	if err := tx.insert(ctx, "asset", row); err != nil {
		return err
	}

	return tx.touchRegister(ctx)
}

// assetValues are the columns of an asset that may change, and their values.
func assetValues(a *flex.Asset) []value {
	return []value{
		{"power_w", number(a.Power)},
		{"capacity_wh", number(a.Capacity)},
		{"model", a.Model},
		{"installed_on", a.InstalledOn},
		{"serial_number", a.SerialNumber},
		{"phases", a.Phases},
		{"firmware", a.Firmware},

		{"model_key", storedKey(a.Model)},
		{"firmware_key", storedKey(a.Firmware)},
		{"heat", writeHeat(a.Heat)},
		{"discharge", encodeDischarge(&a.Discharge)},
		{"phase", a.Phase},
	}
}

// UpdateAsset replaces the properties of an asset that may change, with its model,
// installation date and serial number. Its schedule is planned again.
func (tx *Tx) UpdateAsset(ctx context.Context, a flex.Asset) error {
	if err := tx.notePower(ctx, a); err != nil {
		return err
	}

	err := tx.update(ctx, "asset", a.ID.Bytes(), assetValues(&a))
	if err != nil {
		return err
	}

	err = tx.touchRegister(ctx)
	if err != nil { // what its readings are checked against may be another
		return err
	}

	if err := tx.markTanks(ctx, []flex.AssetID{a.ID}); err != nil {
		return err
	}

	return tx.MarkDue(ctx, a.ID)
}

// Asset returns an asset of the organisation, or a NotFound failure.
func (tx *Tx) Asset(ctx context.Context, id flex.AssetID) (flex.Asset, error) {
	return readOnce(tx, "asset", id, func() (flex.Asset, error) {
		return one(
			ctx,
			tx.conn,
			flex.AssetMissing,
			scanAsset,
			`SELECT `+assetColumns+` FROM asset WHERE org_id = $1 AND id = $2`,
			tx.org.Bytes(),
			id.Bytes(),
		)
	})
}

// LockedAsset is Asset, and makes other transactions that lock the same asset wait for the end
// of this one.
func (tx *Tx) LockedAsset(
	ctx context.Context,
	id flex.AssetID,
) (flex.Asset, error) {
	return one(
		ctx,
		tx.conn,
		flex.AssetMissing,
		scanAsset,
		`SELECT `+assetColumns+` FROM asset WHERE org_id = $1 AND id = $2`+
			tx.db.d.forUpdate,
		tx.org.Bytes(),
		id.Bytes(),
	)
}

// AssetByExternalID returns the organisation's asset with the vendor's own id, or nil.
func (tx *Tx) AssetByExternalID(
	ctx context.Context,
	external string,
) (*flex.Asset, error) {
	a, err := scanAsset(tx.row(
		ctx,
		`SELECT `+assetColumns+
			` FROM asset WHERE org_id = $1 AND external_id = $2`,
		tx.org.Bytes(),
		external,
	))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}

	return &a, err
}

// AssetsOf returns a site's assets in the order in which they were created.
func (tx *Tx) AssetsOf(
	ctx context.Context,
	site flex.SiteID,
) ([]flex.Asset, error) {
	return readListOnce(tx, "assets", site, func() ([]flex.Asset, error) {
		return rows(
			ctx,
			tx.conn,
			scanAsset,
			`SELECT `+assetColumns+
				` FROM asset WHERE org_id = $1 AND site_id = $2 ORDER BY id`,
			tx.org.Bytes(),
			site.Bytes(),
		)
	})
}

// AssetsEverAt returns the ids of the sites' assets, deleted ones included.
func (tx *Tx) AssetsEverAt(
	ctx context.Context,
	sites []flex.SiteID,
) (map[flex.SiteID][]flex.AssetID, error) {
	assets := map[flex.SiteID][]flex.AssetID{}
	for chunk := range slices.Chunk(sites, ownersChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		err := eachRow(
			ctx,
			tx.conn,
			func(s scanner) error {
				var site flex.SiteID
				var id flex.AssetID
				err := s.Scan(&site, &id)
				assets[site] = append(assets[site], id)

				return err
			},
			`SELECT site_id, id FROM asset WHERE org_id = $1 AND site_id IN `+
				list+
				`
			UNION ALL SELECT site_id, id FROM former_asset WHERE org_id = $1 AND site_id IN `+list+` ORDER BY id`,
			args...,
		)

		if err != nil {
			return nil, err
		}
	}

	return assets, nil
}

// Assets returns a page of the organisation's assets in the order in which they were created,
// and how many there are in all.
func (tx *Tx) Assets(
	ctx context.Context,
	limit, offset int,
) ([]flex.Asset, int, error) {
	total, err := tx.count(ctx, `SELECT count(*) FROM asset WHERE org_id = $1`)
	if err != nil {
		return nil, 0, err
	}

	// The assets before the page are skipped in the index: only those on the page are read.
	page, err := rows(
		ctx,
		tx.conn,
		scanAsset,
		`SELECT `+assetColumns+
			` FROM asset WHERE id IN (SELECT id FROM asset WHERE org_id = $1 ORDER BY id LIMIT $2 OFFSET $3) ORDER BY id`,
		tx.org.Bytes(),
		limit,
		offset,
	)

	return page, total, err
}

// DropAsset deletes an asset. Its readings and its credits stay.
func (tx *Tx) DropAsset(ctx context.Context, id flex.AssetID) error {
	if err := tx.keepName(ctx, id); err != nil {
		return err
	}
	if err := tx.retractDispatches(ctx, true, id); err != nil {
		return err
	}

	if err := tx.removeFromMessages(ctx, id); err != nil {
		return err
	}
	if err := tx.EndDispatches(ctx, true, id); err != nil {
		return err
	}

	if err := tx.touchRegister(ctx); err != nil {
		return err
	}

	model, err := tx.modelKeyOf(ctx, id)
	if err != nil {
		return err
	}

	_, err = tx.exec(
		ctx,
		`INSERT INTO former_asset (id, org_id, site_id, cop11, gone_at, power_w, capacity_wh, type)
		SELECT a.id, a.org_id, a.site_id, COALESCE(m.cop11 AND a.installed_on <> '', FALSE), $3, a.power_w, a.capacity_wh, a.type FROM asset a LEFT JOIN model m ON m.key = $4
		WHERE a.org_id = $1 AND a.id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
		micros(tx.now),
		model,
	)
	if err != nil {
		return err
	}

	if err := tx.markWaiting(ctx, id); err != nil {
		return err
	}
	if err := tx.dropUnheard(ctx, id); err != nil {
		return err
	}

	if err := tx.loadChanged(ctx, id); err != nil {
		return err
	}

	_, err = tx.exec(
		ctx,
		`DELETE FROM asset WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	)

	return err
}
