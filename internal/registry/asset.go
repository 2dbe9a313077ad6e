package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// CreateAsset registers a new asset at a site. It is a Conflict if the external id exists, and
// NotFound if the site or the model does not.
func (s *Service) CreateAsset(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	in AssetInput,
) (flex.Asset, error) {
	return write(ctx, s, org, func(tx *store.Tx) (flex.Asset, error) {
		var a flex.Asset
		if err := tx.LockOrg(ctx); err != nil {
			return a, err
		}
		if _, err := tx.LockedSite(ctx, site); err != nil {
			return a, err
		}

		if old, err := tx.AssetByExternalID(ctx, in.ExternalID); err != nil {
			return a, err
		} else if old != nil {
			return a, flex.Fail(
				flex.Conflict,
				"an asset with this external id exists already: %s",
				old.ID,
			)
		}

		return newAsset(ctx, tx, site, in)
	})
}

// newAsset stores an asset whose external id is new.
func newAsset(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	in AssetInput,
) (flex.Asset, error) {
	a := flex.Asset{
		SiteID:       site,
		ExternalID:   in.ExternalID,
		Type:         in.Type,
		InstalledOn:  in.InstalledOn,
		SerialNumber: in.SerialNumber,
	}

	if err := in.apply(&a); err != nil {
		return a, err
	}

	if err := setModel(ctx, tx, &a, in.Model); err != nil {
		return a, err
	}

	if err := checkAsset(&flex.Asset{}, &a); err != nil {
		return a, err
	}

	err := tx.AddAsset(ctx, &a)

	return a, err
}

// setPhases sets the number of the asset's phases, and the name of the phase of an asset on
// one, as far as they were sent; 0 and an empty name remove them. It fails for values that no
// asset can have.
func setPhases(a *flex.Asset, phases *int, name *string) error {
	if phases != nil {
		if !slices.Contains([]int{0, 1, 3}, *phases) {
			return invalid([]flex.Fault{faultAt(
				"value_error",
				fmt.Sprintf("an asset on %d phases: give 1 or 3", *phases),
				[]string{"properties"},
				"phases",
			)})
		}

		a.Phases = *phases
	}

	if name == nil {
		return nil
	}

	phase := slices.Index(flex.PhaseNames[:], *name)
	if phase < 0 {
		return invalid([]flex.Fault{faultAt(
			"value_error",
			fmt.Sprintf("an asset on phase %q: give L1, L2 or L3", *name),
			[]string{"properties"},
			"phase",
		)})
	}

	a.Phase = phase

	return nil
}

// setHeat replaces all heat properties of the asset, if they were sent. It fails for values
// that no such asset can have.
func setHeat(a *flex.Asset, heat *flex.Heat) error {
	if heat == nil {
		return nil
	}

	property, reason := heat.Check(a.Type)
	if reason != "" {
		loc, field := []string{"properties", "heat"}, property
		if property == "" {
			loc, field = []string{"properties"}, "heat"
		}
		return invalid([]flex.Fault{faultAt("value_error", reason, loc, field)})
	}

	a.Heat = *heat

	return nil
}

// setModel sets the asset's model, if one is named, and with it the power and capacity if none
// were sent. A model of another type of asset is Malformed.
func setModel(
	ctx context.Context,
	tx *store.Tx,
	a *flex.Asset,
	name string,
) error {
	if name == "" {
		return nil
	}

	m, err := tx.Model(ctx, name)
	if err != nil {
		return err
	}

	if m == nil {
		return modelMissing(name)
	}

	if m.Type != a.Type {
		return flex.Fail(
			flex.Malformed,
			"asset_model %q is a %s, and the asset a %s",
			m.Name,
			m.Type,
			a.Type,
		)
	}

	a.Model = m.Name
	if a.Power == nil {
		a.Power = m.Power
	}

	if a.Capacity == nil {
		a.Capacity = m.Capacity
	}

	return nil
}

