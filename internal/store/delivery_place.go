package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"flexd/internal/flex"
)

// DeliveryPlace is the position of a delivery in a sorted list: its id and its sort key
// (DeliveryOrder.Key).
type DeliveryPlace struct {
	ID  flex.EventID
	Key int64
}

// DeliveryPlaces returns the places of the deliveries that Deliveries finds, in the same order.
func (tx *Tx) DeliveryPlaces(
	ctx context.Context,
	q DeliveryQuery,
) ([]DeliveryPlace, error) {
	by, _ := q.Sort.read()
	var out []DeliveryPlace
	if q.untried() {
		w := where{args: []any{tx.org.Bytes()}}
		q.where(&w, "o")
		order := q.page(&w, "o")

		var err error
		out, err = tx.places(
			ctx,
			"SELECT o.event_id, "+by.waiting+untriedFrom,
			&w,
			order,
			q.Limit,
		)
		if err != nil {
			return nil, err
		}
	}

	w := where{args: []any{tx.org.Bytes()}}
	q.conditions(&w)
	order := q.page(&w, "d")
	tried, err := tx.places(
		ctx,
		"SELECT d.event_id, "+by.tried+deliveryFrom,
		&w,
		order,
		q.Limit,
	)
	if err != nil {
		return nil, err
	}

	out = append(out, tried...)
	slices.SortFunc(out, func(a, b DeliveryPlace) int {
		return q.Sort.CompareDeliveries(a.Key, b.Key, a.ID, b.ID)
	})

	return out[:min(len(out), q.Limit)], nil
}

// places reads at most limit places by a query.
func (tx *Tx) places(
	ctx context.Context,
	query string,
	w *where,
	order string,
	limit int,
) ([]DeliveryPlace, error) {
	w.args = append(w.args, limit)
	found, err := rows(
		ctx,
		tx.conn,
		func(s scanner) (DeliveryPlace, error) {
			var p DeliveryPlace
			err := s.Scan(&p.ID, &p.Key)
			return p, err
		},
		query+w.text.String()+fmt.Sprintf("%s LIMIT $%d", order, len(w.args)),
		w.args...,
	)
	if err != nil {
		return nil, fmt.Errorf("sort deliveries: %w", err)
	}

	return found, nil
}

// waitingChunk is how many pushes that were not tried are read by their ids at once. SQLite
// accepts 32,766 arguments.
const waitingChunk = 8192

// DeliveriesByID returns the deliveries with some ids, in no particular order. Those that do
// not exist are left out.
func (tx *Tx) DeliveriesByID(
	ctx context.Context,
	ids []flex.EventID,
) ([]Delivery, error) {
	missing := make(map[flex.EventID]bool, len(ids))
	for _, id := range ids {
		missing[id] = true
	}

	var out []Delivery
	for chunk := range slices.Chunk(ids, outboxChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		tried, err := rows(
			ctx,
			tx.conn,
			scanDelivery,
			deliverySelect+" AND d.event_id IN "+list,
			args...,
		)
		if err != nil {
			return nil, fmt.Errorf("read deliveries: %w", err)
		}

		out = append(out, tried...)
		for i := range tried {
			delete(missing, tried[i].ID)
		}
	}

	// The outbox has no index by event: it is read once for many ids.
	for chunk := range slices.Chunk(slices.Collect(maps.Keys(missing)), waitingChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		waiting, err := rows(
			ctx,
			tx.conn,
			scanUntried,
			untried+" AND o.event_id IN "+list,
			args...,
		)
		if err != nil {
			return nil, fmt.Errorf("read pushes that were not tried: %w", err)
		}

		out = append(out, waiting...)
	}

	return out, tx.reported(ctx, out)
}
