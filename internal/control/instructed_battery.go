package control

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/charge"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// callBatteries puts the plans of batteries that are called in force, and keeps who they are.
func (s *Service) callBatteries(
	ctx context.Context,
	tx *store.Tx,
	by *flex.Instruction,
	calls []*called,
) error {
	var kept []store.Called
	var locked []lockedBattery
	for _, c := range calls {
		b, device, err := lockBattery(ctx, tx, c.id)
		if err != nil {
			return err
		}

		if b != nil && b.Controlled {
			kept = append(kept, c.deviceRecord())
			locked = append(locked, lockedBattery{c, b, device})
		}
	}

	if err := tx.AddCalled(ctx, by.ID, kept); err != nil {
		return fmt.Errorf("keep which batteries are called: %w", err)
	}

	var caps capsKept
	for i := range locked {
		err := s.callBattery(
			ctx,
			tx,
			by,
			&locked[i],
			&caps,
		)

		if err != nil {
			return fmt.Errorf("call battery %v: %w", locked[i].id, err)
		}
	}

	return nil
}

// lockedBattery is a battery that is called, and that nobody else changes meanwhile.
type lockedBattery struct {
	*called
	known  *store.Battery
	device home.Battery
}

// callBattery plans a battery that is called, and replaces what it was sent before.
func (s *Service) callBattery(
	ctx context.Context,
	tx *store.Tx,
	by *flex.Instruction,
	c *lockedBattery,
	caps *capsKept,
) error {
	resent := c.called.device.sendTo(&c.known.Plan, flex.PeriodAt(tx.Now()))
	if err := s.planLocked(ctx, tx, c.known, c.device, caps); err != nil {
		return err
	}

	return sendAgain(ctx, tx, c.id, by, resent)
}

// sendTo puts the modes of a call into a plan, and returns the half-hours that were
// dispatched, or have begun, with another mode.
func (d *calledDevice) sendTo(
	plan *store.BatteryPlan,
	first flex.Period,
) []flex.Period {
	var resent []flex.Period
	for _, at := range d.kept {
		p := flex.PeriodAt(at.From)
		m, _ := modeAt(&d.battery.modes, p)
		was, planned := modeAt(plan, p)
		if !planned {
			continue
		}

		setMode(plan, p, m)
		sent := p == first || p.Start().Before(plan.DispatchedTo)
		if sent && m != was {
			resent = append(resent, p)
		}
	}

	return resent
}

// setMode has a plan say a mode in a half-hour.
func setMode(
	p *store.BatteryPlan,
	at flex.Period,
	m battery.Mode,
) {
	modes := []byte(p.Modes)
	modes[at.Sub(p.From)] = modeCode(m)
	p.Modes = string(modes)
}

// sendAgain dispatches what a battery's plan has in some half-hours of an instruction, in the
// place of what was sent before.
func sendAgain(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	by *flex.Instruction,
	resent []flex.Period,
) error {
	if len(resent) == 0 {
		return nil
	}

	e, err := tx.Endpoint(ctx, flex.DispatchEndpoint)
	if err != nil {
		return err
	}

	b, err := tx.Battery(ctx, asset)
	if err != nil {
		return err
	}

	from := flex.Later(by.From, tx.Now().Add(time.Minute-1).Truncate(time.Minute))
	for _, p := range resent {
		d, ok := dispatchOf(&b, by, p, from)
		if !ok {
			continue
		}

		d.Batch = e.Batch
		if _, err := tx.AddDispatch(ctx, d); err != nil {
			return err
		}
	}

	return nil
}

// dispatchOf is what a battery's plan has in a half-hour from an instant on, as a dispatch for
// an instruction; false where nothing of it is left.
func dispatchOf(
	b *store.Battery,
	by *flex.Instruction,
	p flex.Period,
	from time.Time,
) (store.Dispatch, bool) {
	d := store.Dispatch{
		Own:    true,
		Market: by.Service,
		Span:   p.Span(),
	}

	d.From = flex.Later(d.From, from)
	if p.End().After(by.To) {
		d.Market = dispatchMarket // in the hour after it
	}

	k := p.Sub(b.Plan.StoredAt)
	known := min(len(b.Plan.Powers), len(b.Plan.Without))
	if k < 0 || k >= known {
		return d, false
	}

	d.Assets = []store.DispatchedAsset{{
		ID:      b.Asset.ID,
		Power:   b.Plan.Powers[k],
		Without: b.Plan.Without[k : k+1],
	}}

	return d, !d.Empty()
}

// releaseBatteries takes back what batteries were sent for an instruction that calls them no
// more, as it is taken back under a cap: a dispatch of no power replaces it in half-hours that
// were dispatched. Later ones are planned again.
func (s *Service) releaseBatteries(
	ctx context.Context,
	tx *store.Tx,
	assets []flex.AssetID,
) error {
	freed, err := tx.FreedBatteries(ctx, assets)
	if err != nil {
		return fmt.Errorf("read which batteries are released: %w", err)
	}

	var kept capsKept
	for i := range freed {
		b, device, err := lockBattery(ctx, tx, freed[i].AssetID)
		if err != nil {
			return err
		}

		if b == nil {
			continue
		}

		if freed[i].Dispatched {
			err = takeBackNamed(ctx, tx, b.Plan, &freed[i])
		} else {
			err = takeBackCall(ctx, tx, b, &freed[i])
		}

		if err != nil {
			return err
		}

		if !b.Controlled {
			continue
		}

		if err := s.planLocked(ctx, tx, b, device, &kept); err != nil {
			return err
		}
	}

	return nil
}

// leastTakenBack is how far the power of a half-hour that was dispatched must be from what the
// battery would have had for it to be taken back.
const leastTakenBack = flex.Watts(100)

// changedIn reports whether a call changed what a battery does in a half-hour.
func changedIn(
	c *store.Called,
	p flex.Period,
) bool {
	span := p.Span().Meet(flex.Span{From: c.Baseline[0].From, To: p.End()})
	moved := drawnOf(c, c.Expected, span) - drawnOf(c, c.Baseline, span)
	least := charge.Joules(leastTakenBack) * charge.Joules(span.Len()/time.Second)

	return max(moved, -moved) >= least
}

// takeBackCall has a battery do nothing in half-hours that a call changed and that were
// dispatched.
func takeBackCall(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	c *store.Called,
) error {
	now := flex.PeriodAt(tx.Now())
	for _, at := range c.Closed {
		p := flex.PeriodAt(at.From)
		sent := p == now || p.Start().Before(b.Plan.DispatchedTo)
		m, planned := modeAt(&b.Plan, p)
		moves := m == battery.ModeCharge || m == battery.ModeDischarge
		if !sent || !planned || !moves {
			continue
		}

		if p.Before(now) || !changedIn(c, p) {
			continue
		}

		setMode(&b.Plan, p, battery.ModeLock)
		b.Plan.DispatchedTo = flex.Later(b.Plan.DispatchedTo, p.End())
		rest := p.Span()
		rest.From = flex.Later(rest.From, tx.Now().Truncate(time.Minute))
		if err := dispatchZero(ctx, tx, b.Asset.ID, &b.Plan, rest); err != nil {
			return fmt.Errorf("take a dispatch back: %w", err)
		}
	}

	return nil
}
