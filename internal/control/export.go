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

// feederExport is what limits the export of the constraint groups around a battery or a car,
// the innermost first, and what the groups' batteries and cars discharge to the grid. A
// battery that only covers its home exports nothing. A car counts with the most of any
// schedule that its charger may be following. The asset that is planned first has the
// headroom, to the end of its plan.
//
// A battery counts with its full power in each half-hour in which it is to discharge, as what
// its home will draw is only an estimate. A limit applies to each half-hour that it touches.
type feederExport struct {
	groups []*groupExport
}

// groupExport is what limits the export of one constraint group, and the batteries and cars in
// it and in the groups inside it.
type groupExport struct {
	name      string
	limits    []flex.CapLimit
	batteries []store.CapBattery
	place     map[flex.AssetID]int       // the index of a battery in batteries
	cars      map[flex.AssetID]draws     // the discharge of its cars, by all schedules that their chargers may be following
	all       map[flex.Period]flex.Watts // the sum of their export, once it was computed
}

// feedersKept is a cache of the groups' export, for several assets that are compared while
// nothing is planned. Nil caches nothing.
type feedersKept map[string]*groupExport

// read reads what limits the export of an asset's feeder; nil if nothing does.
func (k feedersKept) read(
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
		place:     make(map[flex.AssetID]int, len(batteries)),
		all:       map[flex.Period]flex.Watts{},
	}
	for _, l := range limits {
		if l.Group == group {
			g.limits = append(g.limits, l)
		}
	}

	for i := range batteries {
		g.place[batteries[i].ID] = i
	}
	if err != nil {
		return nil, err
	}

	g.cars, err = readDischargers(ctx, tx, group)

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

