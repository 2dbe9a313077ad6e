package registry

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// CarDischarge is the kind of consent to discharge a site's cars.
const CarDischarge = store.CarDischarge

// DischargeChange is a change of how a car may be discharged; a nil field is unchanged.
type DischargeChange struct {
	Power          *flex.Watts // 0 removes it
	Reserve        *flex.WattHours
	ReservePercent *float64
	Wear           *float64
}

// appliedTo returns d with the change applied. A reserve replaces one in the other unit.
func (c *DischargeChange) appliedTo(d flex.Discharge) flex.Discharge {
	if c.Power != nil {
		d.Power = *c.Power
	}
	if c.Reserve != nil {
		d.Reserve, d.ReservePercent = c.Reserve, nil
	}
	if c.ReservePercent != nil {
		d.Reserve, d.ReservePercent = nil, c.ReservePercent
	}

	d.Wear = inputOr(c.Wear, d.Wear)

	return d
}

// changes reports whether the change differs from the known values.
func (c *DischargeChange) changes(d *flex.Discharge) bool {
	next := c.appliedTo(*d)
	return next.Power != d.Power || differ(next.Reserve, d.Reserve) ||
		differ(next.ReservePercent, d.ReservePercent) ||
		differ(next.Wear, d.Wear)
}

// differ reports whether two values are different, or one of them is unknown.
func differ[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a != b
	}
	return *a != *b
}

// setDischarge changes how an asset may be discharged.
func setDischarge(a *flex.Asset, c *DischargeChange) error {
	if *c == (DischargeChange{}) {
		return nil
	}

	if c.Reserve != nil && c.ReservePercent != nil {
		return dischargeFault(
			"two reserves: give reserve_pct or reserve_kwh",
			"reserve_kwh",
		)
	}

	next := c.appliedTo(a.Discharge)
	if err := dischargesFault(a.Type, next); err != nil {
		return err
	}

	a.Discharge = next

	return nil
}

// dischargesFault refuses properties that an asset of the type does not have: a home battery
// has only its wear.
func dischargesFault(t flex.AssetType, d flex.Discharge) error {
	reason := fmt.Sprintf("it is a %s: only chargers and cars are said to discharge so", t)
	if t == flex.Battery {
		d.Wear = nil
		reason = "it is a battery: it discharges at its power_kw, and of this has wear_p_per_kwh alone"
	}

	if t.Charges() || !d.Known() {
		return nil
	}

	return dischargeFault(reason, firstSetField(d))
}

// firstSetField returns the name of the first discharge property that is set.
func firstSetField(d flex.Discharge) string {
	switch {
	case d.Power > 0:
		return "discharge_power_kw"
	case d.Reserve != nil:
		return "reserve_kwh"
	case d.ReservePercent != nil:
		return "reserve_pct"
	}

	return "wear_p_per_kwh"
}

// checkDischarge refuses changed values that no car can have, after the asset's model has set
// those that were not sent. Earlier values that are unchanged are accepted: assets may be
// older than these rules, and clients send the same values again.
func checkDischarge(before, a *flex.Asset) error {
	if a.Discharge.Power > 0 {
		if err := powerFault(before, a); err != nil {
			return err
		}
	}

	return reserveFault(before, a)
}

// powerFault refuses a discharge power that no car has, and one for a battery of unknown
// capacity.
func powerFault(before, a *flex.Asset) error {
	power := a.Discharge.Power
	other := power != before.Discharge.Power

	if other && power < flex.DischargePowerMin {
		return dischargeFault(
			fmt.Sprintf(
				"%g kW is less than any car is asked to give: give %g kW at least, or 0 to have it charged alone",
				power.KW(),
				flex.DischargePowerMin.KW(),
			),
			"discharge_power_kw",
		)
	}

	resized := differ(before.Capacity, a.Capacity)
	if known := a.Capacity != nil && *a.Capacity > 0; !known && (other || resized) {
		return dischargeFault(
			"a car that may discharge needs it: give what its battery holds when it is full, or a discharge_power_kw of 0",
			"capacity_kwh",
		)
	}

	return nil
}

// reserveFault refuses a reserve above the battery's capacity; the fault is at the property
// that was changed. The reserve of a car that is only charged is not compared with other
// properties.
func reserveFault(before, a *flex.Asset) error {
	reserve := a.Discharge.Reserve

	if reserve == nil || a.Capacity == nil || *a.Capacity == 0 {
		return nil
	}

	if *reserve <= *a.Capacity {
		return nil
	}

	if differ(before.Discharge.Reserve, reserve) {
		return tooMuchReserve(*reserve, *a.Capacity)
	}

	if a.Discharge.Power == 0 {
		return nil
	}

	if differ(before.Capacity, a.Capacity) {
		return dischargeFault(
			fmt.Sprintf(
				"its reserve_kwh is %[1]g: give %[1]g kWh at least, or a lower reserve_kwh with it",
				reserve.KWh(),
			),
			"capacity_kwh",
		)
	}

	if before.Discharge.Power == 0 { // it was only charged
		return tooMuchReserve(*reserve, *a.Capacity)
	}

	return nil
}