func modelMissing(name string) error {
	return flex.Fail(
		flex.NotFound,
		"asset_model %q is not in the catalogue",
		name,
	)
}

// Asset returns an asset.
func (s *Service) Asset(
	ctx context.Context,
	org flex.OrgID,
	id flex.AssetID,
) (flex.Asset, error) {
	return read(ctx, s, org, func(tx *store.Tx) (flex.Asset, error) {
		return tx.Asset(ctx, id)
	})
}

// AssetByExternalID returns the asset with the vendor's own id for it.
func (s *Service) AssetByExternalID(
	ctx context.Context,
	org flex.OrgID,
	external string,
) (flex.Asset, error) {
	return read(ctx, s, org, func(tx *store.Tx) (flex.Asset, error) {
		a, err := tx.AssetByExternalID(ctx, external)
		if err != nil {
			return flex.Asset{}, err
		}
		if a == nil {
			return flex.Asset{}, flex.Fail(flex.NotFound, flex.AssetMissing)
		}

		return *a, nil
	})
}

// AssetPage is a page of assets, with the total number.
type AssetPage struct {
	Assets []flex.Asset
	Total  int
}

// Assets returns a page of the organisation's assets, oldest first.
func (s *Service) Assets(
	ctx context.Context,
	org flex.OrgID,
	limit, offset int,
) (AssetPage, error) {
	return read(ctx, s, org, func(tx *store.Tx) (AssetPage, error) {
		var p AssetPage
		var err error
		p.Assets, p.Total, err = tx.Assets(ctx, limit, offset)
		return p, err
	})
}

// AssetChange is a change of an asset; a nil field is unchanged.
type AssetChange struct {
	AssetProperties
	Model       *string // empty removes the model
	InstalledOn *string
	PowerFrom   Dating
}

// applyNow applies the change to the asset, except for a power that counts from a day.
func (c *AssetChange) applyNow(a *flex.Asset) error {
	setIfSent(&a.InstalledOn, c.InstalledOn)

	now := c.AssetProperties
	if c.PowerFrom.given() {
		now.Power = nil
	}

	return now.apply(a)
}

// check fails if the changed asset has values that no asset of its type can have, a power that
// counts from a day among them.
func (c *AssetChange) check(before, after flex.Asset) error {
	after.Power = inputOr(c.Power, after.Power)
	return checkAsset(&before, &after)
}

// ChangeAsset changes an asset. Its type, site and external id never change. A day of a power
// that is in the future is a fault; one of which something was settled is a Conflict.
func (s *Service) ChangeAsset(
	ctx context.Context,
	org flex.OrgID,
	id flex.AssetID,
	c AssetChange,
) (flex.Asset, error) {
	return write(ctx, s, org, func(tx *store.Tx) (flex.Asset, error) {
		if err := c.PowerFrom.lock(ctx, tx); err != nil {
			return flex.Asset{}, err
		}

		a, err := lockAsset(ctx, tx, id, lockSite)
		if err != nil {
			return a, err
		}

		err = c.PowerFrom.faults(
			tx.Now(),
			"power_from",
			"power",
			c.Power != nil,
		)
		if err != nil {
			return a, err
		}

		before := a
		if err := c.applyChecked(ctx, tx, &a); err != nil {
			return a, err
		}

		if err := tx.UpdateAsset(ctx, a); err != nil {
			return a, err
		}

		if c.PowerFrom.given() {
			a.Power = c.Power
			err = c.PowerFrom.setPower(ctx, tx, a, *c.Power)
		}

		if err == nil {
			err = replanAfterChange(ctx, tx, before, a)
		}

		return a, err
	})
}

