package control

import (
	"context"
	"errors"

	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// CountedNow counts what changed under an organisation's caps, and returns the sums under some of them.
func CountedNow(ctx context.Context, db *store.DB, org flex.OrgID, names ...string) (sums map[string]headroom.Sum, err error) {
	err = db.Write(ctx, org, func(tx *store.Tx) error {
		inForce, ok, err := tx.LockCaps(ctx)
		if err == nil && !ok {
			err = errors.New("no caps")
		}
		if err == nil {
			sums, _, err = sumsForAsset(ctx, tx, &inForce, flex.AssetID{}, names)
		}
		return err
	})
	return sums, err
}
