package delivery

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// DispatchMax is the number of assets of one dispatch.
const DispatchMax = 10_000

// Dispatch asks batteries for a power during a time. By the endpoint's setting it is one
// message for each asset, or one for all; the dispatches are returned as they were queued.
// They are sent at once, and not any more after their time.
func (s *Service) Dispatch(
	ctx context.Context,
	org flex.OrgID,
	order store.Dispatch,
) ([]store.Dispatch, error) {
	var ds []store.Dispatch
	err := s.PreviewDispatch(ctx, org, order, func(tx *store.Tx) error {
		var err error
		order := order // the transaction may run again, with the original order
		ds, err = queue(ctx, tx, order)
		if err != nil || s.NoteDispatch == nil {
			return err
		}

		err = s.NoteDispatch(ctx, tx, &order)
		for i := range ds {
			ds[i].Instruction = order.Instruction
		}

		return err
	})

	return ds, err
}

// PreviewDispatch makes the checks of Dispatch, with the same errors, and sends nothing. After
// the checks it calls after, in the same transaction.
func (s *Service) PreviewDispatch(
	ctx context.Context,
	org flex.OrgID,
	order store.Dispatch,
	after func(*store.Tx) error,
) error {
	if err := checkSpan(order.Span); err != nil {
		return err
	}

	ids, err := uniqueAssets(order.Assets)
	if err != nil {
		return err
	}

	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if !order.To.After(tx.Now()) {
			return flex.Fail(
				flex.Malformed,
				"the dispatch is over already, at %s",
				order.To.Format(time.RFC3339),
			)
		}

		if err := checkPowers(ctx, tx, order.Assets, ids); err != nil {
			return err
		}

		if s.CheckDispatch != nil {
			if err := s.CheckDispatch(ctx, tx, &order); err != nil {
				return err
			}
		}

		return after(tx)
	})
}

// queue puts a dispatch into the outbox, as one message or as one for each asset.
func queue(
	ctx context.Context,
	tx *store.Tx,
	order store.Dispatch,
) ([]store.Dispatch, error) {
	e, err := tx.Endpoint(ctx, flex.DispatchEndpoint)
	if err != nil && flex.KindOf(err) != flex.NotFound {
		return nil, err
	}

	var ds []store.Dispatch
	for _, part := range messages(order, e.Batch) {
		part, err = tx.AddDispatch(ctx, part)
		if err != nil {
			return nil, err
		}
		ds = append(ds, part)
	}

	return ds, nil
}

// checkSpan refuses a time that ends before it begins, is not on whole minutes, or is longer
// than queries for dispatches cover.
func checkSpan(span flex.Span) error {
	if span.Empty() {
		return flex.Fail(
			flex.Malformed,
			"a dispatch ends after it begins, not at %s",
			span.To.Format(time.RFC3339),
		)
	}

	if span.Len() > store.DispatchLongest {
		return flex.Fail(
			flex.Malformed,
			"a dispatch lasts %s at most, not %s",
			flex.Lasting(store.DispatchLongest),
			flex.Lasting(span.Len()),
		)
	}

	for _, at := range []time.Time{span.From, span.To} {
		if !at.Equal(at.Truncate(time.Minute)) {
			return flex.Fail(
				flex.Malformed,
				"a dispatch begins and ends on whole minutes, not at %s",
				at.Format(time.RFC3339Nano),
			)
		}
	}

	return nil
}

// uniqueAssets returns the assets of a dispatch. It fails if one is listed twice.
func uniqueAssets(assets []store.DispatchedAsset) ([]flex.AssetID, error) {
	if len(assets) == 0 || len(assets) > DispatchMax {
		return nil, flex.Fail(
			flex.Malformed,
			"a dispatch has 1 to %d assets, not %d",
			DispatchMax,
			len(assets),
		)
	}

	ids := make([]flex.AssetID, len(assets))
	known := map[flex.AssetID]bool{}

	for i, a := range assets {
		if known[a.ID] {
			return nil, flex.Fail(
				flex.Malformed,
				"a dispatch names each asset once, not %v twice",
				a.ID,
			)
		}
		ids[i], known[a.ID] = a.ID, true
	}

	return ids, nil
}

// checkPowers refuses an asset that is not the organisation's, and a power that the asset does
// not have.
func checkPowers(
	ctx context.Context,
	tx *store.Tx,
	assets []store.DispatchedAsset,
	ids []flex.AssetID,
) error {
	own, err := tx.OwnAssets(ctx, ids)
	if err != nil {
		return err
	}

	for _, a := range assets {
		rating, isOwn := own[a.ID]
		if !isOwn {
			return flex.Fail(flex.NotFound, flex.AssetMissing)
		}

		if a.Power == 0 {
			return flex.Fail(
				flex.Malformed,
				"asset %v is asked for no power: give what it is to draw, or with a minus what it is to give",
				a.ID,
			)
		}

		if rating.Power > 0 && max(a.Power, -a.Power) > rating.Power {
			return flex.Fail(
				flex.Malformed,
				"asset %v has a rated power of %g kW, and is asked for %g kW",
				a.ID,
				rating.Power.KW(),
				a.Power.KW(),
			)
		}
	}

	return nil
}

// messages splits a dispatch into messages: one for all of it, or one for each asset.
func messages(order store.Dispatch, batch bool) []store.Dispatch {
	order.Batch = batch
	if batch {
		return []store.Dispatch{order}
	}

	parts := make([]store.Dispatch, len(order.Assets))
	for i := range parts {
		parts[i] = order
		parts[i].Assets = order.Assets[i : i+1]
	}

	return parts
}
