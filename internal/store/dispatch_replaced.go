package store

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
)

// Replaced is a time of an asset's part in a dispatch in which a newer dispatch replaced it.
type Replaced struct {
	AssetID flex.AssetID
	By      flex.EventID // the newer one
	flex.Span
}

// newerDispatches are the parts p of dispatches d that came after the parts r of one dispatch w,
// for the same assets and times.
const newerDispatches = `FROM dispatch_asset r JOIN dispatch w ON w.event_id = r.event_id
	JOIN dispatch_asset p ON p.asset_id = r.asset_id AND p.org_id = r.org_id AND p.event_id > r.event_id
	JOIN dispatch d ON d.event_id = p.event_id` + answerJoins + `
	WHERE r.org_id = $1 AND r.event_id = $2 AND d.from_at < w.to_at AND d.to_at > w.from_at`

// Replaced returns when newer dispatches replaced one, the first first. A newer one counts
// from its issue on, also while its client has still to take it, but not if the asset does not follow it.
func (tx *Tx) Replaced(
	ctx context.Context,
	id flex.EventID,
) ([]Replaced, error) {
	found, err := rows(
		ctx,
		tx.conn,
		scanReplaced,
		`SELECT p.asset_id, p.event_id, w.from_at, w.to_at, d.issued_at, d.from_at, d.to_at, `+answerColumns+` `+newerDispatches,
		tx.org.Bytes(),
		id.Bytes(),
	)

	slices.SortFunc(found, func(a, b Replaced) int { return a.From.Compare(b.From) })

	return slices.DeleteFunc(found, func(r Replaced) bool { return r.Empty() }), err
}

func scanReplaced(s scanner) (Replaced, error) {
	var of, newer flex.Span
	var issued time.Time
	var answer dispatchAnswer
	var r Replaced
	err := s.Scan(append(
		[]any{
			&r.AssetID,
			&r.By,
			instant{&of.From},
			instant{&of.To},
			instant{&issued},
			instant{&newer.From},
			instant{&newer.To},
		},
		answer.dest()...,
	)...)

	newer.From = flex.Later(newer.From, issued)
	if answer.applies() {
		r.Span = of.Meet(newer)
	}

	return r, err
}
