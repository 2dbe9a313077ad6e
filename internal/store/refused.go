package store

import (
	"cmp"
	"context"
	"slices"

	"flexd/internal/flex"
)

// RefusedReading counts readings that were refused for one reason on a London day.
type RefusedReading struct {
	Day     flex.Day
	Label   string
	Reason  string // its numbers left out
	Count   int64
	Example string       // the newest, with its numbers
	AssetID flex.AssetID // that it was for
}

// refusedMax is how many reasons are counted separately on a day; beyond it they are counted
// as one.
const refusedMax = 100

// CountRefused adds to today's counts of refused readings, in the order of the rows' key, so
// that two batches never deadlock.
func (tx *Tx) CountRefused(ctx context.Context, rs []RefusedReading) error {
	day := flex.DayAt(tx.now).String()

	var kept int
	err := tx.row(
		ctx,
		`SELECT count(*) FROM refused_reading WHERE org_id = $1 AND day = $2`,
		tx.org.Bytes(),
		day,
	).Scan(&kept)

	if err != nil {
		return err
	}

	ordered := slices.SortedStableFunc(
		slices.Values(rs),
		func(a, b RefusedReading) int {
			return cmp.Or(
				cmp.Compare(a.Label, b.Label),
				cmp.Compare(a.Reason, b.Reason),
			)
		},
	)

	for _, r := range ordered {
		if kept >= refusedMax {
			r.Label, r.Reason = "", "further reasons"
		}

		row := []value{
			{"org_id", tx.org.Bytes()},
			{"day", day},
			{"label", r.Label},
			{"reason", r.Reason},
			{"count", r.Count},
			{"example", r.Example},
			{"asset_id", r.AssetID.Bytes()},
		}

		_, err := tx.upsert(ctx, "refused_reading", row, rewrite{
			key:  []string{"org_id", "day", "label", "reason"},
			keep: []string{"count"},
			also: `count = refused_reading.count + excluded.count`,
		})

		if err != nil {
			return err
		}

		kept++
	}

	return nil
}

// RefusedSince returns the counts of refused readings from a day on, the newest day first.
func (tx *Tx) RefusedSince(
	ctx context.Context,
	from flex.Day,
) ([]RefusedReading, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (RefusedReading, error) {
			var day string
			var r RefusedReading
			if err := s.Scan(
				&day,
				&r.Label,
				&r.Reason,
				&r.Count,
				&r.Example,
				&r.AssetID,
			); err != nil {
				return r, err
			}

			var err error
			r.Day, err = flex.ParseDay(day)

			return r, err
		},
		`SELECT day, label, reason, count, example, asset_id FROM refused_reading WHERE org_id = $1 AND day >= $2
		ORDER BY day DESC, count DESC, label, reason LIMIT 500`,
		tx.org.Bytes(),
		from.String(),
	)
}

// DropRefused deletes up to limit counts of refused readings before a day, and returns how
// many.
func (all *All) DropRefused(
	ctx context.Context,
	before flex.Day,
	limit int,
) (int64, error) {
	return all.exec(
		ctx,
		`DELETE FROM refused_reading WHERE (org_id, day, label, reason) IN
		(SELECT org_id, day, label, reason FROM refused_reading WHERE day < $1 LIMIT $2)`,
		before.String(),
		limit,
	)
}
