package control

import (
	"context"
	"fmt"
	"slices"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// ownDispatch is what a battery was sent for a half-hour by its own plan, or by an
// instruction.
type ownDispatch struct {
	isSet   bool       // a dispatch is followed, or not yet answered
	power   flex.Watts // of the newest of these
	refused bool       // a newer one is not followed
}

// mode returns what a battery does by the dispatch in force; without one it is in SELF_USE.
func (o ownDispatch) mode() battery.Mode {
	if !o.isSet {
		return battery.ModeSelfUse
	}

	return dispatchedPeriod{power: o.power}.mode()
}

// readOwnDispatches reads what a battery was sent for future half-hours. It must be called
// after everything that the transaction itself withdraws.
func (s *batteryInputs) readOwnDispatches(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
) error {
	if len(s.periods) == 0 || !b.Plan.DispatchedTo.After(s.periods[0].Start()) {
		return nil
	}

	orders, err := tx.OwnOrders(ctx, b.Asset.ID, flex.Span{
		From: s.periods[0].Start(),
		To:   b.Plan.DispatchedTo,
	})
	if err != nil {
		return fmt.Errorf("read what a battery was sent: %w", err)
	}

	s.ownDispatches = make([]ownDispatch, len(s.periods))
	for i, p := range s.periods {
		for _, o := range orders {
			if !o.Meet(p.Span()).Empty() {
				s.ownDispatches[i].add(&o)
			}
		}
	}

	return nil
}

// add takes a dispatch into account that is newer than all before.
func (o *ownDispatch) add(newer *store.BatteryOrder) {
	if newer.NotFollowed {
		o.refused = true
		return
	}

	*o = ownDispatch{isSet: true, power: newer.Power}
}

// isRefused reports whether a battery does not follow what it was sent for a half-hour.
func (s *batteryInputs) isRefused(i int) bool {
	return s.ownDispatches != nil && s.ownDispatches[i].refused
}

// isFixed reports whether a plan may no longer change a half-hour: something was sent for it,
// it has begun, or a dispatch or instruction decides. A battery to which nothing was sent
// follows the newest plan.
func (s *batteryInputs) isFixed(plan *store.BatteryPlan, i int) bool {
	if !s.periods[i].Start().Before(plan.DispatchedTo) {
		return false
	}

	unsent := s.ownDispatches != nil && s.ownDispatches[i] == ownDispatch{}
	others := s.isDispatched(i) || s.fixed != nil && s.fixed[i]

	return !unsent || others || i == 0
}

// sentMode returns the mode of a fixed half-hour if it differs from the planned one: a refused
// dispatch is not followed, and one that was reported as followed afterwards is.
func (s *batteryInputs) sentMode(i int, planned battery.Mode) battery.Mode {
	if s.ownDispatches == nil {
		return planned
	}

	o := s.ownDispatches[i]
	moves := planned != battery.ModeSelfUse && planned != battery.ModeFeedIn
	if o.refused || o.isSet && !moves {
		return o.mode()
	}

	return planned
}

// fixedModes returns the modes of the half-hours that are fixed, by their index.
func (s *batteryInputs) fixedModes(old *store.BatteryPlan) map[int]battery.Mode {
	fixed := map[int]battery.Mode{}
	for i := range s.periods {
		if !s.isFixed(old, i) {
			continue
		}

		m, ok := s.modeBeforeLock(old, i)
		if !ok {
			break
		}

		m = s.sentMode(i, m)
		if s.isDispatched(i) || s.lockForCars(i, m) {
			m = battery.ModeLock
		}
		fixed[i] = m
	}

	return fixed
}

// fixModes restricts a problem, whose first half-hour is given by its index, to the fixed
// modes.
func fixModes(
	p *battery.ModeProblem,
	first int,
	fixed map[int]battery.Mode,
) {
	for i, m := range fixed {
		if i < first {
			continue
		}

		if p.Allowed == nil {
			p.Allowed = slices.Repeat([]battery.ModeSet{battery.AllModes}, len(p.Import))
		} else {
			p.Allowed = slices.Clone(p.Allowed)
		}
		p.Allowed[i-first] = battery.Modes(m)
	}
}
