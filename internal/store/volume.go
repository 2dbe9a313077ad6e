package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

// Points returns the organisation's metering points whose time with it meets the span, by MPAN
// and then by time.
func (tx *Tx) Points(ctx context.Context, span flex.Span) ([]flex.MeteringPoint, error) {
	points, err := rows(
		ctx,
		tx.conn,
		tx.scanPoint,
		`SELECT r.mpan, r.site_id, r.from_at, r.to_at,
			EXISTS (SELECT 1 FROM enrolment e WHERE e.site_id = r.site_id AND e.state = 'enrolled'),
			m.mpan, m.import, m.energised, m.half_hourly, m.domestic, m.supplier_mpid, m.supplier_name, m.gsp_group
		FROM registration r LEFT JOIN meter m ON m.mpan = r.mpan
		WHERE r.org_id = $1 AND r.from_at < $2 AND (r.to_at IS NULL OR r.to_at > $3) ORDER BY r.from_at`,
		tx.org.Bytes(),
		micros(span.To),
		micros(span.From),
	)

	slices.SortStableFunc(points, func(a, b flex.MeteringPoint) int {
		return cmp.Compare(a.MPAN, b.MPAN)
	})

	return points, err
}

func (c conn) scanPoint(s scanner) (flex.MeteringPoint, error) {
	var listed string
	var mpid, name, gsp sql.NullString
	var imports, energised, halfHourly, domestic sql.NullBool

	var p flex.MeteringPoint
	err := s.Scan(
		opened(c, personMPAN, &p.MPAN),
		&p.Site,
		instant{&p.From},
		instant{&p.To},
		&p.Enrolled,
		opened(c, personMPAN, &listed),
		&imports,
		&energised,
		&halfHourly,
		&domestic,
		&mpid,
		&name,
		&gsp,
	)

	if listed != "" {
		p.Meter = &flex.Meter{
			MPAN:         listed,
			Import:       imports.Bool,
			Energised:    energised.Bool,
			HalfHourly:   halfHourly.Bool,
			Domestic:     domestic.Bool,
			SupplierMPID: mpid.String,
			SupplierName: name.String,
			GSPGroup:     gsp.String,
		}
	}

	return p, err
}

// Volume is what was delivered at a site in a half-hour, as it was settled last. More import
// is positive.
type Volume struct {
	Site flex.SiteID
	At   time.Time
	// by the boundary's meter, or by those of assets where that settled nothing
	Metered   flex.WattHours
	Delivered flex.WattHours // by all meters of the site
}

// Volumes returns what was delivered at sites in the span, by site and then by time.
func (tx *Tx) Volumes(
	ctx context.Context,
	sites []flex.SiteID,
	span flex.Span,
) ([]Volume, error) {
	if len(sites) == 0 {
		return nil, nil
	}

	scan := func(s scanner) (Volume, error) {
		var v Volume
		err := s.Scan(&v.Site, instant{&v.At}, &v.Metered, &v.Delivered)
		return v, err
	}

	list, args := in(
		[]any{
			tx.org.Bytes(),
			micros(span.From),
			micros(span.To),
			flex.AssetID{}.Bytes(),
		},
		sites,
	)

	return rows(ctx, tx.conn, scan, `SELECT site_id, at,
			CAST(COALESCE(SUM(CASE WHEN meter_id = $4 THEN metered_wh END), SUM(metered_wh)) AS BIGINT), CAST(SUM(deviation_wh) AS BIGINT)
		FROM deviation WHERE org_id = $1 AND at >= $2 AND at < $3 AND site_id IN `+list+`
		GROUP BY site_id, at ORDER BY site_id, at`, args...)
}

// WaitingAt returns the half-hours of sites in the span in which there is a flex event that is not
// settled yet, by site.
func (tx *Tx) WaitingAt(
	ctx context.Context,
	sites []flex.SiteID,
	span flex.Span,
) (map[flex.SiteID][]flex.Span, error) {
	waiting := map[flex.SiteID][]flex.Span{}
	if len(sites) == 0 {
		return waiting, nil
	}

	scan := func(s scanner) error {
		var id flex.SiteID
		var at flex.Span
		err := s.Scan(&id, instant{&at.From}, instant{&at.To})
		waiting[id] = append(waiting[id], at)

		return err
	}

	list, args := in(
		[]any{tx.org.Bytes(), micros(span.From), micros(span.To)},
		sites,
	)

	err := eachRow(
		ctx,
		tx.conn,
		scan,
		`SELECT site_id, from_at, to_at FROM flex_event
		WHERE org_id = $1 AND to_at > $2 AND from_at < $3 AND (missing > 0 OR version = 0) AND final IS NULL AND site_id IN `+list,
		args...,
	)

	return waiting, err
}

