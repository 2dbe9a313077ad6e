package control

import (
	"context"
	"errors"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// carActivity is what the cars of a battery's site may do in a half-hour.
type carActivity struct {
	charge       bool       // one is planned to charge
	maxDischarge flex.Watts // the most that they may discharge
}

// carsIn returns what the site's cars may do in a half-hour; nothing if nothing shares
// the meter.
func (m *meter) carsIn(p flex.Period) carActivity {
	if m == nil {
		return carActivity{}
	}

	return carActivity{charge: energyIn(m.noDischargeInto, p) > 0, maxDischarge: m.carDischarge(p)}
}

// stepOf converts a mode to an action of a battery schedule, for a home with a net load. While
// a car charges, a battery that avoids import would discharge into it. While a car discharges
// more than the home draws, a battery that avoids export would store that.
func (c carActivity) stepOf(
	mode battery.Mode,
	net flex.WattHours,
) (battery.Action, bool) {
	action, deviate := battery.StepOf(mode, net)
	avoids := action == battery.AvoidImport || action == battery.AvoidExport

	switch {
	case !avoids:
		return action, deviate
	case c.charge:
		return battery.AvoidExport, false
	case c.maxDischarge > max(0, flex.Watts(2*net)):
		return battery.AvoidImport, false
	}

	return action, deviate
}

// readCarsAt reads what the cars of a battery's site may do. A car whose schedule cannot be
// read is left out.
func readCarsAt(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) (*meter, error) {
	asset, err := tx.Asset(ctx, id)
	if err != nil {
		return nil, err
	}

	m := &meter{}
	if err := m.addUncontrolledCars(ctx, tx, asset.SiteID); err != nil {
		return nil, err
	}

	err = m.addCars(ctx, tx, asset.SiteID)
	if errors.Is(err, store.ErrUnreadable) {
		err = nil
	}

	return m, err
}

// changedAt returns when a schedule of the site's cars last changed; zero without cars.
func (m *meter) changedAt() time.Time {
	var changed time.Time
	for _, car := range m.cars {
		changed = flex.Later(changed, car.Current.MadeAt)
	}

	return changed
}

// lockForCars reports whether a battery is to be locked in a half-hour with a fixed mode,
// because cars have changed what they do since. That is possible where the mode covers the
// home or stores its surplus, as nothing is dispatched for these modes.
func (s *batteryInputs) lockForCars(i int, m battery.Mode) bool {
	if s.allowed == nil || s.fixed != nil && s.fixed[i] {
		return false
	}

	unsent := m == battery.ModeSelfUse || m == battery.ModeFeedIn

	return unsent && !s.allowed[i].Has(m)
}

// modeBeforeLock returns the mode of a half-hour in a plan, or the one from before the battery
// was locked there because of cars. Where an instruction calls the battery, it stays locked.
func (s *batteryInputs) modeBeforeLock(p *store.BatteryPlan, i int) (battery.Mode, bool) {
	at := s.periods[i]
	m, ok := modeAt(p, at)
	if !ok || s.fixed != nil && s.fixed[i] {
		return m, ok
	}

	switch p.Modes[at.Sub(p.From)] {
	case carLockCodes[0]:
		return battery.ModeFeedIn, true
	case carLockCodes[1]:
		return battery.ModeSelfUse, true
	}

	return m, true
}

// codeOf returns the code of a mode in a half-hour, given the plan before. For a battery that
// is locked because of cars the code preserves its earlier mode.
func (s *batteryInputs) codeOf(before *store.BatteryPlan, i int, m battery.Mode) byte {
	previous, fixed := s.modeBeforeLock(before, i)
	fixed = fixed && s.periods[i].Start().Before(before.DispatchedTo)
	if m != battery.ModeLock || !fixed || s.isDispatched(i) {
		return modeCode(m)
	}

	if !s.lockForCars(i, previous) {
		return modeCode(m)
	}
	if previous == battery.ModeFeedIn {
		return carLockCodes[0]
	}

	return carLockCodes[1]
}
