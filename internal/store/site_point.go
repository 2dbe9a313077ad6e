package store

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
)

// SitePoint is a metering point that a site had, and when. The time has no end while it lasts.
type SitePoint struct {
	MPAN string
	flex.Span
}

// Within returns the part of a span in which the site had the point.
func (p SitePoint) Within(s flex.Span) flex.Span {
	if p.To.IsZero() {
		p.To = s.To
	}

	return p.Meet(s)
}

// notePoint records that a site has another metering point from now on, or with an empty MPAN
// none. It is called before the site is changed or deleted: one of which no point was noted,
// as an earlier release made it, has had its own since it was created, and one of which
// another was noted, as an earlier release changed it, has had it since then.
func (tx *Tx) notePoint(
	ctx context.Context,
	site flex.SiteID,
	mpan string,
) error {
	ended, err := tx.exec(
		ctx,
		`UPDATE site_point SET to_at = $3, mpan = COALESCE((SELECT s.mpan FROM site s WHERE s.id = site_point.site_id), mpan)
		WHERE org_id = $1 AND site_id = $2 AND to_at IS NULL`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(tx.now),
	)
	if err != nil {
		return err
	}

	if ended == 0 {
		_, err = tx.exec(
			ctx,
			`INSERT INTO site_point (site_id, org_id, mpan, from_at, to_at)
			SELECT id, org_id, mpan, created_at, CAST($3 AS BIGINT) FROM site
			WHERE org_id = $1 AND id = $2 AND mpan IS NOT NULL ON CONFLICT DO NOTHING`,
			tx.org.Bytes(),
			site.Bytes(),
			micros(tx.now),
		)
	}

	if err != nil || mpan == "" {
		return err
	}

	_, err = tx.exec(
		ctx,
		`INSERT INTO site_point (site_id, org_id, mpan, from_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (site_id, from_at) DO UPDATE SET mpan = excluded.mpan, to_at = NULL`,
		site.Bytes(),
		tx.org.Bytes(),
		tx.hide(personMPAN, mpan),
		micros(tx.now),
	)

	return err
}

// PointsOf returns the metering points that the sites have or had, deleted sites included, the
// oldest of each site first. A site without a record of one is left out.
func (tx *Tx) PointsOf(
	ctx context.Context,
	sites []flex.SiteID,
	knownAt time.Time,
) (map[flex.SiteID][]SitePoint, error) {
	points := map[flex.SiteID][]SitePoint{}
	scan := func(s scanner) error {
		var id flex.SiteID
		var p SitePoint
		err := s.Scan(
			&id,
			opened(tx.conn, personMPAN, &p.MPAN),
			instant{&p.From},
			instant{&p.To},
		)
		points[id] = append(points[id], p)

		return err
	}

	if knownAt.IsZero() {
		knownAt = tx.now
	}

	for chunk := range slices.Chunk(sites, ownersChunk) {
		list, args := in([]any{tx.org.Bytes(), micros(knownAt)}, chunk)
		err := eachRow(ctx, tx.conn, scan,
			`SELECT site_id, mpan, from_at, to_at FROM site_point
			WHERE org_id = $1 AND from_at <= $2 AND site_id IN `+list+` ORDER BY from_at`, args...)
		if err != nil {
			return nil, err
		}
	}

	return points, nil
}

// pointWithin says that a site had a metering point, by a row of site_point or registration,
// at some time of the event e.
func pointWithin(row string) string {
	return row + `.from_at < e.to_at AND (` + row + `.to_at IS NULL OR ` + row + `.to_at > e.from_at)`
}

// stillHas is the condition that a row of site_point without an end is still true of its site.
// An earlier release that runs at the same time changes and deletes sites without ending the
// row.
func stillHas(row string) string {
	return `(` + row + `.to_at IS NOT NULL OR EXISTS (SELECT 1 FROM site x WHERE x.id = ` + row + `.site_id AND x.mpan = ` + row + `.mpan))`
}

// anothersPoint is that a metering point which an event's site had at some time of the event
// was with another party or at another site at some time of it: what is metered at one point
// is credited once. Of a site whose point was not noted, as an earlier release made or changed
// it, its MPAN of now counts. The sandbox's own points are with every organisation.
var anothersPoint = `EXISTS (SELECT 1 FROM site_point h JOIN registration r ON r.mpan = h.mpan
		WHERE h.site_id = e.site_id AND ` + pointWithin("h") + ` AND ` + stillHas("h") + `
			AND r.point IS NOT NULL AND r.org_id <> e.org_id AND ` + pointWithin("r") + `)
	OR EXISTS (SELECT 1 FROM site_point h JOIN site_point o ON o.mpan = h.mpan
		WHERE h.site_id = e.site_id AND ` + pointWithin("h") + ` AND ` + stillHas("h") + ` AND ` + stillHas("o") + `
			AND o.org_id = e.org_id AND o.site_id <> e.site_id AND ` + pointWithin("o") + `)
	OR EXISTS (SELECT 1 FROM site s JOIN registration r ON r.mpan = s.mpan
		WHERE s.id = e.site_id AND r.point IS NOT NULL AND r.org_id <> e.org_id AND ` + pointWithin("r") + `
			AND NOT EXISTS (SELECT 1 FROM site_point h WHERE h.site_id = s.id AND h.to_at IS NULL AND h.mpan = s.mpan))`