// applyChecked checks the change and applies it, except for a power that counts from a day.
func (c *AssetChange) applyChecked(
	ctx context.Context,
	tx *store.Tx,
	a *flex.Asset,
) error {
	before := *a
	if err := c.applyNow(a); err != nil {
		return err
	}

	if c.Model != nil {
		if err := dropModel(ctx, tx, a, *c.Model, &c.AssetProperties); err != nil {
			return err
		}

		a.Model = ""
		if err := setModel(ctx, tx, a, *c.Model); err != nil {
			return err
		}
	}

	return c.check(before, *a)
}

// dropModel removes the power and the capacity that an asset has from its model, when another
// model is named. Values that were sent, or that differ from the model's, stay.
func dropModel(
	ctx context.Context,
	tx *store.Tx,
	a *flex.Asset,
	name string,
	sentFields *AssetProperties,
) error {
	if name == "" || a.Model == "" || strings.EqualFold(name, a.Model) {
		return nil
	}

	former, err := tx.Model(ctx, a.Model)
	if err != nil || former == nil {
		return err
	}

	if sentFields.Power == nil && equal(a.Power, former.Power) {
		a.Power = nil
	}

	if sentFields.Capacity == nil && equal(a.Capacity, former.Capacity) {
		a.Capacity = nil
	}

	return nil
}

// model adds the model to the fields that changed, and the properties if the model changed the
// power or the capacity.
func (m *Merged) model(before, after *flex.Asset) {
	sameRating := same(before.Power, after.Power) && same(before.Capacity, after.Capacity)
	if !sameRating && !slices.Contains(m.Updated, "properties") {
		m.Updated = append(m.Updated, "properties")
	}

	if after.Model != before.Model {
		m.Updated = append(m.Updated, "asset_model")
	}
}

// same reports whether two values are equal, or both unknown.
func same[T comparable](a, b *T) bool { return a == b || equal(a, b) }

// equal reports whether two values are known and equal.
func equal[T comparable](a, b *T) bool { return a != nil && b != nil && *a == *b }

// replanAfterChange marks a changed asset to be planned again. If its power or its phases
// changed, all assets of its site are marked, because they share the connection.
func replanAfterChange(ctx context.Context, tx *store.Tx, before, after flex.Asset) error {
	if before.RatedPower() == after.RatedPower() &&
		before.Phases == after.Phases && before.Phase == after.Phase {
		return tx.MarkDue(ctx, after.ID)
	}

	return planSite(ctx, tx, after.SiteID)
}

// planSite marks all assets of a site to be planned again. It waits for one that is being
// plugged in: before that is committed there is no session to mark, and the session's plan
// would use the site's earlier values. The site is locked before its assets, in the same order
// as by planners.
func planSite(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) error {
	if err := tx.LockSite(ctx, site); err != nil {
		return err
	}

	assets, err := tx.LockAssetsOf(ctx, site)
	if err != nil {
		return err
	}

	ids := make([]flex.AssetID, len(assets))
	for i := range assets {
		ids[i] = assets[i].ID
	}

	if err := tx.MarkDue(ctx, ids...); err != nil {
		return err
	}

	if err := tx.MarkTanksAt(ctx, site); err != nil {
		return err
	}

	return tx.MarkBatteries(ctx, site)
}

// DeleteAsset deletes an asset. If a car is plugged in, its session ends and the charger is no
// longer controlled.
func (s *Service) DeleteAsset(
	ctx context.Context,
	org flex.OrgID,
	id flex.AssetID,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		return dropAsset(ctx, tx, id)
	})
}

// dropAsset deletes an asset within a transaction.
func dropAsset(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) error {
	a, err := lockAsset(ctx, tx, id, lockToStop)
	if err != nil {
		return err
	}
	if err := stopControl(ctx, tx, a); err != nil {
		return err
	}

	return tx.DropAsset(ctx, id)
}

// OffboardAsset is DeleteAsset within the caller's transaction. It returns what was done.
func (*Service) OffboardAsset(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) (string, error) {
	return "taken away for good; its charging is free, and what it metered and earned stays", dropAsset(
		ctx,
		tx,
		id,
	)
}
