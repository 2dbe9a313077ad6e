package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
)

// leftAhead is how far ahead dispatches of an asset that leaves are looked for.
const leftAhead = 366 * 24 * time.Hour

// EndDispatches takes back what assets that leave were sent, from now on: an own dispatch of no power replaces it. Those are
// the dispatches of their own plans, and with all those of an operator too. One that was never tried is not among
// them. Without an endpoint nothing is sent.
func (tx *Tx) EndDispatches(
	ctx context.Context,
	all bool,
	assets ...flex.AssetID,
) error {
	if len(assets) == 0 {
		return nil
	}

	e, listens, err := tx.EnabledEndpoint(ctx, flex.DispatchEndpoint)
	if err != nil || !listens {
		return err
	}

	now := tx.now.Truncate(time.Minute)
	for _, id := range assets {
		orders, err := tx.ordersSent(ctx, id, now)
		if err != nil {
			return fmt.Errorf(
				"read what asset %v was sent: %w",
				id,
				err,
			)
		}

		for _, o := range ordersToEnd(orders, all, now) {
			if err := tx.takeBack(ctx, &o, e.Batch); err != nil {
				return fmt.Errorf(
					"take a dispatch of asset %v back: %w",
					id,
					err,
				)
			}
		}
	}

	return nil
}

// takeBack has a dispatch of no power replace what an asset was asked for.
func (tx *Tx) takeBack(
	ctx context.Context,
	o *BatteryOrder,
	batch bool,
) error {
	_, err := tx.AddDispatch(ctx, Dispatch{
		Own:    true,
		Market: o.Market,
		Span:   o.Span,
		Batch:  batch,
		Assets: []DispatchedAsset{{
			ID: o.Asset,
			Without: duringSpan(
				o.Span,
				flex.PeriodAt(o.From),
				nil,
			),
		}},
	})

	return err
}

// ordersSent returns what dispatches ask an asset for from an instant on, the newest last, without those that were never
// tried. What takes one back is among them, tried or not: it is sent.
func (tx *Tx) ordersSent(
	ctx context.Context,
	asset flex.AssetID,
	from time.Time,
) ([]BatteryOrder, error) {
	return rows(
		ctx,
		tx.conn,
		scanOrder,
		ordersQuery+` AND p.asset_id = $5 AND (d.own AND p.power_w = 0 OR NOT EXISTS (SELECT 1 FROM outbox o
			WHERE o.subject = d.event_id AND `+neverTried+`)) ORDER BY d.event_id`,
		tx.org.Bytes(),
		micros(from),
		micros(from.Add(leftAhead)),
		micros(from.Add(-orderReach)),
		asset.Bytes(),
	)
}

// ordersToEnd is what of an asset's orders is in force from an instant on and is to be taken back, the first first.
// Neighbours of one market become one.
func ordersToEnd(
	orders []BatteryOrder,
	all bool,
	from time.Time,
) []BatteryOrder {
	inForce := OrdersInForce(orders)
	slices.SortFunc(inForce, func(a, b BatteryOrder) int {
		return a.From.Compare(b.From)
	})

	var end []BatteryOrder
	for _, o := range inForce {
		o.From = flex.Later(o.From, from)
		whose := o.Own || all
		if o.Empty() || o.Power == 0 || !whose {
			continue
		}

		n := len(end)
		if n > 0 && end[n-1].continues(&o) {
			end[n-1].To = o.To
			continue
		}

		end = append(end, o)
	}

	return end
}

// continues reports whether another order follows this one at once, so that one dispatch may take back both.
func (o *BatteryOrder) continues(next *BatteryOrder) bool {
	return o.To.Equal(next.From) && o.Market == next.Market &&
		next.To.Sub(o.From) <= DispatchLongest
}

// neverTried says in SQL that no attempt was made at outbox row o.
const neverTried = `o.generation = 1 AND o.accepted = 0 AND o.sending = 0 AND o.tries = 0`

// removeFromMessages removes an asset from messages for several assets that wait and were never tried: they are sent without it. One
// that was tried is sent again as it was.
func (tx *Tx) removeFromMessages(ctx context.Context, asset flex.AssetID) error {
	waiting, err := rows(
		ctx,
		tx.conn,
		scalar[flex.EventID],
		`SELECT o.subject FROM outbox o WHERE o.org_id = $1 AND o.kind = 'dispatch' AND o.turn_at IS NOT NULL AND o.expires_at > 0
			AND `+neverTried+` AND o.subject IN (SELECT a.event_id FROM dispatch_asset a
				JOIN dispatch_asset b ON b.event_id = a.event_id AND b.asset_id <> a.asset_id
				WHERE a.org_id = $1 AND a.asset_id = $2 AND a.over_at > $3)
			ORDER BY o.subject`+tx.db.d.forUpdate,
		tx.org.Bytes(),
		asset.Bytes(),
		micros(tx.now),
	)
	if err != nil {
		return fmt.Errorf("read which messages wait for several assets: %w", err)
	}

	for chunk := range slices.Chunk(waiting, outboxChunk) {
		list, args := in([]any{tx.org.Bytes(), asset.Bytes()}, chunk)
		_, err := tx.exec(
			ctx,
			`DELETE FROM dispatch_asset WHERE org_id = $1 AND asset_id = $2 AND event_id IN `+list,
			args...,
		)
		if err != nil {
			return fmt.Errorf("leave an asset out of messages: %w", err)
		}
	}

	return nil
}
