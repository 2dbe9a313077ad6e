package delivery

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Callback is a client's report about an event, as received.
type Callback struct {
	Asset      string // a uuid
	External   bool   // Asset is the vendor's own id
	Event      string
	Status     flex.CallbackStatus
	ReportedAt time.Time
}

// Callback stores a client's report about an event. A report only moves an event forward: one
// that repeats what was reported before is accepted and changes nothing. An event that does
// not exist, or is not the asset's, is NotFound.
func (s *Service) Callback(
	ctx context.Context,
	org flex.OrgID,
	c Callback,
) error {
	if c.Status.Stage() == 0 {
		return flex.Fail(flex.Invalid, "%q is no status of an event", c.Status)
	}

	missing := flex.Fail(flex.NotFound, "event not found or not authorized")

	event, err := flex.ParseID[struct{}](c.Event)
	if err != nil {
		return missing
	}

	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		asset, err := assetOf(ctx, tx, c)
		if err != nil {
			return err
		}

		report := flex.Callback{
			EventID:    flex.EventID(event),
			AssetID:    asset,
			Status:     c.Status,
			ReportedAt: c.ReportedAt,
		}

		known, err := tx.Concerns(ctx, report.EventID, asset)
		if err != nil {
			return err
		}
		if !known {
			return missing
		}

		return storeReport(ctx, tx, report)
	})
}

// storeReport stores a report that moves its event forward.
func storeReport(
	ctx context.Context,
	tx *store.Tx,
	report flex.Callback,
) error {
	// Reports of one asset wait for each other; those of a deleted asset may be concurrent.
	err := tx.LockAsset(ctx, report.AssetID)
	if err != nil && flex.KindOf(err) != flex.NotFound {
		return err
	}

	before, err := tx.Callbacks(ctx, report.EventID)
	if err != nil {
		return err
	}

	for _, b := range before {
		if b.AssetID == report.AssetID && b.Status.Stage() >= report.Status.Stage() {
			return nil
		}
	}

	if err := tx.AddCallback(ctx, report); err != nil {
		return err
	}

	return replanAfterLoss(ctx, tx, report, before)
}

// replanAfterLoss marks an asset to be planned again if its charger follows a schedule after
// it had failed: energy was not drawn meanwhile. The assets beside one are planned again when
// it does not follow a dispatch, and when it follows the dispatch after all.
func replanAfterLoss(
	ctx context.Context,
	tx *store.Tx,
	report flex.Callback,
	before []flex.Callback,
) error {
	if report.Status == flex.Rejected || report.Status == flex.Failed {
		return tx.MarkDispatched(ctx, report.AssetID, report.EventID)
	}

	alreadyFailed := slices.ContainsFunc(before, func(b flex.Callback) bool {
		return b.AssetID == report.AssetID && b.Status == flex.Failed
	})
	if !alreadyFailed || report.Status != flex.Executed {
		return nil
	}

	if err := tx.MarkDue(ctx, report.AssetID); err != nil {
		return err
	}

	return tx.MarkDispatched(ctx, report.AssetID, report.EventID)
}

func assetOf(
	ctx context.Context,
	tx *store.Tx,
	c Callback,
) (flex.AssetID, error) {
	if !c.External {
		id, err := flex.ParseID[struct{}](c.Asset)
		if err != nil {
			return flex.AssetID{}, flex.Fail(flex.NotFound, flex.AssetMissing)
		}
		return flex.AssetID(id), nil
	}

	a, err := tx.AssetByExternalID(ctx, c.Asset)
	if err == nil && a == nil {
		err = flex.Fail(flex.NotFound, flex.AssetMissing)
	}

	if err != nil {
		return flex.AssetID{}, err
	}

	return a.ID, nil
}
