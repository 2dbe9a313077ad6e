package control

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// feederExport has the export limits of the constraint groups around a battery or a car, the
// innermost first, and what the groups' batteries and cars export.
//
// A battery that only covers its home exports nothing. Else it counts with its full power in
// each half-hour in which it is to discharge, as the load of its home is only an estimate. A
// car counts with the most of any schedule that its charger may be following. A limit applies
// to each half-hour that it touches. The asset that is planned first has the headroom, to the
// end of its plan.
type feederExport struct {
	groups []*groupExport
}

// groupExport has the export limits of one constraint group, and the batteries and cars in it
// and in the groups inside it.
type groupExport struct {
	name      string
	limits    []flex.CapLimit
	batteries []store.CapBattery
	indexOf   map[flex.AssetID]int       // the index of a battery in batteries
	cars      map[flex.AssetID]loadBound // by all schedules that their chargers may be following
	totals    map[flex.Period]flex.Watts // the sum of their export, as far as it was computed
}

// feederCache caches the groups' export for several assets that are compared while nothing is
// planned. Nil caches nothing.
type feederCache map[string]*groupExport

// read reads the export limits of an asset's feeder; nil if there are none.
func (k feederCache) read(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) (*feederExport, error) {
	names, err := tx.ExportLimited(ctx, asset)
	if err != nil || len(names) == 0 {
		return nil, err
	}

	e := &feederExport{}
	for _, name := range names {
		g := k[name]
		if g == nil {
			g, err = readExport(ctx, tx, name)
		}
		if err != nil {
			return nil, err
		}

		if k != nil {
			k[name] = g
		}
		e.groups = append(e.groups, g)
	}

	return e, nil
}

// readExport reads what limits the export of a constraint group.
func readExport(
	ctx context.Context,
	tx *store.Tx,
	group string,
) (*groupExport, error) {
	limits, err := tx.ExportLimits(ctx)
	if err != nil {
		return nil, err
	}

	batteries, err := tx.CapBatteries(ctx, group)
	g := &groupExport{
		name:      group,
		batteries: batteries,
		indexOf:   make(map[flex.AssetID]int, len(batteries)),
		totals:    map[flex.Period]flex.Watts{},
	}
	for _, l := range limits {
		if l.Group == group {
			g.limits = append(g.limits, l)
		}
	}

	for i := range batteries {
		g.indexOf[batteries[i].ID] = i
	}
	if err != nil {
		return nil, err
	}

	g.cars, err = readDischargingCars(ctx, tx, group)

	return g, err
}

// limit returns the lowest limit of the group's export in a span; false if there is none.
func (g *groupExport) limit(span flex.Span) (least flex.Watts, binds bool) {
	for i := range g.limits {
		l := &g.limits[i]
		if l.Meet(span).Empty() {
			continue
		}
		if !binds || l.Power < least {
			least, binds = l.Power, true
		}
	}

	return least, binds
}

// dispatchAt returns the dispatch that applies to a battery at an instant: the newest; nil for
// none.
func dispatchAt(
	b *store.CapBattery,
	at time.Time,
) *store.AskedPower {
	for i := len(b.Asked) - 1; i >= 0; i-- {
		if b.Asked[i].Contains(at) {
			return &b.Asked[i]
		}
	}

	return nil
}

// maxDispatched returns the most that dispatches have a battery draw in a span; with a sign of
// -1, discharge. It compares minutes from the beginning of the span on.
func maxDispatched(
	b *store.CapBattery,
	span flex.Span,
	sign flex.Watts,
) flex.Watts {
	var most flex.Watts
	for at := span.From; len(b.Asked) > 0 && at.Before(span.To); at = at.Add(time.Minute) {
		if a := dispatchAt(b, at); a != nil {
			most = max(most, sign*a.Power)
		}
	}

	return most
}

// maxDischarge returns the most that a battery discharges in a half-hour, by its plan, by
// earlier plans that its client may have read, and by dispatches.
func maxDischarge(
	b *store.CapBattery,
	p flex.Period,
) flex.Watts {
	most := maxDispatched(b, p.Span(), -1)
	if b.Controlled && mayBeInMode(&b.Plan, p, battery.ModeDischarge) {
		most = max(most, b.Power)
	}

	return most
}

