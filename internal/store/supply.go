package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"time"

	"flexd/internal/flex"
)

// addSupply records the capacity of a site's connection from now on. The first one counts from
// the beginning, unless something of the site was settled on the default: a change of capacity
// changes no half-hour that was settled. Of two changes at one instant the later counts.
func (tx *Tx) addSupply(
	ctx context.Context,
	site flex.SiteID,
	s flex.Supply,
) error {
	from, err := tx.countsFrom(
		ctx,
		`SELECT EXISTS (SELECT 1 FROM supply WHERE org_id = $1 AND site_id = $2)
		OR EXISTS (SELECT 1 FROM deviation WHERE org_id = $1 AND site_id = $2)
		OR EXISTS (SELECT 1 FROM reckoning WHERE org_id = $1 AND site_id = $2 AND posted > 0)`,
		site.Bytes(),
	)
	if err != nil {
		return err
	}

	return tx.putSupply(ctx, site, s, from, ``)
}

// putSupply stores a supply from an instant on. It replaces one from the same instant, or from
// a later one if the clock was set back.
func (tx *Tx) putSupply(
	ctx context.Context,
	site flex.SiteID,
	s flex.Supply,
	from time.Time,
	set string,
) error {
	_, err := tx.exec(
		ctx,
		`INSERT INTO supply (site_id, org_id, import_w, export_w, from_at, known_at) VALUES ($1, $2, $3, $4, $5,
			(SELECT CASE WHEN max(k.known_at) > $6 THEN max(k.known_at) ELSE $6 END FROM supply k WHERE k.site_id = $1))
		ON CONFLICT (site_id, known_at) DO UPDATE SET import_w = excluded.import_w, export_w = excluded.export_w`+set,
		site.Bytes(),
		tx.org.Bytes(),
		int64(s.Import),
		int64(s.Export),
		micros(from),
		micros(tx.now),
	)

	return err
}

// countsFrom returns from when on a change counts: from now, or from the beginning (the zero
// time) if the query finds no earlier record.
func (tx *Tx) countsFrom(
	ctx context.Context,
	query string,
	id []byte,
) (time.Time, error) {
	var before bool
	err := tx.row(ctx, query, tx.org.Bytes(), id).Scan(&before)
	if !before {
		return time.Time{}, err
	}

	return tx.now, err
}

// SupplyOf returns the history of the supplies of sites, deleted ones included, as it was
// known at an instant; the zero time means now. Every site is in the result: one whose
// capacity was never set has the default.
func (tx *Tx) SupplyOf(
	ctx context.Context,
	sites []flex.SiteID,
	knownAt time.Time,
) (map[flex.SiteID]flex.History[flex.Supply], error) {
	supplies := make(map[flex.SiteID]flex.History[flex.Supply], len(sites))
	for _, id := range sites {
		supplies[id] = flex.Always(flex.DefaultSupply)
	}

	return supplies, historiesOf(
		ctx,
		tx,
		supplies,
		sites,
		knownAt,
		func(s scanner, id *flex.SiteID, f *flex.From[flex.Supply]) error {
			f.Is.Set = true
			return s.Scan(id, instant{&f.At}, &f.Is.Import, &f.Is.Export)
		},
		`SELECT site_id, from_at, import_w, export_w FROM supply WHERE org_id = $1 AND known_at <= $2 AND site_id IN `,
	)
}

// orDefault returns the supply of a new site: the default if none is given. A supply that is
// not the default is marked as set.
func orDefault(s flex.Supply) flex.Supply {
	if s == (flex.Supply{}) {
		return flex.DefaultSupply
	}
	s.Set = s.Set || s != flex.DefaultSupply

	return s
}

// notePower records an asset's power if it differs from the recorded one.
func (tx *Tx) notePower(ctx context.Context, a flex.Asset) error {
	before, err := tx.Asset(ctx, a.ID)
	if err != nil {
		return err
	}

	was, is := powerOr0(before.Power), powerOr0(a.Power)
	if was == is {
		return nil
	}

	return tx.addPower(ctx, a.ID, was, is)
}

