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

// callBatteries puts the plans of called batteries in force, and records the calls.
func (s *Service) callBatteries(
	ctx context.Context,
	tx *store.Tx,
	by *flex.Instruction,
	calls []*callableAsset,
) error {
	var records []store.Called
	var locked []lockedCall
	for _, c := range calls {
		b, device, err := lockBattery(ctx, tx, c.id)
		if err != nil {
			return err
		}

		if b != nil && b.Controlled {
			records = append(records, c.deviceRecord())
			locked = append(locked, lockedCall{c, b, device})
		}
	}

	if err := tx.AddCalled(ctx, by.ID, records); err != nil {
		return fmt.Errorf("keep which batteries are called: %w", err)
	}

	var caps headroomCache
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

// lockedCall is a called battery that is locked in the transaction.
type lockedCall struct {
	*callableAsset
	known  *store.Battery
	device home.Battery
}

// callBattery plans a called battery, and dispatches again what it was sent before with
// another mode.
func (s *Service) callBattery(
	ctx context.Context,
	tx *store.Tx,
	by *flex.Instruction,
	c *lockedCall,
	caps *headroomCache,
) error {
	changed := c.callableAsset.device.applyTo(&c.known.Plan, flex.PeriodAt(tx.Now()))
	if err := s.planLocked(ctx, tx, c.known, c.device, caps); err != nil {
		return err
	}

	return redispatch(ctx, tx, c.id, by, changed)
}

// applyTo writes the modes of a call into a plan. It returns the half-hours that were
// dispatched, or have begun, with another mode.
func (d *callableDevice) applyTo(
	plan *store.BatteryPlan,
	first flex.Period,
) []flex.Period {
	var changed []flex.Period
	for _, at := range d.restricted {
		p := flex.PeriodAt(at.From)
		m, _ := modeAt(&d.battery.modes, p)
		previous, planned := modeAt(plan, p)
		if !planned {
			continue
		}

		setMode(plan, p, m)
		sent := p == first || p.Start().Before(plan.DispatchedTo)
		if sent && m != previous {
			changed = append(changed, p)
		}
	}

	return changed
}

// setMode sets the mode of a half-hour in a plan.
func setMode(
	p *store.BatteryPlan,
	at flex.Period,
	m battery.Mode,
) {
	modes := []byte(p.Modes)
	modes[at.Sub(p.From)] = modeCode(m)
	p.Modes = string(modes)
}

// redispatch dispatches a battery's plan in some half-hours of an instruction, in place of
// what was sent before.
func redispatch(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	by *flex.Instruction,
	changed []flex.Period,
) error {
	if len(changed) == 0 {
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
	for _, p := range changed {
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

// dispatchOf returns a half-hour of a battery's plan, from an instant on, as a dispatch for an
// instruction; false if nothing of it remains.
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

// releaseBatteries withdraws what batteries were sent for an instruction that no longer calls
// them: dispatched half-hours are replaced by dispatches of 0 kW, and later ones are planned
// again.
func (s *Service) releaseBatteries(
	ctx context.Context,
	tx *store.Tx,
	assets []flex.AssetID,
) error {
	released, err := tx.FreedBatteries(ctx, assets)
	if err != nil {
		return fmt.Errorf("read which batteries are released: %w", err)
	}

	var cache headroomCache
	for i := range released {
		b, device, err := lockBattery(ctx, tx, released[i].AssetID)
		if err != nil {
			return err
		}

		if b == nil {
			continue
		}

		if released[i].Dispatched {
			err = withdrawDispatched(ctx, tx, b.Plan, &released[i])
		} else {
			err = withdrawCall(ctx, tx, b, &released[i])
		}

		if err != nil {
			return err
		}

		if !b.Controlled {
			continue
		}

		if err := s.planLocked(ctx, tx, b, device, &cache); err != nil {
			return err
		}
	}

	return nil
}

// minWithdrawn is by how much a call must have changed the power of a dispatched half-hour
// for the half-hour to be withdrawn.
const minWithdrawn = flex.Watts(100)

// callChanged reports whether a call changed what a battery does in a half-hour.
func callChanged(
	c *store.Called,
	p flex.Period,
) bool {
	span := p.Span().Meet(flex.Span{From: c.Baseline[0].From, To: p.End()})
	moved := drawnOf(c, c.Expected, span) - drawnOf(c, c.Baseline, span)
	least := charge.Joules(minWithdrawn) * charge.Joules(span.Len()/time.Second)

	return max(moved, -moved) >= least
}

// withdrawCall has a battery do nothing in the rest of half-hours that a call changed and that
// were dispatched.
func withdrawCall(
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

		if p.Before(now) || !callChanged(c, p) {
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