func tooMuchReserve(reserve, capacity flex.WattHours) error {
	return dischargeFault(
		fmt.Sprintf(
			"%g kWh do not stay in a battery of %[2]g: give %[2]g at most",
			reserve.KWh(),
			capacity.KWh(),
		),
		"reserve_kwh",
	)
}

func dischargeFault(reason, field string) error {
	return invalid([]flex.Fault{faultAt(
		"value_error",
		reason,
		[]string{"properties"},
		field,
	)})
}

// DischargeConsent is the consent to discharge a site's cars, with its history, oldest first.
type DischargeConsent struct {
	GivenAt time.Time // zero if it is not in force
	History []ConsentStep
}

// ConsentStep is one event at which a consent was given or withdrawn.
type ConsentStep struct {
	GivenAt    time.Time // zero when it was withdrawn
	RecordedAt time.Time
}

// DischargeConsent returns the consent to discharge a site's cars.
func (s *Service) DischargeConsent(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
) (DischargeConsent, error) {
	return read(ctx, s, org, func(tx *store.Tx) (DischargeConsent, error) {
		site, err := tx.Site(ctx, id)

		var c DischargeConsent
		if err != nil {
			return c, err
		}

		c.GivenAt = site.DischargeConsentAt

		all, err := tx.Consents(ctx, id)
		for _, owner := range all {
			if owner.Kind == CarDischarge {
				c.History = append(c.History, ConsentStep{owner.GivenAt, owner.RecordedAt})
			}
		}

		return c, err
	})
}

// GiveDischargeConsent records when the user consented to the discharge of the site's cars. An
// instant in the future is Malformed, and so is one before the last withdrawal, which would be
// the consent that was withdrawn.
func (s *Service) GiveDischargeConsent(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
	at time.Time,
) (flex.SiteRecord, error) {
	return write(ctx, s, org, func(tx *store.Tx) (flex.SiteRecord, error) {
		site, err := lockSite(ctx, tx, id)

		var r flex.SiteRecord
		if err != nil {
			return r, err
		}

		if at.After(tx.Now().Add(clockSlack)) {
			return r, flex.Fail(
				flex.Malformed,
				"gave_discharge_consent_at lies in the future: give the instant at which the user consented",
			)
		}

		withdrawn, err := dischargeWithdrawn(ctx, tx, id)
		if err != nil {
			return r, err
		}
		if !at.After(withdrawn) {
			return r, flex.Fail(
				flex.Malformed,
				"the user withdrew the consent to discharge at %s: gave_discharge_consent_at must be later, of a new consent",
				withdrawn.UTC().Format(time.RFC3339),
			)
		}

		if !at.Equal(site.DischargeConsentAt) {
			if err := tx.SetDischargeConsent(ctx, id, at); err != nil {
				return r, err
			}
		}

		return tx.SiteRecord(ctx, id)
	})
}

// dischargeWithdrawn returns when the consent to discharge a site's cars was last withdrawn;
// zero if it never was.
func dischargeWithdrawn(
	ctx context.Context,
	tx *store.Tx,
	id flex.SiteID,
) (time.Time, error) {
	all, err := tx.Consents(ctx, id)

	var at time.Time
	for _, c := range all {
		if c.Kind == CarDischarge && c.GivenAt.IsZero() {
			at = c.RecordedAt
		}
	}

	return at, err
}

// WithdrawDischargeConsent records that the user withdrew the consent to discharge the site's
// cars. A site without the consent is unchanged.
func (s *Service) WithdrawDischargeConsent(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
) (flex.SiteRecord, error) {
	return write(ctx, s, org, func(tx *store.Tx) (flex.SiteRecord, error) {
		site, err := lockSite(ctx, tx, id)

		var r flex.SiteRecord
		if err != nil {
			return r, err
		}

		if !site.DischargeConsentAt.IsZero() {
			err := tx.SetDischargeConsent(ctx, id, time.Time{})
			if err != nil {
				return r, err
			}
		}

		return tx.SiteRecord(ctx, id)
	})
}

// setDischargeConsent records that a site's user gave or withdrew the consent to discharge.
func (s *Service) setDischargeConsent(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
	now time.Time,
	given bool,
) error {
	var err error
	if given {
		_, err = s.GiveDischargeConsent(ctx, org, id, now)
	} else {
		_, err = s.WithdrawDischargeConsent(ctx, org, id)
	}

	return err
}
