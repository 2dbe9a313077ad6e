package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Caps returns the organisation's caps, groups by name, a NotFound failure if it has none.
func (s *Service) Caps(
	ctx context.Context,
	org flex.OrgID,
) (flex.Caps, error) {
	var c flex.Caps
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		inForce, ok, err := capsWithSites(ctx, tx)
		if err == nil && !ok {
			err = flex.Fail(
				flex.NotFound,
				"no caps are set: PUT /caps sets them",
			)
		}

		c = inForce
		return err
	})

	return c, err
}

// SetCaps puts caps in the place of those in force, and has the fleet planned under them.
// Caps that cannot be kept are Malformed, a site of another organisation is NotFound, and a group that
// is limited and no longer among them is Conflict.
func (s *Service) SetCaps(
	ctx context.Context,
	org flex.OrgID,
	c flex.Caps,
) error {
	return s.ChangeCaps(ctx, org, func(inForce *flex.Caps) error {
		*inForce = c
		return nil
	})
}

// ChangeCaps lets a function change the caps in force, which are none at first. It fails as
// SetCaps does.
func (s *Service) ChangeCaps(
	ctx context.Context,
	org flex.OrgID,
	change func(*flex.Caps) error,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		c, _, err := lockCaps(ctx, tx)
		if err != nil {
			return err
		}

		if err := changedCaps(ctx, tx, &c, change); err != nil {
			return err
		}

		return tx.SetCaps(ctx, c)
	})
}

// SetFleetCap sets the cap of the whole fleet; groups and position stay. Where nothing is bound any more, the caps are
// taken away. It is Malformed if nothing was bound before either, and fails as SetCaps does.
func (s *Service) SetFleetCap(
	ctx context.Context,
	org flex.OrgID,
	fleet flex.Cap,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		c, ok, err := lockCaps(ctx, tx)
		if err != nil {
			return err
		}

		c.Fleet = fleet
		if c.IsZero() && ok {
			return clearCaps(ctx, tx)
		}
		if c.IsZero() {
			return flex.Fail(
				flex.Malformed,
				"nothing is bound, and nothing was: give a cap in kW or starts per minute",
			)
		}

		unchanged := func(*flex.Caps) error { return nil }
		if err := changedCaps(ctx, tx, &c, unchanged); err != nil {
			return err
		}

		return tx.SetCaps(ctx, c)
	})
}

// lockCaps locks the organisation, and returns its caps in force, if there are any.
func lockCaps(
	ctx context.Context,
	tx *store.Tx,
) (c flex.Caps, ok bool, err error) {
	if err := tx.LockOrg(ctx); err != nil {
		return c, false, err
	}

	c, ok, err = capsWithSites(ctx, tx)
	if err != nil {
		return c, false, fmt.Errorf("read the caps: %w", err)
	}
	if !ok { // whoever began without caps notes no change under them
		err = tx.LockForCaps(ctx)
	}

	return c, ok, err
}

// PreviewCaps returns the caps as a change would leave them, and changes nothing. It fails as ChangeCaps does.
func (s *Service) PreviewCaps(
	ctx context.Context,
	org flex.OrgID,
	change func(*flex.Caps) error,
) (flex.Caps, error) {
	var c flex.Caps
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		c, _, err = capsWithSites(ctx, tx)
		if err != nil {
			return err
		}

		if err := changedCaps(ctx, tx, &c, change); err != nil {
			return err
		}

		return tx.CheckCapSites(ctx, c.Groups)
	})

	return c, err
}

// changedCaps changes caps, puts them in order, and refuses those that cannot be kept.
func changedCaps(
	ctx context.Context,
	tx *store.Tx,
	c *flex.Caps,
	change func(*flex.Caps) error,
) error {
	if err := change(c); err != nil {
		return err
	}

	if c.IsZero() {
		return flex.Fail(
			flex.Malformed,
			"nothing is bound: give fleet or a group cap_kw or starts_per_minute, or give a position; DELETE /caps takes caps away",
		)
	}

	slices.SortFunc(c.Position, func(a, b flex.Traded) int {
		return a.Period.Sub(b.Period)
	})

	slices.SortFunc(c.Groups, func(a, b flex.CapGroup) int {
		return strings.Compare(a.Name, b.Name)
	})

	if err := c.Check(); err != nil {
		return err
	}

	return keepLimited(ctx, tx, c.Groups)
}

// ClearCaps takes the organisation's caps away. It is NotFound if there are none, and Conflict where a
// group is limited.
func (s *Service) ClearCaps(
	ctx context.Context,
	org flex.OrgID,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.LockOrg(ctx); err != nil {
			return err
		}

		return clearCaps(ctx, tx)
	})
}

func clearCaps(
	ctx context.Context,
	tx *store.Tx,
) error {
	if err := keepLimited(ctx, tx, nil); err != nil {
		return err
	}

	return tx.ClearCaps(ctx)
}

// keepLimited is Conflict if a group that somebody limits is not among those that will be: its limits
// would bind nobody, and whoever gave them would not know.
func keepLimited(
	ctx context.Context,
	tx *store.Tx,
	groups []flex.CapGroup,
) error {
	limits, err := tx.CapLimits(ctx)
	if err != nil {
		return err
	}

	links, err := tx.CapLinks(ctx)
	if err != nil {
		return err
	}

	bindings, err := tx.ADRBindings(ctx, flex.ADRObjectID{})
	if err != nil {
		return err
	}

	why := map[string]string{
		"": "",
	} // by group; no group at all is the whole fleet, which stays
	for _, b := range bindings {
		why[b.Scope.Group] = "an OpenADR program is bound to it: flexd openadr list prints it, flexd openadr unbind ends that"
	}

	for _, l := range links {
		why[l.Group] = "it has a fallback for a lost link: flexd limits unlink ends that"
	}

	for _, l := range limits {
		why[l.Group] = "limits of it hold until " +
			l.To.Format(time.RFC3339) +
			" or later: flexd limits list prints them, flexd limits clear takes those of a file away"
	}

	delete(why, "")
	for _, g := range groups {
		delete(why, g.Name)
	}

	for _, name := range slices.Sorted(maps.Keys(why)) {
		return flex.Fail(
			flex.Conflict,
			"the group %q cannot be taken away: %s",
			name,
			why[name],
		)
	}

	return nil
}

func capsWithSites(
	ctx context.Context,
	tx *store.Tx,
) (flex.Caps, bool, error) {
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
