package store

import (
	"context"
	"time"
)

// RejectedPrice are rows of a source's latest answer that were not taken, for one reason.
type RejectedPrice struct {
	Source    string
	Reason    string
	Rows      int
	First     time.Time // the start of the first of them
	FetchedAt time.Time
}

// SetRejectedPrices replaces what was kept out of a source's latest answer, with nothing where
// all was taken. Another process may do so at the same time.
func (all *All) SetRejectedPrices(
	ctx context.Context,
	source string,
	rows []RejectedPrice,
) error {
	_, err := all.exec(
		ctx,
		`DELETE FROM price_kept_out WHERE source = $1`,
		source,
	)

	if err != nil {
		return err
	}

	for _, r := range rows {
		_, err := all.exec(
			ctx,
			`INSERT INTO price_kept_out (source, reason, rows, first_at, fetched_at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (source, reason) DO UPDATE SET rows = excluded.rows, first_at = excluded.first_at, fetched_at = excluded.fetched_at`,
			source,
			r.Reason,
			r.Rows,
			r.First.UnixMicro(),
			micros(all.now),
		)

		if err != nil {
			return err
		}
	}

	return nil
}

// RejectedPrices returns what was kept out of the sources' latest answers.
func (all *All) RejectedPrices(ctx context.Context) ([]RejectedPrice, error) {
	return rows(ctx, all.conn, func(s scanner) (RejectedPrice, error) {
		var r RejectedPrice
		err := s.Scan(
			&r.Source,
			&r.Reason,
			&r.Rows,
			instant{&r.First},
			instant{&r.FetchedAt},
		)

		return r, err
	}, `SELECT source, reason, rows, first_at, fetched_at FROM price_kept_out ORDER BY source, reason`)
}