func powerOr0(power *flex.Watts) flex.Watts {
	if power == nil {
		return 0
	}
	return *power
}

// addPower records an asset's new power from now on, and the earlier one too if this is the
// first change. If the power was not known before, and nothing of the asset was settled, the
// new power counts from the beginning.
func (tx *Tx) addPower(
	ctx context.Context,
	asset flex.AssetID,
	before, after flex.Watts,
) error {
	from, err := tx.countsFrom(
		ctx,
		`SELECT EXISTS (SELECT 1 FROM asset_power WHERE org_id = $1 AND asset_id = $2)
		OR EXISTS (SELECT 1 FROM flex_event WHERE org_id = $1 AND asset_id = $2 AND version > 0)
		OR EXISTS (SELECT 1 FROM reckoning WHERE org_id = $1 AND asset_id = $2 AND posted > 0)`,
		asset.Bytes(),
	)
	if err != nil || before == 0 && from.IsZero() {
		return err
	}

	return tx.putPower(ctx, asset, before, after, tx.now)
}

// putPower stores an asset's power from an instant on, and the earlier one if this is the
// first change. It replaces one from the same instant, or from a later one if the clock was
// set back.
func (tx *Tx) putPower(
	ctx context.Context,
	asset flex.AssetID,
	before, after flex.Watts,
	from time.Time,
) error {
	_, err := tx.exec(
		ctx,
		`INSERT INTO asset_power (asset_id, org_id, power_w, from_at, known_at) VALUES ($1, $2, $3, NULL, 0)
		ON CONFLICT (asset_id, known_at) DO NOTHING`,
		asset.Bytes(),
		tx.org.Bytes(),
		int64(before),
	)
	if err != nil {
		return err
	}

	_, err = tx.exec(
		ctx,
		`INSERT INTO asset_power (asset_id, org_id, power_w, from_at, known_at) VALUES ($1, $2, $3, $4,
			(SELECT CASE WHEN max(k.known_at) > $5 THEN max(k.known_at) ELSE $5 END FROM asset_power k WHERE k.asset_id = $1))
		ON CONFLICT (asset_id, known_at) DO UPDATE SET power_w = excluded.power_w, from_at = excluded.from_at`,
		asset.Bytes(),
		tx.org.Bytes(),
		int64(after),
		micros(from),
		micros(tx.now),
	)

	return err
}

// PowersOf returns the history of the powers of those of the assets whose power changed, as it
// was known at an instant; the zero time means now.
func (tx *Tx) PowersOf(
	ctx context.Context,
	assets []flex.AssetID,
	knownAt time.Time,
) (map[flex.AssetID]flex.History[flex.Watts], error) {
	powers := map[flex.AssetID]flex.History[flex.Watts]{}
	return powers, historiesOf(
		ctx,
		tx,
		powers,
		assets,
		knownAt,
		func(s scanner, id *flex.AssetID, f *flex.From[flex.Watts]) error {
			return s.Scan(id, instant{&f.At}, &f.Is)
		},
		`SELECT asset_id, from_at, power_w FROM asset_power WHERE org_id = $1 AND known_at <= $2 AND asset_id IN `,
	)
}

// historiesOf adds the rows that a query finds for the ids to the histories, as they were
// known at an instant.
func historiesOf[Of, V any](ctx context.Context, tx *Tx, to map[flex.ID[Of]]flex.History[V], ids []flex.ID[Of], knownAt time.Time,
	scan func(scanner, *flex.ID[Of], *flex.From[V]) error, query string) error {
	if knownAt.IsZero() {
		knownAt = tx.now
	}

	for chunk := range slices.Chunk(ids, ownersChunk) {
		list, args := in([]any{tx.org.Bytes(), micros(knownAt)}, chunk)
		err := eachRow(
			ctx,
			tx.conn,
			func(s scanner) error {
				var id flex.ID[Of]
				var f flex.From[V]
				err := scan(s, &id, &f)
				to[id] = to[id].Then(f.At, f.Is)

				return err
			},
			query+list+` ORDER BY known_at`,
			args...,
		)
		if err != nil {
			return err
		}
	}

	return nil
}

