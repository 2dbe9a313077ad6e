package registry

import (
	"context"
	"fmt"

	"flexd/internal/directory"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Service manages sites and assets.
type Service struct {
	DB *store.DB

	// Meters, if set, is asked for the metering points of sites, and its answers are stored.
	// Without it only imported ones are known.
	Meters directory.Source

	Providers []Provider // of manufacturers' clouds
	// to ask the providers; may be nil without any
	Web *egress.Client
}

// stopControl ends the control of assets: their sessions end, what limits them is lifted, and
// plans of their own that batteries were sent are retracted.
func stopControl(ctx context.Context, tx *store.Tx, assets ...flex.Asset) error {
	ids := make([]flex.AssetID, len(assets))
	for i, a := range assets {
		ids[i] = a.ID
	}

	if err := tx.StopScheduling(ctx, ids...); err != nil {
		return fmt.Errorf("stop scheduling: %w", err)
	}
	if err := tx.EndDispatches(ctx, false, ids...); err != nil {
		return fmt.Errorf("take dispatches back: %w", err)
	}

	return nil
}

// write runs fn in one transaction of the organisation and returns its result.
func write[T any](
	ctx context.Context,
	d *Service,
	org flex.OrgID,
	fn func(*store.Tx) (T, error),
) (T, error) {
	var v T
	err := d.DB.Write(ctx, org, func(tx *store.Tx) error {
		var err error
		v, err = fn(tx)
		tx.SetMadeRecord(v)
		return err
	})

	return v, err
}

// read is write for a transaction that changes nothing.
func read[T any](
	ctx context.Context,
	d *Service,
	org flex.OrgID,
	fn func(*store.Tx) (T, error),
) (T, error) {
	var v T
	err := d.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		v, err = fn(tx)
		return err
	})

	return v, err
}
