package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// CreateAsset registers a new asset at a site. One with the same external id is a Conflict,
// a site or a model that is not known NotFound.
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

// newAsset keeps an asset whose external id is free.
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

// setPhases gives the asset its phases, and which of three one on one phase is on, as far as they were sent; 0 and an empty name
// take them away. What no asset has is a fault.
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

// setHeat gives the asset what was sent of its heat, in the place of all that it had. What no such asset has is a fault.
func setHeat(a *flex.Asset, heat *flex.Heat) error {
	if heat == nil {
		return nil
	}

	member, why := heat.Check(a.Type)
	if why != "" {
		loc, field := []string{"properties", "heat"}, member
		if member == "" {
			loc, field = []string{"properties"}, "heat"
		}
		return invalid([]flex.Fault{faultAt("value_error", why, loc, field)})
	}

	a.Heat = *heat

	return nil
}

// setModel gives the asset the model, if one is named, and with it the power and capacity
// that nobody has sent. A model of another type of asset is Malformed.
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

// AssetByExternalID returns the asset with the vendor's own id.
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

// AssetPage is a page of assets and how many there are in all.
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

// AssetChange is what is to change of an asset; what is nil stays.
type AssetChange struct {
	AssetProperties
	Model       *string // empty takes the model away
	InstalledOn *string
	PowerFrom   Dating
}

// applyNow gives the asset what was sent, but for a power with a day of its own.
func (c *AssetChange) applyNow(a *flex.Asset) error {
	setIfSent(&a.InstalledOn, c.InstalledOn)

	now := c.AssetProperties
	if c.PowerFrom.given() {
		now.Power = nil
	}

	return now.apply(a)
}

// check refuses what the change leaves that no asset of its type has: a power with a day of its own too.
func (c *AssetChange) check(before, after flex.Asset) error {
	after.Power = givenOr(c.Power, after.Power)
	return checkAsset(&before, &after)
}

// ChangeAsset changes an asset. Its type, site and external id never change. A power's day that
// lies ahead is a fault; one of which something was settled is a Conflict.
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
			err = planAgain(ctx, tx, before, a)
		}

		return a, err
	})
}

// applyChecked changes the asset, if it may be changed so, but for a power that counts from a day.
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

// dropModel takes away the power and the capacity that an asset has of its model, where another model is named in its place. What
// was sent with it, or differs from the model, stays.
func dropModel(
	ctx context.Context,
	tx *store.Tx,
	a *flex.Asset,
	name string,
	sent *AssetProperties,
) error {
	if name == "" || a.Model == "" || strings.EqualFold(name, a.Model) {
		return nil
	}

	former, err := tx.Model(ctx, a.Model)
	if err != nil || former == nil {
		return err
	}

	if sent.Power == nil && equal(a.Power, former.Power) {
		a.Power = nil
	}

	if sent.Capacity == nil && equal(a.Capacity, former.Capacity) {
		a.Capacity = nil
	}

	return nil
}

// model names the model of an asset among the fields that changed, and the properties too where the model gave it another power
// or capacity, or took one away.
func (m *Merged) model(before, after *flex.Asset) {
	rated := same(before.Power, after.Power) && same(before.Capacity, after.Capacity)
	if !rated && !slices.Contains(m.Updated, "properties") {
		m.Updated = append(m.Updated, "properties")
	}

	if after.Model != before.Model {
		m.Updated = append(m.Updated, "asset_model")
	}
}

// same reports whether two values are the same, or both are not known.
func same[T comparable](a, b *T) bool { return a == b || equal(a, b) }

// equal reports whether two values are known and the same.
func equal[T comparable](a, b *T) bool { return a != nil && b != nil && *a == *b }

// planAgain has an asset that changed planned again, and where its power or its phases changed all assets
// of its site, which share what the connection carries.
func planAgain(ctx context.Context, tx *store.Tx, before, after flex.Asset) error {
	if before.RatedPower() == after.RatedPower() &&
		before.Phases == after.Phases && before.Phase == after.Phase {
		return tx.MarkDue(ctx, after.ID)
	}

	return planSite(ctx, tx, after.SiteID)
}

// planSite has all assets of a site planned again. One that is just being plugged in is waited for: until that is committed there is no session
// to mark, and it is planned by what the site was before. The site is locked before its assets, as by whoever plans them.
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

// DeleteAsset deletes an asset. If a car is plugged in, the session ends and the charger is
// set free.
func (s *Service) DeleteAsset(
	ctx context.Context,
	org flex.OrgID,
	id flex.AssetID,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		return dropAsset(ctx, tx, id)
	})
}

// dropAsset is DeleteAsset within a transaction.
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

// OffboardAsset is DeleteAsset within a transaction of somebody else's. It says what was done.
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
