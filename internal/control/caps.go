package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Caps returns the organisation's caps, groups by name, a NotFound failure if it has none.
func (d *Service) Caps(ctx context.Context, org flex.OrgID) (c flex.Caps, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		stands, ok, err := capsWithSites(ctx, tx)
		if err == nil && !ok {
			err = flex.Fail(flex.NotFound, "no caps are set: PUT /caps sets them")
		}

		c = stands
		return err
	})
	return c, err
}

// SetCaps puts caps in the place of those that stand, and has the fleet planned under them.
// Caps that cannot be kept are Malformed, a site of another organisation is NotFound.
func (d *Service) SetCaps(ctx context.Context, org flex.OrgID, c flex.Caps) error {
	return d.ChangeCaps(ctx, org, func(stands *flex.Caps) error { *stands = c; return nil })
}

// ChangeCaps lets a function change the caps that stand, which are none at first. It fails as
// SetCaps does.
func (d *Service) ChangeCaps(ctx context.Context, org flex.OrgID, change func(*flex.Caps) error) error {
	return d.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.LockOrg(ctx); err != nil {
			return err
		}

		c, _, err := capsWithSites(ctx, tx)
		if err != nil {
			return fmt.Errorf("read the caps: %w", err)
		}
		if err := change(&c); err != nil {
			return err
		}
		if c.IsZero() {
			return flex.Fail(flex.Malformed, "nothing is bound: give the fleet or a group a cap, or a position; DELETE /caps takes caps away")
		}

		slices.SortFunc(c.Position, func(a, b flex.Traded) int { return a.Period.Sub(b.Period) })
		slices.SortFunc(c.Groups, func(a, b flex.CapGroup) int { return strings.Compare(a.Name, b.Name) })

		if err := c.Check(); err != nil {
			return err
		}

		return tx.SetCaps(ctx, c)
	})
}

// ClearCaps takes the organisation's caps away. It is NotFound if there are none.
func (d *Service) ClearCaps(ctx context.Context, org flex.OrgID) error {
	return d.DB.Write(ctx, org, func(tx *store.Tx) error { return tx.ClearCaps(ctx) })
}

func capsWithSites(ctx context.Context, tx *store.Tx) (flex.Caps, bool, error) {
	c, ok, err := tx.Caps(ctx)
	if err != nil || !ok {
		return flex.Caps{}, false, err
	}

	sites, err := tx.CapSites(ctx)
	for i := range c.Groups {
		c.Groups[i].Sites = sites[c.Groups[i].Name]
	}

	return c.Caps, true, err
}
