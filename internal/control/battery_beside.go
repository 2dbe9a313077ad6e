package control

import (
	"context"
	"errors"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// carsIn is what the cars of a battery's site do in a half-hour.
type carsIn struct {
	charge bool       // one is planned to charge
	given  flex.Watts // the most that they may discharge
}

// carsIn returns what the site's cars do in a half-hour; nothing where nothing shares the meter.
func (m *meter) carsIn(p flex.Period) carsIn {
	if m == nil {
		return carsIn{}
	}

	return carsIn{charge: energyIn(m.into, p) > 0, given: m.given(p)}
}

// stepOf says a mode in the words of a battery schedule, for a home that draws net beside its cars. While a car charges, a
// battery that avoids import discharges into the car. While a car gives more than the home draws, a battery that avoids
// export stores what the car gives.
func (c carsIn) stepOf(
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
	case c.given > max(0, flex.Watts(2*net)):
		return battery.AvoidImport, false
	}

	return action, deviate
}

// carsBeside reads what the cars of a battery's site do. One whose schedule cannot be read is left out.
func carsBeside(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) (*meter, error) {
	asset, err := tx.Asset(ctx, id)
	if err != nil {
		return nil, err
	}

	m := &meter{}
	if err := m.addFreed(ctx, tx, asset.SiteID); err != nil {
		return nil, err
	}

	err = m.addCars(ctx, tx, asset.SiteID)
	if errors.Is(err, store.ErrUnreadable) {
		err = nil
	}

	return m, err
}

// changedAt is when what the site's cars are to do last changed; zero without cars.
func (m *meter) changedAt() time.Time {
	var changed time.Time
	for _, car := range m.cars {
		changed = flex.Later(changed, car.Current.MadeAt)
	}

	return changed
}

// rests reports whether a battery is to do nothing in a half-hour whose mode is fixed, because cars have changed what they do since.
// Nothing is dispatched for a mode that covers the home or stores its surplus, so that such a battery can still be locked.
func (s *homeAhead) rests(i int, m battery.Mode) bool {
	if s.allowed == nil || s.kept != nil && s.kept[i] {
		return false
	}

	unsent := m == battery.ModeSelfUse || m == battery.ModeFeedIn

	return unsent && !s.allowed[i].Has(m)
}

// restedAt returns what a plan says for a half-hour, or what it said before the battery was locked there beside cars. Where an instruction
// calls the battery, it stays locked.
func (s *homeAhead) restedAt(p *store.BatteryPlan, i int) (battery.Mode, bool) {
	at := s.periods[i]
	m, ok := modeAt(p, at)
	if !ok || s.kept != nil && s.kept[i] {
		return m, ok
	}

	switch p.Modes[at.Sub(p.From)] {
	case restCodes[0]:
		return battery.ModeFeedIn, true
	case restCodes[1]:
		return battery.ModeSelfUse, true
	}

	return m, true
}

// codeOf is the code of a mode in a half-hour of a plan, of which the one before is still there. It says of a battery that rests beside cars
// what it did before.
func (s *homeAhead) codeOf(before *store.BatteryPlan, i int, m battery.Mode) byte {
	was, fixed := s.restedAt(before, i)
	fixed = fixed && s.periods[i].Start().Before(before.DispatchedTo)
	if m != battery.ModeLock || !fixed || s.ordered(i) {
		return modeCode(m)
	}

	if !s.rests(i, was) {
		return modeCode(m)
	}
	if was == battery.ModeFeedIn {
		return restCodes[0]
	}

	return restCodes[1]
}
