package store

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"flexd/internal/flex"
)

// HeatDaysKept is how many days of each heater are stored: more than a home's own load is
// learned from.
const HeatDaysKept = 60

// HeatHalfHour is the energy that a tank or a heat pump was planned to draw in a half-hour.
type HeatHalfHour struct {
	Expected flex.WattHours // by its plan
	Most     flex.WattHours // by all that it may have been following; 0: it was held off
	Moves    *HeatMoves     // what it could have moved from then on; nil where that is not known
}

// AddHeatHalfHour stores a half-hour of a heater. If it is stored already, the first expected
// energy stays, and of the two maxima the higher is stored.
func (tx *Tx) AddHeatHalfHour(
	ctx context.Context,
	id flex.AssetID,
	at flex.Period,
	h HeatHalfHour,
) error {
	day := flex.DayAt(at.Start())
	number := at.Sub(day.Period(1)) + 1
	_, err := tx.exec(
		ctx,
		`INSERT INTO heat_day (asset_id, from_at, org_id, half_hours, moves) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (asset_id, from_at) DO UPDATE SET half_hours = heat_day.half_hours || ' ' || excluded.half_hours,
			moves = CASE WHEN excluded.moves = '' THEN heat_day.moves ELSE heat_day.moves || ' ' || excluded.moves END
		WHERE heat_day.org_id = excluded.org_id`,
		id.Bytes(),
		micros(day.Start()),
		tx.org.Bytes(),
		fmt.Sprintf(
			"%d/%d/%d",
			number,
			h.Expected,
			h.Most,
		),
		h.Moves.text(number),
	)
	if err != nil || number != 1 {
		return err
	}

	_, err = tx.exec(
		ctx,
		`DELETE FROM heat_day WHERE asset_id = $1 AND from_at < $2 AND org_id = $3`,
		id.Bytes(),
		micros(day.Add(-HeatDaysKept).Start()),
		tx.org.Bytes(),
	)

	return err
}

// HeatHalfHours returns the half-hours of a heater on the days that begin in a span.
func (tx *Tx) HeatHalfHours(
	ctx context.Context,
	id flex.AssetID,
	span flex.Span,
) (map[flex.Period]HeatHalfHour, error) {
	halves := map[flex.Period]HeatHalfHour{}
	read := func(s scanner) error {
		var from time.Time
		var text string
		err := s.Scan(
			instant{&from},
			&text,
		)
		if err != nil {
			return err
		}

		day, err := readHeatHalfHours(id, from, text)
		maps.Copy(halves, day)

		return err
	}

	err := eachRow(
		ctx,
		tx.conn,
		read,
		`SELECT from_at, half_hours FROM heat_day WHERE org_id = $1 AND asset_id = $2 AND from_at >= $3 AND from_at < $4 ORDER BY from_at`,
		tx.org.Bytes(),
		id.Bytes(),
		micros(span.From),
		micros(span.To),
	)

	return halves, err
}

// EachHeaterHalfHour calls fn with each half-hour of the tanks and heat pumps of a scope on
// the days that begin in a span.
func (tx *Tx) EachHeaterHalfHour(
	ctx context.Context,
	scope flex.Scope,
	span flex.Span,
	fn func(flex.AssetID, flex.Period, HeatHalfHour),
) error {
	if tx.knownEmpty(hasTanks) {
		return nil
	}

	where, args, err := tx.scopeWhere(ctx, scope, []any{
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
	})
	if err != nil {
		return err
	}

	read := func(s scanner) error {
		var id flex.AssetID
		var from time.Time
		var text string
		if err := s.Scan(&id, instant{&from}, &text); err != nil {
			return err
		}

		halves, err := readHeatHalfHours(id, from, text)
		for at, h := range halves {
			fn(id, at, h)
		}

		return err
	}

	return eachRow(ctx, tx.conn, read, `SELECT s.id, b.from_at, b.half_hours
		FROM heat_day b JOIN (SELECT a.id, a.site_id, a.org_id FROM asset a WHERE a.org_id = $1 AND a.type IN (`+heatTypes+`)) s ON s.id = b.asset_id
		WHERE b.org_id = $1 AND b.from_at >= $2 AND b.from_at < $3`+where, args...)
}

// readHeatHalfHours reads a day of half-hours as AddHeatHalfHour writes them.
func readHeatHalfHours(
	id flex.AssetID,
	from time.Time,
	text string,
) (map[flex.Period]HeatHalfHour, error) {
	halves := map[flex.Period]HeatHalfHour{}
	first := flex.DayAt(from).Period(1)
	for part := range strings.FieldsSeq(text) {
		if err := addHeatHalfHour(halves, first, part); err != nil {
			return nil, fmt.Errorf("heater %v on %v: %w", id, from, err)
		}
	}

	return halves, nil
}

// addHeatHalfHour reads a half-hour as AddHeatHalfHour writes it.
func addHeatHalfHour(
	halves map[flex.Period]HeatHalfHour,
	first flex.Period,
	text string,
) error {
	var number int
	var h HeatHalfHour
	n, err := fmt.Sscanf(
		text,
		"%d/%d/%d",
		&number,
		&h.Expected,
		&h.Most,
	)
	if err != nil || n != 3 {
		return fmt.Errorf("%w: %q is no half-hour", ErrUnreadable, text)
	}

	p := first.Add(number - 1)
	if before, twice := halves[p]; twice {
		h.Expected = before.Expected
		h.Most = max(h.Most, before.Most)
	}

	halves[p] = h

	return nil
}

// BatteryHalfHours returns the power that a battery was planned with in the half-hours of the
// days that begin in a span.
func (tx *Tx) BatteryHalfHours(
	ctx context.Context,
	id flex.AssetID,
	span flex.Span,
) (map[flex.Period]flex.Watts, error) {
	powers := map[flex.Period]flex.Watts{}
	read := func(s scanner) error {
		var from time.Time
		var text string
		err := s.Scan(
			instant{&from},
			&text,
		)
		if err != nil {
			return err
		}

		first := flex.DayAt(from).Period(1)
		for part := range strings.FieldsSeq(text) {
			h, err := readBatteryHalfHour(part)
			if err != nil {
				return fmt.Errorf("battery %v on %v: %w", id, from, err)
			}

			p := first.Add(h.Number - 1)
			if _, twice := powers[p]; !twice {
				powers[p] = h.Power
			}
		}

		return nil
	}

	err := eachRow(
		ctx,
		tx.conn,
		read,
		`SELECT from_at, half_hours FROM battery_day WHERE org_id = $1 AND asset_id = $2 AND from_at >= $3 AND from_at < $4 ORDER BY from_at`,
		tx.org.Bytes(),
		id.Bytes(),
		micros(span.From),
		micros(span.To),
	)

	return powers, err
}
