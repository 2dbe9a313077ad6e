package control

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/tariff"
)

// Intent returns the asset's last intent, with the wall time of its deadline filled in. One
// that was never sent is NotFound, the same as for another organisation's asset.
func (d *Desk) Intent(ctx context.Context, org flex.OrgID, asset flex.AssetID) (in flex.Intent, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		c, err := tx.Charging(ctx, asset)
		if err != nil && flex.KindOf(err) != flex.NotFound {
			return err
		}
		if c.Intent == nil {
			return flex.Fail(flex.NotFound, "intent not found or not authorized")
		}
		in = *c.Intent
		t, _ := tariffOf(&c)
		zone, err := tariff.Zone(t.Zone)
		if err != nil {
			zone = flex.London
		}
		in.ReadyByLocal = new(wallOf(in, zone))
		return nil
	})
	return in, err
}
