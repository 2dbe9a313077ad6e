package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
)

// eventRead is that what an event's missing half-hour is known by is there, of its asset or at
// its site's boundary: the energy, the register at both ends, or powers that cover it.
var eventRead = isRead("e.asset_id", 1, "e.waits_at") + `
	OR ` + isRead("e.asset_id", 12, "e.waits_at") + ` AND ` + isRead(
	"e.asset_id",
	12,
	"e.waits_at + 1800000000",
) + `
	OR ` + covers("e.asset_id", 11) + `
	OR EXISTS (SELECT 1 FROM asset a WHERE a.site_id = e.site_id AND (` + isRead("a.id", 2, "e.waits_at") + `
		OR ` + isRead("a.id", 13, "e.waits_at") + ` AND ` + isRead(
	"a.id",
	13,
	"e.waits_at + 1800000000",
) + `
		OR ` + covers("a.id", 10) + `))`

// flexEventDue is that an event's time to be looked at has come by $2, or that its missing reading is there.
var flexEventDue = `e.look_at IS NOT NULL AND (e.look_at <= $2 OR ` + eventRead + `)`

// covers is that an asset's readings of a power begin in the half-hour that the event waits
// for and are as long together.
func covers(asset string, label int) string {
	return fmt.Sprintf(
		`(SELECT sum(g.seconds) FROM reading g WHERE g.at / 86400000000 = e.waits_at / 86400000000 AND g.asset_id = %s
		AND g.label = %d AND g.label >= 10 AND g.at >= e.waits_at AND g.at < e.waits_at + 1800000000) >= 1800`,
		asset,
		label,
	)
}

// DueFlexEvents returns up to limit events whose time to be looked at has come, or whose
// missing reading is there. Of all that are not final, it looks at those that wait for a
// reading alone.
func (tx *Tx) DueFlexEvents(
	ctx context.Context,
	limit int,
) ([]flex.FlexEventID, error) {
	if tx.knownEmpty(eventWaits) {
		return nil, nil
	}

	return rows(ctx, tx.conn, scalar[flex.FlexEventID], `SELECT id FROM (
			SELECT e.id, e.look_at FROM flex_event e WHERE e.org_id = $1 AND e.look_at <= $2
			UNION ALL
			SELECT e.id, e.look_at FROM flex_event e WHERE e.org_id = $1 AND e.waits_at IS NOT NULL AND (e.look_at > $2) IS TRUE AND (`+eventRead+`)
		) AS due ORDER BY look_at, id LIMIT $3`,
		tx.org.Bytes(), micros(tx.now), limit)
}

// PutFlexEvent stores the state of the event's settlement.
func (tx *Tx) PutFlexEvent(ctx context.Context, e FlexEvent) error {
	return tx.update(ctx, "flex_event", e.ID.Bytes(), []value{
		{"version", e.Version},
		{"hash", e.Hash},
		{"flex_wh", number(e.Flex)},
		{"estimated", int64(e.Estimated)},
		{"final", number(e.Final)},
		{"missing", e.Missing},
		{"posted", e.Posted},
		{"waits_at", micros(e.WaitsAt)},
		{"look_at", micros(e.LookAt)},
		{"posted_wh", int64(e.PostedWh)},
	})
}

// EventDaysOf returns the days from one to another, both included, on which the assets had a
// flex event that had been found by then.
func (tx *Tx) EventDaysOf(
	ctx context.Context,
	assets []flex.AssetID,
	from, to flex.Day,
	asOf time.Time,
) (map[flex.AssetID][]flex.Day, error) {
	return eventDays(ctx, tx, "asset_id", assets, from, to, asOf)
}

// EventDaysAt returns the same of sites, with whatever asset.
func (tx *Tx) EventDaysAt(
	ctx context.Context,
	sites []flex.SiteID,
	from, to flex.Day,
	asOf time.Time,
) (map[flex.SiteID][]flex.Day, error) {
	return eventDays(ctx, tx, "site_id", sites, from, to, asOf)
}

func eventDays[Of any](
	ctx context.Context,
	tx *Tx,
	column string,
	ids []flex.ID[Of],
	from, to flex.Day,
	asOf time.Time,
) (map[flex.ID[Of]][]flex.Day, error) {
	days, texts := map[flex.ID[Of]][]flex.Day{}, dayTexts{}
	read := func(s scanner) error {
		var id flex.ID[Of]

		var text string
		if err := s.Scan(&id, &text); err != nil {
			return err
		}

		d, err := texts.day(text)
		days[id] = append(days[id], d)
		return err
	}

	for chunk := range slices.Chunk(ids, ownersChunk) {
		list, args := in(
			[]any{
				tx.org.Bytes(),
				micros(from.Start()),
				micros(to.Add(1).Start()),
				micros(asOf),
			},
			chunk,
		)

		err := eachRow(
			ctx,
			tx.conn,
			read,
			`SELECT `+column+`, day FROM flex_event
			WHERE org_id = $1 AND from_at >= $2 AND from_at < $3 AND detected_at <= $4 AND `+column+` IN `+list,
			args...,
		)
		if err != nil {
			return nil, err
		}
	}

	return days, nil
}

// dayTexts remembers days by their text, of which there are few.
type dayTexts map[string]flex.Day

func (t dayTexts) day(text string) (flex.Day, error) {
	if d, known := t[text]; known {
		return d, nil
	}
	d, err := flex.ParseDay(text)
	t[text] = d

	return d, err
}

// SitesWithEvents returns the one site, or for the zero id all, that has flex events that
// begin in the span.
func (tx *Tx) SitesWithEvents(
	ctx context.Context,
	site flex.SiteID,
	span flex.Span,
) ([]flex.SiteID, error) {
	return rows(
		ctx,
		tx.conn,
		scalar[flex.SiteID],
		`SELECT DISTINCT site_id FROM flex_event WHERE org_id = $1 AND ($2 OR site_id = $3) AND from_at >= $4 AND from_at < $5
		ORDER BY site_id`,
		tx.org.Bytes(),
		site.IsZero(),
		site.Bytes(),
		micros(span.From),
		micros(span.To),
	)
}

var (
	_ = law(
		"no half-hour of an asset is settled twice",
		`SELECT e.id AS what FROM flex_event e
		JOIN flex_event o ON o.org_id = e.org_id AND o.asset_id = e.asset_id AND o.from_at > e.from_at AND o.from_at < e.to_at`,
	)
	_ = law(
		"a settled event has its newest settlement",
		`SELECT e.id AS what FROM flex_event e
		LEFT JOIN settlement s ON s.flex_event_id = e.id AND s.version = e.version WHERE e.version > 0 AND s.run_id IS NULL`,
	)
)
