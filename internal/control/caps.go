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

// Caps returns the organisation's caps with their groups ordered by name; NotFound if it has
// none.
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

// SetCaps replaces the caps in force, and marks the fleet to be planned under them. Caps that
// cannot be observed are Malformed, a site of another organisation is NotFound, and removing a
// group that is limited is a Conflict.
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

// ChangeCaps lets a function change the caps in force; without caps it gets the zero value. It
// fails as SetCaps does.
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

// SetFleetCap sets the cap of the whole fleet; groups and position stay. If nothing is limited
// any more, the caps are removed. It is Malformed if nothing was limited before either, and
// otherwise fails as SetCaps does.
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
	if !ok { // wait for transactions that began without caps: they record no change for the sums
		err = tx.LockForCaps(ctx)
	}

	return c, ok, err
}

// PreviewCaps returns the caps as a change would leave them, without making it. It fails as
// ChangeCaps does.
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

// changedCaps changes caps, sorts them, and checks them.
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

	return checkLimitedRemain(ctx, tx, c.Groups)
}

// ClearCaps removes the organisation's caps. It is NotFound if there are none, and Conflict if
// a group is limited.
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

// clearCaps is ClearCaps within a transaction that has locked the organisation.
func clearCaps(
	ctx context.Context,
	tx *store.Tx,
) error {
	if err := checkLimitedRemain(ctx, tx, nil); err != nil {
		return err
	}

	return tx.ClearCaps(ctx)
}

// checkLimitedRemain returns Conflict if a group that has limits, a link or a bound program is
// not among the groups: its limits would have no effect, and their source would not notice.
func checkLimitedRemain(
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

	why := map[string]string{} // the reason why a group must remain, by its name
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

	delete(why, "") // the whole fleet, which is no group
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

// capsWithSites reads the caps with the sites of their groups; false if there are none.
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
