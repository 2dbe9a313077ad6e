package store

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
)

// ReadingsEach answers queries as Readings does, in their order. Those of the same days and
// labels are asked in one statement: sessions that end together have their readings looked for
// together.
func (tx *Tx) ReadingsEach(
	ctx context.Context,
	queries []ReadingQuery,
) ([][]flex.Reading, error) {
	found := make([][]flex.Reading, len(queries))
	alike := map[string][]int{}
	var order []string

	for i := range queries {
		q := &queries[i]
		key := fmt.Sprint(q.Labels, q.Days, q.First, q.Last, q.KnownAt, i)
		if q.atEdgesAlone() {
			key = fmt.Sprint(q.Labels, q.Days, q.KnownAt)
		}

		if alike[key] == nil {
			order = append(order, key)
		}
		alike[key] = append(alike[key], i)
	}

	for _, key := range order {
		if err := tx.readBatch(ctx, queries, alike[key], found); err != nil {
			return nil, err
		}
	}

	return found, nil
}

// atEdgesAlone reports whether what is asked for are half-hours of a span, and nothing that is
// read at any time.
func (q ReadingQuery) atEdgesAlone() bool {
	_, odd := q.labels()
	return len(odd) == 0 && !q.Within.Empty()
}

// readBatch asks for what some of the queries ask for, and gives each its own.
func (tx *Tx) readBatch(
	ctx context.Context,
	queries []ReadingQuery,
	which []int,
	found [][]flex.Reading,
) error {
	all := queries[which[0]]
	if len(which) == 1 {
		var err error
		found[which[0]], err = tx.Readings(ctx, all)
		return err
	}

	all.Assets = nil
	for _, i := range which {
		q := queries[i]
		all.Assets = append(all.Assets, q.Assets...)
		if q.Within.From.Before(all.Within.From) {
			all.Within.From = q.Within.From
		}
		if q.Within.To.After(all.Within.To) {
			all.Within.To = q.Within.To
		}
	}

	read, err := tx.Readings(ctx, all)
	if err != nil {
		return err
	}

	of := map[flex.AssetID][]flex.Reading{}
	for _, r := range read {
		of[r.AssetID] = append(of[r.AssetID], r)
	}

	for _, i := range which {
		found[i] = queries[i].from(of)
	}

	return nil
}

// from picks the query's readings from those of more assets and a longer span.
func (q ReadingQuery) from(
	of map[flex.AssetID][]flex.Reading,
) []flex.Reading {
	last := q.Within.To
	if !q.registers() {
		last = last.Add(-time.Microsecond)
	}

	seen := map[flex.AssetID]bool{}

	var own []flex.Reading
	for _, id := range q.Assets {
		if seen[id] {
			continue
		}

		seen[id] = true
		for _, r := range of[id] {
			at := r.From
			if r.Label.Register() {
				at = r.To
			}
			if !at.Before(q.Within.From) && !at.After(last) {
				own = append(own, r)
			}
		}
	}

	return own
}