var (
	_ = law("a supply's capacity is within its limits, and a site has the newest of its own",
		`SELECT site_id AS what FROM supply WHERE import_w < 1000 OR import_w > 10000000 OR export_w < 0 OR export_w > 10000000
		 UNION ALL
		 SELECT s.id AS what FROM site s JOIN supply u ON u.site_id = s.id
		 WHERE u.known_at = (SELECT max(known_at) FROM supply WHERE site_id = s.id)
		 	AND (u.import_w <> s.import_w OR u.export_w <> s.export_w OR NOT s.supply_set)`)
	_ = law(
		"a site's import capacity is what its main fuse carries, where it was given as one",
		`SELECT id AS what FROM site WHERE fuse_ma <> 0 AND (NOT supply_set OR import_w <> (fuse_ma * fuse_phases * `+phaseVoltage+` + 500) / 1000)`,
	)
	_ = law(
		"an asset has the newest of its powers",
		`SELECT a.id AS what FROM asset a JOIN asset_power p ON p.asset_id = a.id
		WHERE p.known_at = (SELECT max(known_at) FROM asset_power WHERE asset_id = a.id) AND p.power_w <> COALESCE(a.power_w, 0)`,
	)
	_ = law(
		"a changed capacity counts for no half-hour before it: each settled one is held to the capacity of its time, or to one that was dated back to it",
		`SELECT d.site_id AS what
		FROM deviation d WHERE EXISTS (SELECT 1 FROM supply u WHERE u.site_id = d.site_id AND u.from_at > d.at)
			AND d.import_wh <> (COALESCE((SELECT b.import_w FROM supply b WHERE `+ofItsTime+` ORDER BY b.known_at DESC LIMIT 1), `+defaultImport+`) + 1) / 2
			AND NOT EXISTS (SELECT 1 FROM supply g WHERE g.site_id = d.site_id AND g.from_at <= d.at AND g.from_at < g.known_at
				AND (d.import_wh = (`+defaultImport+` + 1) / 2 OR EXISTS (SELECT 1 FROM supply b WHERE `+ofItsTime+` AND d.import_wh = (b.import_w + 1) / 2)))
			AND NOT EXISTS (SELECT 1 FROM asset a WHERE a.id = d.meter_id) AND NOT EXISTS (SELECT 1 FROM former_asset f WHERE f.id = d.meter_id)
			AND NOT EXISTS (SELECT 1 FROM flex_event e WHERE e.org_id = d.org_id AND e.asset_id = d.meter_id)`, // of an erased site this alone is left
	)
)

// ofItsTime is the condition that a capacity b was in force at the time of a settled half-hour
// d.
const ofItsTime = `b.site_id = d.site_id AND (b.from_at IS NULL OR b.from_at <= d.at)`

// defaultImport is the import capacity that a site has by default, in W.
var defaultImport = strconv.Itoa(int(flex.DefaultSupply.Import))

// phaseVoltage is flex.PhaseVoltage as SQL.
var phaseVoltage = strconv.Itoa(flex.PhaseVoltage)

// supplyColumn is the supply of a site's record in one column, null where it is the default.
const supplyColumn = `CASE WHEN s.supply_set THEN s.import_w || ',' || s.export_w || ',' || s.fuse_ma || ',' || s.fuse_phases END`

func readSupply(text sql.NullString) (flex.Supply, error) {
	if !text.Valid {
		return flex.DefaultSupply, nil
	}
	s := flex.Supply{Set: true}
	fuse := int64(0)
	_, err := fmt.Sscanf(
		text.String,
		"%d,%d,%d,%d",
		&s.Import,
		&s.Export,
		&fuse,
		&s.Fuse.Phases,
	)

	s.Fuse.Amperes = float64(fuse) / 1000

	return s, err
}
