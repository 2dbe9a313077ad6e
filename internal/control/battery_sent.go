package control

import (
	"context"
	"fmt"
	"slices"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// ownSent is what a battery was sent for a half-hour by its own plan, or by an instruction.
type ownSent struct {
	ordered bool       // a dispatch of it is followed, or still to be accepted
	power   flex.Watts // that the newest of these asks for
	refused bool       // a newer one is not followed
}

// mode is what a battery does by the dispatch that is in force; without one it covers the home and stores its surplus.
func (o ownSent) mode() battery.Mode {
	if !o.ordered {
		return battery.ModeSelfUse
	}

	return order{power: o.power}.mode()
}

// readSent reads which half-hours ahead a battery was sent something for. It is read after all that the transaction itself takes back.
func (s *homeAhead) readSent(
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

	s.sent = make([]ownSent, len(s.periods))
	for i, p := range s.periods {
		for _, o := range orders {
			if !o.Meet(p.Span()).Empty() {
				s.sent[i].add(&o)
			}
		}
	}

	return nil
}

// add counts a dispatch that is newer than all before.
func (o *ownSent) add(newer *store.BatteryOrder) {
	if newer.NotFollowed {
		o.refused = true
		return
	}

	*o = ownSent{ordered: true, power: newer.Power}
}

// isRefused reports whether a battery does not follow what it was sent for a half-hour.
func (s *homeAhead) isRefused(i int) bool { return s.sent != nil && s.sent[i].refused }

// isFixed reports whether a plan may no longer change a half-hour: something was sent for it, it has begun, or somebody else decides.
// Where nothing was sent the battery goes by the newest plan.
func (s *homeAhead) isFixed(plan *store.BatteryPlan, i int) bool {
	if !s.periods[i].Start().Before(plan.DispatchedTo) {
		return false
	}

	unsent := s.sent != nil && s.sent[i] == ownSent{}
	others := s.ordered(i) || s.kept != nil && s.kept[i]

	return !unsent || others || i == 0
}

// sentMode is the mode of a half-hour that is fixed, of which the plan says another one: what was refused is not done, and what was
// reported as followed after all is.
func (s *homeAhead) sentMode(i int, planned battery.Mode) battery.Mode {
	if s.sent == nil {
		return planned
	}

	o := s.sent[i]
	moves := planned != battery.ModeSelfUse && planned != battery.ModeFeedIn
	if o.refused || o.ordered && !moves {
		return o.mode()
	}

	return planned
}

// fixedModes returns the modes of the half-hours that are fixed, by their index.
func (s *homeAhead) fixedModes(old *store.BatteryPlan) map[int]battery.Mode {
	fixed := map[int]battery.Mode{}
	for i := range s.periods {
		if !s.isFixed(old, i) {
			continue
		}

		m, ok := s.restedAt(old, i)
		if !ok {
			break
		}

		m = s.sentMode(i, m)
		if s.ordered(i) || s.rests(i, m) {
			m = battery.ModeLock
		}
		fixed[i] = m
	}

	return fixed
}

// fix has a problem that begins with one of the half-hours keep to the modes that are fixed from there on.
func fix(
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
