package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// SetSupply has a site's connection carry something else from an instant on, whatever was set for
// a time after it.
func (tx *Tx) SetSupply(
	ctx context.Context,
	site flex.SiteID,
	s flex.Supply,
	from time.Time,
) error {
	_, err := tx.exec(
		ctx,
		`UPDATE site SET import_w = $3, export_w = $4, supply_set = TRUE, fuse_ma = $5, fuse_phases = $6 WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		site.Bytes(),
		int64(s.Import),
		int64(s.Export),
		s.Fuse.MilliAmperes(),
		s.Fuse.Phases,
	)

	if err != nil {
		return err
	}

	err = tx.putSupply(ctx, site, s, from, `, from_at = excluded.from_at`)
	if err != nil {
		return err
	}

	if err := tx.MarkTanksAt(ctx, site); err != nil {
		return err
	}

	return tx.touchRegister(ctx)
}

// SetPower has an asset be of another power from an instant on, whatever was set for a time after
// it. What it is charging by is planned again.
func (tx *Tx) SetPower(
	ctx context.Context,
	asset flex.AssetID,
	power flex.Watts,
	from time.Time,
) error {
	before, err := tx.Asset(ctx, asset)
	if err != nil {
		return err
	}

	_, err = tx.exec(
		ctx,
		`UPDATE asset SET power_w = $3 WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		asset.Bytes(),
		int64(power),
	)

	if err != nil {
		return err
	}

	if err := tx.loadChanged(ctx, asset); err != nil {
		return err
	}

	err = tx.putPower(ctx, asset, powerOr0(before.Power), power, from)
	if err != nil {
		return err
	}

	if err := tx.touchRegister(ctx); err != nil {
		return err
	}

	if err := tx.markTanks(ctx, []flex.AssetID{asset}); err != nil {
		return err
	}

	return tx.MarkDue(ctx, asset)
}

// Recorded is a recorded value of a rating, from an instant on.
type Recorded[V any] struct {
	From time.Time // zero: from the beginning
	At   time.Time // when it was recorded; zero: before ratings were dated
	Is   V
}

// Supplies returns the recorded supplies of a site, in the order of recording.
func (tx *Tx) Supplies(
	ctx context.Context,
	site flex.SiteID,
) ([]Recorded[flex.Supply], error) {
	scan := func(s scanner) (Recorded[flex.Supply], error) {
		var r Recorded[flex.Supply]
		r.Is.Set = true
		err := s.Scan(
			instant{&r.From},
			instant{&r.At},
			&r.Is.Import,
			&r.Is.Export,
		)

		return r, err
	}

	return rows(
		ctx,
		tx.conn,
		scan,
		`SELECT from_at, known_at, import_w, export_w FROM supply WHERE org_id = $1 AND site_id = $2 ORDER BY known_at`,
		tx.org.Bytes(),
		site.Bytes(),
	)
}

// Powers returns the recorded powers of an asset, in the order of recording; none if its power
// never changed.
func (tx *Tx) Powers(
	ctx context.Context,
	asset flex.AssetID,
) ([]Recorded[flex.Watts], error) {
	scan := func(s scanner) (Recorded[flex.Watts], error) {
		var r Recorded[flex.Watts]
		err := s.Scan(instant{&r.From}, instant{&r.At}, &r.Is)
		return r, err
	}

	return rows(
		ctx,
		tx.conn,
		scan,
		`SELECT from_at, NULLIF(known_at, 0), power_w FROM asset_power WHERE org_id = $1 AND asset_id = $2 ORDER BY known_at`,
		tx.org.Bytes(),
		asset.Bytes(),
	)
}

// PowersDatedBack returns, of those of the assets whose power changed, the power at each time that
// was recorded for a time before the record, as it was known at an instant; nil where what was
// recorded last for that time was not dated back. The zero time stands for now.
func (tx *Tx) PowersDatedBack(
	ctx context.Context,
	assets []flex.AssetID,
	knownAt time.Time,
) (map[flex.AssetID]flex.History[*flex.Watts], error) {
	powers := map[flex.AssetID]flex.History[*flex.Watts]{}
	return powers, historiesOf(
		ctx,
		tx,
		powers,
		assets,
		knownAt,
		func(s scanner, id *flex.AssetID, f *flex.From[*flex.Watts]) error {
			return s.Scan(id, instant{&f.At}, &f.Is)
		},
		`SELECT asset_id, from_at, CASE WHEN from_at < known_at THEN power_w END FROM asset_power WHERE org_id = $1 AND known_at <= $2 AND asset_id IN `,
	)
}