// SettledVolume is what a settlement report says of a metering point and half-hour.
type SettledVolume struct {
	MPAN      string
	Site      flex.SiteID
	At        time.Time
	Run       int // 1 for the first
	Delivered flex.WattHours
}

// PutSettledVolumes stores what a report of a run says, in place of what one of the same run
// said. Of rows for the same point and half-hour the last one counts: PostgreSQL writes no row
// twice in one statement.
func (tx *Tx) PutSettledVolumes(ctx context.Context, vs []SettledVolume) error {
	args := make([]any, 0, 6*len(vs))
	for _, v := range lastVolumes(vs) {
		args = append(
			args,
			tx.org.Bytes(),
			tx.hide(personMPAN, v.MPAN),
			micros(v.At),
			v.Run,
			v.Site.Bytes(),
			int64(v.Delivered),
		)
	}

	return tx.bulk(
		ctx,
		`INSERT INTO settled_volume (org_id, mpan, at, run, site_id, delivered_wh)`,
		`ON CONFLICT (org_id, mpan, at, run) DO UPDATE SET delivered_wh = excluded.delivered_wh
			WHERE settled_volume.delivered_wh <> excluded.delivered_wh`,
		6,
		args,
	)
}

// lastVolumes leaves of rows for the same point, half-hour and run the last one.
func lastVolumes(vs []SettledVolume) []SettledVolume {
	type key struct {
		mpan string
		at   int64
		run  int
	}

	place := make(map[key]int, len(vs))
	last := make([]SettledVolume, 0, len(vs))

	for _, v := range vs {
		k := key{v.MPAN, v.At.UnixMicro(), v.Run}
		if at, twice := place[k]; twice {
			last[at] = v
			continue
		}

		place[k] = len(last)
		last = append(last, v)
	}

	return last
}

// SettledVolumes returns what reports say of metering points in the span, by point and then by
// time: of each half-hour the latest run's, no later than the one given.
func (tx *Tx) SettledVolumes(
	ctx context.Context,
	mpans []string,
	span flex.Span,
	run int,
) ([]SettledVolume, error) {
	if len(mpans) == 0 {
		return nil, nil
	}

	args := []any{tx.org.Bytes(), micros(span.From), micros(span.To), run}
	marks := make([]string, len(mpans))

	for i, mpan := range mpans {
		args = append(args, tx.hide(personMPAN, mpan))
		marks[i] = fmt.Sprintf("$%d", len(args))
	}

	scan := func(s scanner) (SettledVolume, error) {
		var v SettledVolume
		err := s.Scan(
			opened(tx.conn, personMPAN, &v.MPAN),
			&v.Site,
			instant{&v.At},
			&v.Run,
			&v.Delivered,
		)
		return v, err
	}

	all, err := rows(
		ctx,
		tx.conn,
		scan,
		`SELECT mpan, site_id, at, run, delivered_wh FROM settled_volume
		WHERE org_id = $1 AND at >= $2 AND at < $3 AND run <= $4 AND mpan IN (`+strings.Join(marks, ", ")+`) ORDER BY at, run`,
		args...,
	)

	return latestRuns(all), err
}

// latestRuns returns the volumes by point and then by time, of each half-hour the latest
// run's. They are given by time and then by run.
func latestRuns(all []SettledVolume) []SettledVolume {
	slices.SortStableFunc(all, func(a, b SettledVolume) int {
		return cmp.Compare(a.MPAN, b.MPAN)
	})

	var latest []SettledVolume
	for _, v := range all {
		n := len(latest)
		if n > 0 && latest[n-1].MPAN == v.MPAN && latest[n-1].At.Equal(v.At) {
			latest[n-1] = v
			continue
		}
		latest = append(latest, v)
	}

	return latest
}
