package store

import (
	"context"
	"slices"

	"flexd/internal/flex"
)

// Concerns reports whether the event was for the asset: a schedule of its own, a dispatch
// that it has a part in, or a test message, which names the zero asset.
func (tx *Tx) Concerns(
	ctx context.Context,
	event flex.EventID,
	asset flex.AssetID,
) (yes bool, err error) {
	err = tx.row(
		ctx,
		`SELECT EXISTS (SELECT 1 FROM schedule WHERE org_id = $1 AND event_id = $2 AND asset_id = $3)
		OR EXISTS (SELECT 1 FROM dispatch_asset WHERE org_id = $1 AND event_id = $2 AND asset_id = $3)
		OR EXISTS (SELECT 1 FROM outbox WHERE org_id = $1 AND subject = $2 AND kind = 'test' AND $4)`,
		tx.org.Bytes(),
		event.Bytes(),
		asset.Bytes(),
		asset.IsZero(),
	).Scan(&yes)

	return yes, err
}

// AddCallback stores a report. One of a status that was reported before changes nothing.
func (tx *Tx) AddCallback(ctx context.Context, c flex.Callback) error {
	if c.ReportedAt.IsZero() {
		c.ReportedAt = tx.now
	}

	_, err := tx.exec(
		ctx,
		`INSERT INTO callback (org_id, event_id, asset_id, status, reported_at, received_at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT DO NOTHING`,
		tx.org.Bytes(),
		c.EventID.Bytes(),
		c.AssetID.Bytes(),
		string(c.Status),
		micros(c.ReportedAt),
		micros(tx.now),
	)

	if err != nil {
		return err
	}

	tx.Wake(WakeWatch)

	return tx.noteReached(ctx, c)
}

// Callbacks returns the callbacks of the event, in the order in which they came.
func (tx *Tx) Callbacks(
	ctx context.Context,
	event flex.EventID,
) ([]flex.Callback, error) {
	return tx.CallbacksOf(ctx, []flex.EventID{event})
}

// CallbacksOf returns the callbacks of events, in the order in which they came. Those that
// came at the same instant are in the order in which they may follow each other.
func (tx *Tx) CallbacksOf(
	ctx context.Context,
	events []flex.EventID,
) ([]flex.Callback, error) {
	scan := func(s scanner) (flex.Callback, error) {
		var c flex.Callback
		err := s.Scan(
			&c.EventID,
			&c.AssetID,
			&c.Status,
			instant{&c.ReportedAt},
			instant{&c.ReceivedAt},
		)

		return c, err
	}

	var all []flex.Callback
	for chunk := range slices.Chunk(events, outboxChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		some, err := rows(
			ctx,
			tx.conn,
			scan,
			`SELECT event_id, asset_id, status, reported_at, received_at FROM callback
			WHERE org_id = $1 AND event_id IN `+list,
			args...,
		)

		if err != nil {
			return nil, err
		}

		all = append(all, some...)
	}

	slices.SortStableFunc(all, compareCallbacks)

	return all, nil
}

// compareCallbacks orders callbacks by when they came; of one instant, as they may follow each
// other.
func compareCallbacks(a, b flex.Callback) int {
	if by := a.ReceivedAt.Compare(b.ReceivedAt); by != 0 {
		return by
	}
	return a.Status.Stage() - b.Status.Stage()
}