// headroom returns what the others leave to one battery or car in a half-hour, under the
// limits of a part of it; false if nothing limits it.
func (g *groupExport) headroom(
	asset flex.AssetID,
	p flex.Period,
	span flex.Span,
) (remaining flex.Watts, bounded bool) {
	remaining, bounded = g.limit(span)
	if !bounded {
		return remaining, false
	}

	total, known := g.totals[p]
	if !known {
		for i := range g.batteries {
			total += maxDischarge(&g.batteries[i], p)
		}

		total += g.maxCarExport(p)
		g.totals[p] = total
	}

	if i, ok := g.indexOf[asset]; ok {
		total -= maxDischarge(&g.batteries[i], p)
	}
	if own, ok := g.cars[asset]; ok {
		total -= own.maxIn(p.Span())
	}

	return remaining - total, true
}

// headroom returns the least that the others leave to one battery or car in a half-hour; false
// if nothing limits it.
func (e *feederExport) headroom(
	asset flex.AssetID,
	p flex.Period,
) (flex.Watts, bool) {
	return e.headroomIn(asset, p, p.Span())
}

// headroomIn is headroom under the limits of a part of the half-hour.
func (e *feederExport) headroomIn(
	asset flex.AssetID,
	p flex.Period,
	span flex.Span,
) (least flex.Watts, bounded bool) {
	for i := range e.groups {
		remaining, limited := e.groups[i].headroom(asset, p, span)
		if limited && (!bounded || remaining < least) {
			least, bounded = remaining, true
		}
	}

	return least, bounded
}

// limitExport forbids a battery to discharge in the half-hours in which the others of its
// feeder leave it less headroom than its power.
func (s *batteryInputs) limitExport(
	e *feederExport,
	asset flex.AssetID,
	power flex.Watts,
) {
	if e == nil {
		return
	}

	s.feeder = e
	if s.allowed == nil {
		s.limitBySite(&meter{}, power)
	}

	for i, p := range s.periods {
		if remaining, bounded := e.headroom(asset, p); bounded && remaining < power {
			s.allowed[i] &^= battery.Modes(battery.ModeDischarge)
			if s.waits[i] == WaitsNot {
				s.waits[i] = WaitsForFeeder
			}
		}
	}
}

// withdrawDispatches replaces dispatched modes of a battery by dispatches of 0 kW, in
// half-hours in which a limit no longer leaves headroom for them.
func withdrawDispatches(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	next *store.BatteryPlan,
	ahead *batteryInputs,
) error {
	if err := withdrawDischarge(ctx, tx, b, next, ahead); err != nil {
		return err
	}

	if err := withdrawCharge(ctx, tx, b, next, ahead); err != nil {
		return err
	}

	return withdrawAtSite(ctx, tx, b, next, ahead)
}

// withdrawDischarge withdraws dispatched discharging that the export limits of the battery's
// feeder no longer permit.
func withdrawDischarge(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	next *store.BatteryPlan,
	ahead *batteryInputs,
) error {
	if ahead.feeder == nil {
		return nil
	}

	own := ahead.feeder.battery(b.Asset.ID)
	for _, p := range ahead.periods {
		remaining, bounded := ahead.feeder.headroom(b.Asset.ID, p)
		remaining = max(0, remaining)
		if !bounded || maxDischarge(own, p) <= remaining {
			continue
		}

		lockMode(&b.Plan, p, battery.ModeDischarge)
		rest := p.Span()
		rest.From = flex.Later(rest.From, tx.Now().Truncate(time.Minute))
		exceeds := dispatchExceeds(own, rest, -1, func(minute flex.Span) (flex.Watts, bool) {
			return ahead.feeder.headroomIn(b.Asset.ID, p, minute)
		})
		if !exceeds {
			continue
		}

		if err := dispatchZero(ctx, tx, b.Asset.ID, next, rest); err != nil {
			return fmt.Errorf("take a dispatch back: %w", err)
		}
	}

	return nil
}

// dispatchExceeds reports whether dispatches have a battery draw more than it may in any
// minute of a span; with a sign of -1, discharge more. Minutes are compared separately,
// because an operator may dispatch the battery as soon as a limit ends.
func dispatchExceeds(
	b *store.CapBattery,
	span flex.Span,
	sign flex.Watts,
	remaining func(minute flex.Span) (flex.Watts, bool),
) bool {
	for at := span.From; at.Before(span.To); at = at.Add(time.Minute) {
		a := dispatchAt(b, at)
		if a == nil || sign*a.Power <= 0 {
			continue
		}

		most, bounded := remaining(flex.Span{From: at, To: at.Add(time.Minute)})
		if bounded && sign*a.Power > most {
			return true
		}
	}

	return false
}