// askedAt returns the dispatch that applies to a battery at an instant: the newest; nil for
// none.
func askedAt(
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

// askedToDischarge returns the most that dispatches ask a battery to discharge in a span, by
// minutes from its start on.
func askedToDischarge(
	b *store.CapBattery,
	span flex.Span,
) flex.Watts {
	var most flex.Watts
	for at := span.From; len(b.Asked) > 0 && at.Before(span.To); at = at.Add(time.Minute) {
		if a := askedAt(b, at); a != nil {
			most = max(most, -a.Power)
		}
	}

	return most
}

// discharges returns the most that a battery discharges in a half-hour, by its plan, by
// earlier plans that its client may have read, and by dispatches.
func discharges(
	b *store.CapBattery,
	p flex.Period,
) flex.Watts {
	most := askedToDischarge(b, p.Span())
	if b.Controlled && mayBeInMode(&b.Plan, p, battery.ModeDischarge) {
		most = max(most, b.Power)
	}

	return most
}

// headroom returns what the others leave to one battery or car in a half-hour, under the
// limits of a span of it; false if nothing limits it.
func (g *groupExport) headroom(
	asset flex.AssetID,
	p flex.Period,
	span flex.Span,
) (left flex.Watts, bounded bool) {
	left, bounded = g.limit(span)
	if !bounded {
		return left, false
	}

	all, known := g.all[p]
	if !known {
		for i := range g.batteries {
			all += discharges(&g.batteries[i], p)
		}

		all += g.mostOfCars(p)
		g.all[p] = all
	}

	if i, ok := g.place[asset]; ok {
		all -= discharges(&g.batteries[i], p)
	}
	if own, ok := g.cars[asset]; ok {
		all -= own.mostIn(p.Span())
	}

	return left - all, true
}

// headroom returns the least that the others leave to one battery or car in a half-hour; false
// if nothing limits it.
func (e *feederExport) headroom(
	asset flex.AssetID,
	p flex.Period,
) (flex.Watts, bool) {
	return e.headroomIn(asset, p, p.Span())
}

// headroomIn is headroom under the limits of a span of the half-hour.
func (e *feederExport) headroomIn(
	asset flex.AssetID,
	p flex.Period,
	span flex.Span,
) (least flex.Watts, bounded bool) {
	for i := range e.groups {
		left, limited := e.groups[i].headroom(asset, p, span)
		if limited && (!bounded || left < least) {
			least, bounded = left, true
		}
	}

	return least, bounded
}

// limitExport forbids a battery to discharge in the half-hours in which the others of its
// feeder leave it less headroom than its power.
func (s *homeAhead) limitExport(
	e *feederExport,
	asset flex.AssetID,
	power flex.Watts,
) {
	if e == nil {
		return
	}

	s.feeder = e
	if s.allowed == nil {
		s.around(&meter{}, power)
	}

	for i, p := range s.periods {
		if left, bounded := e.headroom(asset, p); bounded && left < power {
			s.allowed[i] &^= battery.Modes(battery.ModeDischarge)
			if s.waits[i] == WaitsNot {
				s.waits[i] = WaitsForFeeder
			}
		}
	}
}

// takeBack replaces dispatched modes of a battery by dispatches of 0 kW, in half-hours in
// which a limit leaves no headroom for them any more.
func takeBack(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	next *store.BatteryPlan,
	ahead *homeAhead,
) error {
	if err := takeBackDischarge(ctx, tx, b, next, ahead); err != nil {
		return err
	}

	if err := takeBackCharge(ctx, tx, b, next, ahead); err != nil {
		return err
	}

	return takeBackSite(ctx, tx, b, next, ahead)
}

// takeBackDischarge is takeBack for the export limits of the battery's feeder.
func takeBackDischarge(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	next *store.BatteryPlan,
	ahead *homeAhead,
) error {
	if ahead.feeder == nil {
		return nil
	}

	own := ahead.feeder.battery(b.Asset.ID)
	for _, p := range ahead.periods {
		left, bounded := ahead.feeder.headroom(b.Asset.ID, p)
		left = max(0, left)
		if !bounded || discharges(own, p) <= left {
			continue
		}

		lockMode(&b.Plan, p, battery.ModeDischarge)
		rest := p.Span()
		rest.From = flex.Later(rest.From, tx.Now().Truncate(time.Minute))
		passes := asksMore(own, rest, -1, func(minute flex.Span) (flex.Watts, bool) {
			return ahead.feeder.headroomIn(b.Asset.ID, p, minute)
		})
		if !passes {
			continue
		}

		if err := dispatchZero(ctx, tx, b.Asset.ID, next, rest); err != nil {
			return fmt.Errorf("take a dispatch back: %w", err)
		}
	}

	return nil
}

// asksMore reports whether dispatches ask a battery to draw more than it may in some minute of
// a span; with a sign of -1, to discharge more. Minutes are compared separately, as an
// operator may dispatch the battery as soon as a limit ends.
func asksMore(
	b *store.CapBattery,
	span flex.Span,
	sign flex.Watts,
	left func(minute flex.Span) (flex.Watts, bool),
) bool {
	for at := span.From; at.Before(span.To); at = at.Add(time.Minute) {
		a := askedAt(b, at)
		if a == nil || sign*a.Power <= 0 {
			continue
		}

		most, bounded := left(flex.Span{From: at, To: at.Add(time.Minute)})
		if bounded && sign*a.Power > most {
			return true
		}
	}

	return false
}

// dispatchZero sends a battery a dispatch of 0 kW for a half-hour or the rest of it, which
// replaces everything that its plans said about it, for the market of the dispatch that it
// replaces. Nothing is sent without an enabled dispatch endpoint. It is no flex event: the
// market asked for nothing, and 0 kW is what the battery would have done.
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
	if i, ok := g.place[id]; ok {
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
	asked := map[flex.AssetID]flex.Watts{}
	for _, a := range order.Assets {
		asked[a.ID] = a.Power
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
			if err := checkGroup(ctx, tx, name, order.Span, asked); err != nil {
				return err
			}
		}
	}

	return nil
}

// checkGroup is CheckExport for one constraint group.
func checkGroup(
	ctx context.Context,
	tx *store.Tx,
	group string,
	span flex.Span,
	asked map[flex.AssetID]flex.Watts,
) error {
	if _, _, err := tx.LockCaps(ctx); err != nil {
		return err
	}

	g, err := readExport(ctx, tx, group)
	if err != nil {
		return err
	}

	return g.checkDispatch(span, asked)
}

// checkDispatch returns a Conflict if the requested discharge of some batteries and that of
// the others exceed the limit in a half-hour.
func (g *groupExport) checkDispatch(
	span flex.Span,
	asked map[flex.AssetID]flex.Watts,
) error {
	for _, p := range periodsTo(flex.PeriodAt(span.From), span.To) {
		most, binds := g.limit(p.Span().Meet(span))
		if !binds {
			continue
		}

		sum, more := g.mostOfCars(p), flex.Watts(0)
		for i := range g.batteries {
			b := &g.batteries[i]
			sum += max(discharges(b, p), -asked[b.ID])
			more += max(0, -asked[b.ID])
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
