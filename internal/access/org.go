package access

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// SetOrgCaps limits what an organisation's fleet is planned to draw at once, and how many of
// its chargers are started in a minute; zero takes a limit away.
func (d *Desk) SetOrgCaps(ctx context.Context, org flex.OrgID, power flex.Watts, starts int) error {
	return d.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.LockOrg(ctx); err != nil {
			return err
		}
		o, err := tx.OrgRecord(ctx)
		if err != nil {
			return err
		}
		o.Settings.FleetCap, o.Settings.StartsPerMinute = power, starts
		tx.Wake(store.WakeControl)
		return tx.SetSettings(ctx, o.Settings)
	})
}
