package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// AssetRegion is an asset with the GSP group of its site, empty where the list of metering
// points names none.
type AssetRegion struct {
	Asset  flex.AssetID
	Name   string // its external id
	Region string
}

// AssetRegions returns where the organisation's assets are.
func (tx *Tx) AssetRegions(ctx context.Context) ([]AssetRegion, error) {
	return rows(ctx, tx.conn, func(s scanner) (AssetRegion, error) {
		var a AssetRegion
		err := s.Scan(&a.Asset, &a.Name, &a.Region)
		return a, err
	}, `SELECT a.id, a.external_id, COALESCE(m.gsp_group, '') FROM asset a JOIN site t ON t.org_id = a.org_id AND t.id = a.site_id
		LEFT JOIN meter m ON m.mpan = t.mpan WHERE a.org_id = $1`, tx.org.Bytes())
}

// RegionEnergy is the energy that the chargers of a GSP group drew in a half-hour by their own
// meters.
type RegionEnergy struct {
	Region string
	At     time.Time
	Energy flex.WattHours
}

// MeteredByRegion returns the energy that the organisation's chargers drew in the half-hours
// of a span, by GSP group, in whole watt-hours. Both engines round down, as the sum is an
// integer before it is divided.
func (tx *Tx) MeteredByRegion(
	ctx context.Context,
	span flex.Span,
) ([]RegionEnergy, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (RegionEnergy, error) {
			var e RegionEnergy
			err := s.Scan(&e.Region, instant{&e.At}, &e.Energy)
			return e, err
		},
		`SELECT COALESCE(m.gsp_group, ''), r.at, CAST(SUM(r.value) AS BIGINT) / 1000 FROM reading r
			JOIN asset a ON a.id = r.asset_id JOIN site t ON t.org_id = a.org_id AND t.id = a.site_id LEFT JOIN meter m ON m.mpan = t.mpan
		WHERE r.at >= $2 AND r.at < $3 AND r.label = $4 AND a.org_id = $1
		GROUP BY COALESCE(m.gsp_group, ''), r.at ORDER BY r.at, 1`,
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
		labelNumbers[flex.ChargerEnergy],
	)
}

// Extent is from when to when there are records of a kind; both zero if there is none.
type Extent struct {
	Kind   string
	Oldest time.Time
	Newest time.Time
}

// extents are the kinds of records that Extents looks at, with how the ends are found by an index.
var extents = []struct{ kind, oldest, newest string }{
	{
		"readings",
		`SELECT r.at FROM reading r JOIN asset a ON a.id = r.asset_id WHERE a.org_id = $1 ORDER BY r.at LIMIT 1`,
		`SELECT r.at FROM reading r JOIN asset a ON a.id = r.asset_id WHERE a.org_id = $1 ORDER BY r.at DESC LIMIT 1`,
	},
	{
		"sessions",
		`SELECT plugged_in_at FROM session WHERE org_id = $1 AND plugged_in_at > 0 ORDER BY plugged_in_at LIMIT 1`,
		`SELECT plugged_in_at FROM session WHERE org_id = $1 AND plugged_in_at > 0 ORDER BY plugged_in_at DESC LIMIT 1`,
	},
	{"instructions", `SELECT to_at FROM instruction WHERE org_id = $1 ORDER BY to_at LIMIT 1`,
		`SELECT to_at FROM instruction WHERE org_id = $1 ORDER BY to_at DESC LIMIT 1`},
	{"offers", `SELECT made_at FROM offer WHERE org_id = $1 ORDER BY id LIMIT 1`,
		`SELECT made_at FROM offer WHERE org_id = $1 ORDER BY id DESC LIMIT 1`},
}

// Extents returns since when there are records of the organisation, by kind.
func (tx *Tx) Extents(ctx context.Context) ([]Extent, error) {
	var all []Extent
	for _, x := range extents {
		oldest, err := tx.firstInstant(ctx, x.oldest)
		if err != nil {
			return nil, err
		}

		newest, err := tx.firstInstant(ctx, x.newest)
		if err != nil {
			return nil, err
		}

		all = append(all, Extent{x.kind, oldest, newest})
	}

	return all, nil
}

// firstInstant returns the one instant that a query finds, or zero.
func (tx *Tx) firstInstant(
	ctx context.Context,
	query string,
) (time.Time, error) {
	found, err := rows(ctx, tx.conn, func(s scanner) (time.Time, error) {
		var at time.Time
		err := s.Scan(instant{&at})
		return at, err
	}, query, tx.org.Bytes())
	if err != nil || len(found) == 0 {
		return time.Time{}, err
	}

	return found[0], nil
}
