package registry

import (
	"context"
	"fmt"

	"flexd/internal/directory"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Service keeps the register.
type Service struct {
	DB *store.DB

	// Meters, if set, is asked for the metering points of sites, and what it says is kept.
	// Without it those that were imported are all there is.
	Meters directory.Source

	Providers []Provider // of manufacturers' clouds
	// by which they are asked; may be nil without providers
	Web *egress.Client
}

// stopControl takes control of the assets away: their sessions end, what holds them back is
// lifted, and what batteries were sent of their own plans is taken back.
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

// write runs fn in one transaction of the organisation's and returns what it returns.
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
		tx.Made(v)
		return err
	})

	return v, err
}

// read is write for what changes nothing.
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
