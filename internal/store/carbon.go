package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// PutCarbon stores what is known of half-hours in place of what was known before; a forecast
// does not replace a measurement.
func (all *All) PutCarbon(ctx context.Context, cs []flex.Carbon) error {
	args := make([]any, 0, 4*len(cs))
	for _, c := range cs {
		args = append(
			args,
			c.Period.Start().UnixMicro(),
			c.Grams,
			c.Actual,
			all.now.UnixMicro(),
		)
	}

	return all.bulk(
		ctx,
		`INSERT INTO carbon (start_at, grams, actual, fetched_at)`,
		`ON CONFLICT (start_at) DO UPDATE SET grams = excluded.grams, actual = excluded.actual, fetched_at = excluded.fetched_at
			WHERE excluded.actual OR NOT carbon.actual`,
		4,
		args,
	)
}

// Carbon returns what is known of the half-hours that start in the span.
func (tx *Tx) Carbon(
	ctx context.Context,
	span flex.Span,
) (map[flex.Period]flex.Carbon, error) {
	cs, err := rows(
		ctx,
		tx.conn,
		func(s scanner) (flex.Carbon, error) {
			var c flex.Carbon
			var at time.Time
			err := s.Scan(instant{&at}, &c.Grams, &c.Actual)
			c.Period = flex.PeriodAt(at)

			return c, err
		},
		`SELECT start_at, grams, actual FROM carbon WHERE start_at >= $1 AND start_at < $2`,
		span.From.UnixMicro(),
		span.To.UnixMicro(),
	)

	if err != nil {
		return nil, err
	}

	by := make(map[flex.Period]flex.Carbon, len(cs))
	for _, c := range cs {
		by[c.Period] = c
	}

	return by, nil
}
