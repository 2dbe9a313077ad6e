package store

import (
	"context"
	"database/sql"
	"time"

	"flexd/internal/flex"
)

// HalfHour is a half-hour of a meter as it was settled last.
type HalfHour struct {
	Site   flex.SiteID
	Meter  flex.AssetID // whose own it is; zero: the site's boundary
	Period flex.Period
	Label  flex.Label // by which it was metered; empty: several

	Metered  flex.WattHours
	Baseline flex.WattHours
	Apart    flex.WattHours // settled on meters of assets behind this one
	// metered less baseline less what is settled apart
	Deviation flex.WattHours
	// of it, beyond what the events' assets can have moved
	Unassigned flex.WattHours
	Import     flex.WattHours // the most that the meter can have measured
	Export     flex.WattHours // and the other way
	Parts      []Part
}

// Part is a flex event's part in a half-hour's deviation.
type Part struct {
	Event flex.FlexEventID
	Flex  flex.WattHours
	Most  flex.WattHours // what its asset can have moved
}

// PutHalfHours records how a site's day was settled, in place of how it was before.
func (tx *Tx) PutHalfHours(
	ctx context.Context,
	site flex.SiteID,
	day flex.Day,
	hs []HalfHour,
) error {
	for _, table := range []string{"deviation_part", "deviation"} {
		_, err := tx.exec(
			ctx,
			`DELETE FROM `+table+
				` WHERE org_id = $1 AND site_id = $2 AND at >= $3 AND at < $4`,
			tx.org.Bytes(),
			site.Bytes(),
			micros(day.Start()),
			micros(day.Add(1).Start()),
		)

		if err != nil {
			return err
		}
	}

	for _, h := range hs {
		if err := tx.addHalfHour(ctx, site, &h); err != nil {
			return err
		}
	}

	return nil
}

func (tx *Tx) addHalfHour(
	ctx context.Context,
	site flex.SiteID,
	h *HalfHour,
) error {
	at := h.Period.Start().UnixMicro()
	var label any

	if h.Label != "" {
		label = labelNumbers[h.Label]
	}

	row := []value{
		{"site_id", site.Bytes()},
		{"meter_id", h.Meter.Bytes()},
		{"at", at},
		{"org_id", tx.org.Bytes()},
		{"label", label},
		{"metered_wh", int64(h.Metered)},
		{"baseline_wh", int64(h.Baseline)},
		{"apart_wh", int64(h.Apart)},
		{"deviation_wh", int64(h.Deviation)},
		{"unassigned_wh", int64(h.Unassigned)},
		{"import_wh", int64(h.Import)},
		{"export_wh", int64(h.Export)},
	}

	err := tx.insert(ctx, "deviation", row)
	if err != nil {
		return err
	}

	var parts []any
	for _, p := range h.Parts {
		parts = append(
			parts,
			site.Bytes(),
			h.Meter.Bytes(),
			at,
			p.Event.Bytes(),
			tx.org.Bytes(),
			int64(p.Flex),
			int64(p.Most),
		)
	}

	return tx.bulk(
		ctx,
		`INSERT INTO deviation_part (site_id, meter_id, at, flex_event_id, org_id, flex_wh, most_wh)`,
		``,
		7,
		parts,
	)
}

// HalfHours returns how a site's half-hours in the span were settled last, by time and meter.
func (tx *Tx) HalfHours(
	ctx context.Context,
	site flex.SiteID,
	span flex.Span,
) ([]HalfHour, error) {
	scan := func(s scanner) (HalfHour, error) {
		var at time.Time
		var label sql.NullInt16
		var h HalfHour
		err := s.Scan(
			&h.Site,
			&h.Meter,
			instant{&at},
			&label,
			&h.Metered,
			&h.Baseline,
			&h.Apart,
			&h.Deviation,
			&h.Unassigned,
			&h.Import,
			&h.Export,
		)

		h.Period, h.Label = flex.PeriodAt(at), labels[label.Int16]

		return h, err
	}

	hs, err := rows(
		ctx,
		tx.conn,
		scan,
		`SELECT site_id, meter_id, at, label, metered_wh, baseline_wh, apart_wh, deviation_wh, unassigned_wh, import_wh, export_wh
		FROM deviation WHERE org_id = $1 AND site_id = $2 AND at >= $3 AND at < $4 ORDER BY at, meter_id`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(span.From),
		micros(span.To),
	)

	if err != nil {
		return nil, err
	}

	for i := range hs {
		hs[i].Parts, err = tx.partsOf(ctx, site, hs[i].Meter, hs[i].Period)
		if err != nil {
			return nil, err
		}
	}

	return hs, nil
}

func (tx *Tx) partsOf(
	ctx context.Context,
	site flex.SiteID,
	meter flex.AssetID,
	at flex.Period,
) ([]Part, error) {
	scan := func(s scanner) (Part, error) {
		var p Part
		err := s.Scan(&p.Event, &p.Flex, &p.Most)
		return p, err
	}

	return rows(
		ctx,
		tx.conn,
		scan,
		`SELECT flex_event_id, flex_wh, most_wh FROM deviation_part
		WHERE org_id = $1 AND site_id = $2 AND meter_id = $3 AND at = $4 ORDER BY flex_event_id`,
		tx.org.Bytes(),
		site.Bytes(),
		meter.Bytes(),
		at.Start().UnixMicro(),
	)
}

var (
	_ = law(
		"a half-hour's deviation is the sum of its events' parts and of what is unassigned",
		`SELECT h.site_id AS what FROM deviation h
		LEFT JOIN (SELECT site_id, meter_id, at, SUM(flex_wh) AS flex_wh FROM deviation_part GROUP BY site_id, meter_id, at) p
			ON p.site_id = h.site_id AND p.meter_id = h.meter_id AND p.at = h.at
		WHERE h.deviation_wh <> COALESCE(p.flex_wh, 0) + h.unassigned_wh OR h.deviation_wh <> h.metered_wh - h.baseline_wh - h.apart_wh`,
	)
	_ = law(
		"no settled half-hour is beyond what its connection or device can carry",
		`SELECT site_id AS what FROM deviation
		WHERE metered_wh > import_wh OR -metered_wh > export_wh`,
	)
	_ = law(
		"no flex event's part is beyond what its asset can have moved",
		`SELECT flex_event_id AS what FROM deviation_part
		WHERE flex_wh > most_wh OR -flex_wh > most_wh`,
	)
	_ = law(
		"a part is of a settled half-hour",
		`SELECT p.flex_event_id AS what FROM deviation_part p LEFT JOIN deviation h
		ON h.site_id = p.site_id AND h.meter_id = p.meter_id AND h.at = p.at WHERE h.at IS NULL`,
	)
	_ = law(
		"a settled flex event moved what its half-hours say",
		`SELECT e.id AS what FROM flex_event e
		JOIN (SELECT flex_event_id, SUM(flex_wh) AS flex_wh FROM deviation_part GROUP BY flex_event_id) p ON p.flex_event_id = e.id
		WHERE (e.missing = 0 OR e.final IS NOT NULL) AND e.flex_wh <> p.flex_wh`,
	)
)