// dispatchZero sends a battery a dispatch of 0 kW for a half-hour or the rest of it, which
// replaces everything that its plans said about it. It belongs to the market of the dispatch
// that it replaces. Nothing is sent without an enabled dispatch endpoint. It is no flex event:
// no market requested it, and 0 kW is what the battery would have done.
func dispatchZero(
	ctx context.Context,
	tx *store.Tx,
	battery flex.AssetID,
	next *store.BatteryPlan,
	span flex.Span,
) error {
	e, listens, err := tx.EnabledEndpoint(ctx, flex.DispatchEndpoint)
	if err != nil || !listens {
		return err
	}

	market, err := tx.MarketAsked(ctx, battery, span)
	if err != nil {
		return err
	}

	clearCommitted(next, flex.PeriodAt(span.From))
	_, err = tx.AddDispatch(ctx, store.Dispatch{
		Own:    true,
		Market: cmp.Or(market, dispatchMarket),
		Span:   span,
		Batch:  e.Batch,
		Assets: []store.DispatchedAsset{{ID: battery, Without: []flex.Watts{0}}},
	})

	return err
}

// battery returns a battery of the innermost group; one that is not in it has no dispatches.
func (e *feederExport) battery(id flex.AssetID) *store.CapBattery {
	g := e.groups[0]
	if i, ok := g.indexOf[id]; ok {
		return &g.batteries[i]
	}

	return &store.CapBattery{ID: id}
}

// lockMode replaces a mode in a half-hour of a plan by LOCK; another mode there stays.
func lockMode(
	p *store.BatteryPlan,
	at flex.Period,
	instead battery.Mode,
) {
	m, planned := modeAt(p, at)
	if !planned || m != instead {
		return
	}

	modes := []byte(p.Modes)
	modes[at.Sub(p.From)] = modeCode(battery.ModeLock)
	p.Modes = string(modes)
}

// CheckExport returns a Conflict for a dispatch that has batteries discharge more than the
// export limits of their feeder leave beside the group's other batteries. It must run in the
// transaction of the dispatch.
func CheckExport(
	ctx context.Context,
	tx *store.Tx,
	order *store.Dispatch,
) error {
	dispatched := map[flex.AssetID]flex.Watts{}
	for _, a := range order.Assets {
		dispatched[a.ID] = a.Power
	}

	done := map[string]bool{}
	for _, a := range order.Assets {
		names, err := tx.ExportLimited(ctx, a.ID)
		if err != nil {
			return err
		}

		for _, name := range names {
			if done[name] {
				continue
			}

			done[name] = true
			if err := checkGroupExport(ctx, tx, name, order.Span, dispatched); err != nil {
				return err
			}
		}
	}

	return nil
}

// checkGroupExport is CheckExport for one constraint group.
func checkGroupExport(
	ctx context.Context,
	tx *store.Tx,
	group string,
	span flex.Span,
	dispatched map[flex.AssetID]flex.Watts,
) error {
	if _, _, err := tx.LockCaps(ctx); err != nil {
		return err
	}

	g, err := readExport(ctx, tx, group)
	if err != nil {
		return err
	}

	return g.checkDispatch(span, dispatched)
}

// checkDispatch returns a Conflict if the requested discharge of some batteries and that of
// the others exceed the limit in a half-hour.
func (g *groupExport) checkDispatch(
	span flex.Span,
	dispatched map[flex.AssetID]flex.Watts,
) error {
	for _, p := range periodsTo(flex.PeriodAt(span.From), span.To) {
		most, binds := g.limit(p.Span().Meet(span))
		if !binds {
			continue
		}

		sum, more := g.maxCarExport(p), flex.Watts(0)
		for i := range g.batteries {
			b := &g.batteries[i]
			sum += max(maxDischarge(b, p), -dispatched[b.ID])
			more += max(0, -dispatched[b.ID])
		}

		if more > 0 && sum > most {
			return flex.Fail(
				flex.Conflict,
				"the export of %q is limited to %g kW at %s, and with this dispatch its batteries and cars would give %g kW: flexd limits list prints what limits it",
				g.name,
				most.KW(),
				p.Start().Format(time.RFC3339),
				sum.KW(),
			)
		}
	}

	return nil
}
