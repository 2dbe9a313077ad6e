package store

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law("a dispatch ends after it begins and has an asset", `SELECT d.event_id AS what FROM dispatch d
		WHERE d.to_at <= d.from_at OR NOT EXISTS (SELECT 1 FROM dispatch_asset a WHERE a.event_id = d.event_id)`)
	_ = law("a dispatch that is no batch has one asset", `SELECT event_id AS what FROM dispatch_asset
		WHERE event_id IN (SELECT event_id FROM dispatch WHERE NOT batch) GROUP BY event_id HAVING count(*) > 1`)
)

// Dispatch asks assets for a power during a time. The id is that of its push.
type Dispatch struct {
	ID       flex.EventID
	Market   string    // the interface's market_id
	IssuedAt time.Time // by the organisation's clock, as is the span
	flex.Span
	Batch  bool // one message for all its assets; else it has one asset
	Assets []DispatchedAsset
}

// DispatchedAsset is an asset's part in a dispatch.
type DispatchedAsset struct {
	ID    flex.AssetID
	Power flex.Watts // positive draws from the grid
}

// AddDispatch keeps a dispatch and has it sent. Its id and its instant are set here.
func (tx *Tx) AddDispatch(ctx context.Context, d Dispatch) (Dispatch, error) {
	d.ID, d.IssuedAt = flex.EventID(tx.newID()), tx.now
	_, err := tx.exec(ctx, `INSERT INTO dispatch (event_id, org_id, market, issued_at, from_at, to_at, batch) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		d.ID.Bytes(), tx.org.Bytes(), d.Market, micros(d.IssuedAt), micros(d.From), micros(d.To), d.Batch)
	if err != nil {
		return d, err
	}
	args := make([]any, 0, 4*len(d.Assets))
	for _, a := range d.Assets {
		args = append(args, d.ID.Bytes(), a.ID.Bytes(), tx.org.Bytes(), int64(a.Power))
	}
	if err := tx.bulk(ctx, `INSERT INTO dispatch_asset (event_id, asset_id, org_id, power_w)`, ``, 4, args); err != nil {
		return d, err
	}
	p := Push{EventID: d.ID, Kind: DispatchPush, Generation: 1, Value: Urgent, ExpiresAt: d.To}
	if !d.Batch {
		p.AssetID = d.Assets[0].ID
	}
	return d, tx.Enqueue(ctx, p)
}

// Dispatch returns one of the organisation's dispatches, its assets in the order of their
// ids.
func (tx *Tx) Dispatch(ctx context.Context, id flex.EventID) (Dispatch, error) {
	d, err := one(ctx, tx.conn, "dispatch not found or not authorized", scanDispatch,
		`SELECT event_id, market, issued_at, from_at, to_at, batch FROM dispatch WHERE org_id = $1 AND event_id = $2`, tx.org.Bytes(), id.Bytes())
	if err != nil {
		return d, err
	}
	part := func(s scanner) (a DispatchedAsset, err error) { return a, s.Scan(&a.ID, &a.Power) }
	d.Assets, err = rows(ctx, tx.conn, part, `SELECT asset_id, power_w FROM dispatch_asset WHERE org_id = $1 AND event_id = $2 ORDER BY asset_id`,
		tx.org.Bytes(), id.Bytes())
	return d, err
}

// Dispatches returns the organisation's dispatches, the newest first.
func (tx *Tx) Dispatches(ctx context.Context, limit int) ([]Dispatch, error) {
	ds, err := rows(ctx, tx.conn, scanDispatch, `SELECT event_id, market, issued_at, from_at, to_at, batch FROM dispatch
		WHERE org_id = $1 ORDER BY event_id DESC LIMIT $2`, tx.org.Bytes(), limit)
	if err != nil || len(ds) == 0 {
		return nil, err
	}
	at := make(map[flex.EventID]*Dispatch, len(ds))
	ids := make([]flex.EventID, len(ds))
	for i := range ds {
		ids[i], at[ds[i].ID] = ds[i].ID, &ds[i]
	}
	for chunk := range slices.Chunk(ids, outboxChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		_, err := rows(ctx, tx.conn, func(s scanner) (struct{}, error) {
			var id flex.EventID
			var a DispatchedAsset
			err := s.Scan(&id, &a.ID, &a.Power)
			if err == nil {
				at[id].Assets = append(at[id].Assets, a)
			}
			return struct{}{}, err
		}, `SELECT event_id, asset_id, power_w FROM dispatch_asset WHERE org_id = $1 AND event_id IN `+list+` ORDER BY event_id, asset_id`, args...)
		if err != nil {
			return nil, err
		}
	}
	return ds, nil
}

func scanDispatch(s scanner) (d Dispatch, err error) {
	return d, s.Scan(&d.ID, &d.Market, instant{&d.IssuedAt}, instant{&d.From}, instant{&d.To}, &d.Batch)
}
