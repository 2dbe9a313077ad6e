package store

import (
	"context"
	"fmt"
)

// DeliveriesCounted is how many deliveries are counted at most: a fleet's week is more, and
// would take longer than the page.
const DeliveriesCounted = 100_000

// CountDeliveries returns how many deliveries of the organisation a query finds on all pages, up to
// one more than DeliveriesCounted.
func (tx *Tx) CountDeliveries(
	ctx context.Context,
	q DeliveryQuery,
) (int, error) {
	tried := where{args: []any{tx.org.Bytes()}}
	q.conditions(&tried)
	n, err := tx.countUpTo(ctx, deliverySelect, &tried)
	if err != nil || !q.untried() {
		return n, err
	}

	waiting := where{args: []any{tx.org.Bytes()}}
	q.where(&waiting, "o")
	more, err := tx.countUpTo(ctx, untried, &waiting)

	return min(n+more, DeliveriesCounted+1), err
}

// countUpTo counts the rows of a query, up to one more than DeliveriesCounted.
func (tx *Tx) countUpTo(
	ctx context.Context,
	query string,
	w *where,
) (int, error) {
	var n int
	err := tx.row(
		ctx,
		fmt.Sprintf(
			"SELECT count(*) FROM (%s%s LIMIT %d) x",
			query,
			w.text.String(),
			DeliveriesCounted+1,
		),
		w.args...,
	).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count deliveries: %w", err)
	}

	return n, nil
}
