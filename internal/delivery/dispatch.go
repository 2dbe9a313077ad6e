package delivery

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// DispatchMax is the number of assets of one dispatch.
const DispatchMax = 10_000

// Dispatch asks batteries for a power during a time. By the endpoint's choice it is one
// message for each asset, or one for all; the dispatches are returned as they were queued.
// They are sent at once, and not any more when their time is over.
func (d *Service) Dispatch(ctx context.Context, org flex.OrgID, order store.Dispatch) (ds []store.Dispatch, err error) {
	switch {
	case len(order.Assets) == 0 || len(order.Assets) > DispatchMax:
		return nil, flex.Fail(flex.Malformed, "a dispatch has 1 to %d assets, not %d", DispatchMax, len(order.Assets))
	case order.Empty():
		return nil, flex.Fail(flex.Malformed, "a dispatch ends after it begins, not at %s", order.To.Format(time.RFC3339))
	}

	ids := make([]flex.AssetID, len(order.Assets))
	seen := map[flex.AssetID]bool{}

	for i, a := range order.Assets {
		if seen[a.ID] {
			return nil, flex.Fail(flex.Malformed, "a dispatch names each asset once, not %v twice", a.ID)
		}
		ids[i], seen[a.ID] = a.ID, true
	}

	err = d.DB.Write(ctx, org, func(tx *store.Tx) error {
		ds = nil

		if !order.To.After(tx.Now()) {
			return flex.Fail(flex.Malformed, "the dispatch is over already, at %s", order.To.Format(time.RFC3339))
		}

		own, err := tx.OwnAssets(ctx, ids)
		if err != nil {
			return err
		}

		for _, id := range ids {
			if _, ours := own[id]; !ours {
				return flex.Fail(flex.NotFound, store.AssetMissing)
			}
		}

		e, err := tx.Endpoint(ctx, store.DispatchEndpoint)
		if err != nil && flex.KindOf(err) != flex.NotFound {
			return err
		}

		parts := []store.Dispatch{order}
		parts[0].Batch = e.Batch
		if !e.Batch {
			parts = make([]store.Dispatch, len(order.Assets))
			for i := range parts {
				parts[i] = order
				parts[i].Assets = order.Assets[i : i+1]
			}
		}

		for _, p := range parts {
			p, err = tx.AddDispatch(ctx, p)
			if err != nil {
				return err
			}
			ds = append(ds, p)
		}

		return nil
	})
	return ds, err
}
