package grid

import (
	"context"
	"slices"
	"time"

	"flexd/internal/engine/envelope"
	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// deviceUse is what a battery or a heater is expected to draw in a span: what dispatches ask
// of a battery, and for the rest its plan.
type deviceUse struct {
	orders  []flex.Step // apart
	since   flex.Period // from which on its newest plan counts; zero without one
	joules  int64       // below zero it gives
	seconds int64       // of the span that are known
}

// readBatteries counts what the home batteries of a scope use in the span: as their inverters
// measured it throughout, else as expected.
func (u *using) readBatteries(
	ctx context.Context,
	tx *store.Tx,
	scope flex.Scope,
) error {
	found, err := u.expectedOfBatteries(
		ctx,
		tx,
		scope,
	)
	if err != nil || len(found) == 0 {
		return err
	}

	assets := make([]flex.AssetID, 0, len(found))
	for id, b := range found {
		assets = append(assets, id)
		u.countExpected(id, b)
	}

	u.NumPlugged += len(assets)
	for ids := range slices.Chunk(assets, usedChunk) {
		if err := u.measured(ctx, tx, ids, flex.BatteryInverterPower); err != nil {
			return err
		}
	}

	return nil
}

// countExpected counts what a device is expected to draw; nothing unless that is known for the
// whole span.
func (u *using) countExpected(
	id flex.AssetID,
	b *deviceUse,
) {
	use := AssetUse{
		Energy:  rounded(envelope.Joules(b.joules)),
		Planned: b.seconds == int64(u.span.Len()/time.Second),
	}

	if !use.Planned {
		use.Energy = 0
	}

	u.by[id] = use
	u.Energy += use.Energy
	if use.Planned {
		u.NumPlanned++
	}
}

// batteriesUse is what batteries are expected to draw in a span.
type batteriesUse struct {
	span  flex.Span
	asked map[flex.AssetID][]flex.Step // by dispatches
	found map[flex.AssetID]*deviceUse
}

// expectedOfBatteries returns what each battery of a scope with a plan in the span is expected
// to draw.
func (u *using) expectedOfBatteries(
	ctx context.Context,
	tx *store.Tx,
	scope flex.Scope,
) (map[flex.AssetID]*deviceUse, error) {
	orders, err := tx.BatteryOrders(ctx, u.span)
	if err != nil {
		return nil, err
	}

	all := batteriesUse{
		span:  u.span,
		asked: map[flex.AssetID][]flex.Step{},
		found: map[flex.AssetID]*deviceUse{},
	}

	for _, o := range orders {
		all.asked[o.Asset] = append(all.asked[o.Asset], flex.Step{
			Span:  o.Meet(u.span),
			Limit: o.Power,
		})
	}

	plans, err := tx.EnvelopeBatteries(ctx, scope)
	if err != nil {
		return nil, err
	}

	for i := range plans {
		all.newest(&plans[i])
	}

	days := flex.Span{
		From: flex.DayAt(u.span.From).Start(),
		To:   u.span.To,
	}

	err = tx.EachBatteryDay(ctx, scope, days, func(d *store.BatteryDay) {
		all.of(d.AssetID).day(d, u.span)
	})

	return all.found, err
}

// of returns what one battery is expected to draw.
func (a *batteriesUse) of(id flex.AssetID) *deviceUse {
	b := a.found[id]
	if b == nil {
		b = newDeviceUse(a.asked[id])
		a.found[id] = b
	}

	return b
}

// newest counts the newest plan of a battery, if a part of it is in the span.
func (a *batteriesUse) newest(p *store.EnvelopeBattery) {
	end := p.Since.Add(len(p.Powers))
	over := !end.Start().After(a.span.From)
	if over || !p.Since.Start().Before(a.span.To) {
		return
	}

	b := a.of(p.AssetID)
	b.since = p.Since
	for k, power := range p.Powers {
		b.plan(p.Since.Add(k), power, a.span)
	}
}

// newDeviceUse returns what dispatches ask of a battery.
func newDeviceUse(orders []flex.Step) *deviceUse {
	b := &deviceUse{orders: orders}
	for _, o := range orders {
		seconds := int64(o.Len() / time.Second)
		b.seconds += seconds
		b.joules += seconds * int64(o.Limit)
	}

	return b
}

// day counts the half-hours of a past day that the newest plan does not cover.
func (b *deviceUse) day(
	d *store.BatteryDay,
	span flex.Span,
) {
	counted := map[int]bool{}
	for _, h := range d.HalfHours {
		at := d.Day.Period(h.Number)
		newer := b.since != (flex.Period{}) && !at.Before(b.since)
		if counted[h.Number] || newer {
			continue
		}

		counted[h.Number] = true
		b.plan(
			at,
			h.Power,
			span,
		)
	}
}

// plan counts what a battery was planned to draw in a half-hour, except while a dispatch
// applies.
func (b *deviceUse) plan(
	at flex.Period,
	power flex.Watts,
	span flex.Span,
) {
	half := at.Span().Meet(span)
	if half.Empty() {
		return
	}

	left := half.Len()
	for _, o := range b.orders {
		left -= o.Meet(half).Len()
	}

	seconds := int64(left / time.Second)
	b.seconds += seconds
	b.joules += seconds * int64(power)
}

// measured replaces the expected energy of batteries or heaters by the measured one, from
// readings of a power.
func (u *using) measured(
	ctx context.Context,
	tx *store.Tx,
	ids []flex.AssetID,
	power flex.Label,
) error {
	by, err := u.readings(
		ctx,
		tx,
		ids,
		power,
	)
	if err != nil {
		return err
	}

	for id, own := range by {
		for i := range own {
			own[i].Label = flex.BoundaryImportPower // powers make energies alike, whatever they are of
		}

		energy, whole := u.metered(settle.HalfHours(settle.Boundary, own))
		if !whole {
			continue
		}

		was := u.by[id]
		u.Energy += energy - was.Energy
		u.NumMetered++
		if was.Planned {
			u.NumPlanned--
		}

		u.by[id] = AssetUse{
			Energy:  energy,
			Metered: true,
		}
	}

	return nil
}
