package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Batteries under caps.
//
// A battery that charges draws its full power for its whole half-hours, whatever its home is
// expected to use. Cars come first: a car leaves headroom only for what batteries are
// dispatched to draw and for their plans in the committed half-hours; a battery leaves
// headroom for all that cars may draw. So if a car later takes the headroom of a battery, the
// battery is planned to wait before the half-hour is committed. What a battery or a car
// discharges makes no headroom for others: the caps are kept even if it fails to.

// batteryRun plans the batteries of one organisation, or its heaters, one after the other.
type batteryRun struct {
	*Service
	caps capsKept
	// the batteries that were last planned, all in one transaction
	joint []flex.AssetID
}

// capsKept is the headroom under caps that one battery or heater of a run passes on to the
// next. Nil passes on nothing.
type capsKept struct {
	ahead   *capsAhead
	heat    *heatUnderCaps
	feeders feedersKept // nil where each battery is planned, which changes them
}

// feedersOf are the feeders that are kept.
func (k *capsKept) feedersOf() feedersKept {
	if k == nil {
		return nil
	}

	return k.feeders
}

// capsAhead is what caps, all cars and all other batteries leave to one battery. It is nil
// without caps on power.
type capsAhead struct {
	*headroom.Profile
	*capped
	from      time.Time
	batteries map[flex.AssetID]*store.CapBattery
	own       *store.CapBattery // the battery that is planned; it is not in the headroom
}

// askedToTake is the most that dispatches ask a battery to draw in a span, from its start on.
func askedToTake(
	b *store.CapBattery,
	span flex.Span,
) flex.Watts {
	var most flex.Watts
	for at := span.From; len(b.Asked) > 0 && at.Before(span.To); at = at.Add(time.Minute) {
		if a := askedAt(b, at); a != nil {
			most = max(most, a.Power)
		}
	}

	return most
}

// mostDrawn returns the most that a battery draws in a half-hour, by dispatches and, where
// that counts, by its plan.
func mostDrawn(
	b *store.CapBattery,
	p flex.Period,
	planned bool,
) flex.Watts {
	most := askedToTake(b, p.Span())
	if !planned || !b.Controlled {
		return most
	}

	if mayBeInMode(&b.Plan, p, battery.ModeCharge) {
		most = max(most, b.Power)
	}

	return most
}

// takesFrom is what a battery draws from an instant on, by its plan for some half-hours.
func takesFrom(
	b *store.CapBattery,
	from time.Time,
	planned int,
) []flex.Step {
	if b.Plan.Modes == "" && len(b.Asked) == 0 {
		return nil
	}

	var steps []flex.Step
	first := flex.PeriodAt(from)
	for i := range 2 * headroom.Hours {
		p := first.Add(i)
		steps = joined(steps, flex.Step{
			Span:  p.Span(),
			Limit: mostDrawn(b, p, i < planned),
		})
	}

	return steps
}

// drawBatteries puts what batteries draw that yield to no car into the headroom: those of a
// group, or all.
func (r *assetHeadroom) drawBatteries(
	ctx context.Context,
	tx *store.Tx,
	group string,
	from time.Time,
) error {
	batteries, err := tx.CapBatteries(ctx, group)
	if err != nil {
		return fmt.Errorf("read what batteries draw: %w", err)
	}

	for i := range batteries {
		b := &batteries[i]
		r.Reserve(r.place[b.Group], takesFrom(b, from, batteryCommitted))
	}

	return nil
}

// read is what caps leave to a battery; nil if none binds a power.
func (k *capsKept) read(
	ctx context.Context,
	tx *store.Tx,
	a *flex.Asset,
	power flex.Watts,
) (*capsAhead, error) {
	inForce, ok, err := tx.Caps(ctx)
	if err != nil || !ok || !bindPower(&inForce) {
		return nil, err
	}

	if k == nil {
		k = &capsKept{}
	}
	if k.ahead == nil || k.ahead.Version != inForce.Version {
		k.ahead, err = readCapsAhead(ctx, tx, inForce)
		if err != nil {
			return nil, err
		}
	}

	return k.ahead, k.ahead.take(ctx, tx, a, power)
}

// bindPower reports whether caps bind a power, now or later.
func bindPower(c *store.CapsInForce) bool {
	for i := range c.Groups {
		if c.Groups[i].Power != nil {
			return true
		}
	}

	return c.Fleet.Power != nil || len(c.Limits) > 0
}

func readCapsAhead(
	ctx context.Context,
	tx *store.Tx,
	inForce store.CapsInForce,
) (*capsAhead, error) {
	k := placed(inForce)
	from := flex.PeriodAt(tx.Now()).Start()
	a := &capsAhead{
		Profile:   k.profile(from),
		capped:    k,
		from:      from,
		batteries: map[flex.AssetID]*store.CapBattery{},
	}

	loads, err := tx.Loads(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("read what is plugged in: %w", err)
	}

	cars := assetHeadroom{Profile: a.Profile, capped: k}
	for i := range loads {
		cars.draw(&loads[i], tx.Now().Truncate(time.Second))
	}

	if err := k.drawHeat(ctx, tx, a.Profile); err != nil {
		return nil, err
	}

	batteries, err := tx.CapBatteries(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("read what batteries draw: %w", err)
	}

	for i := range batteries {
		b := &batteries[i]
		a.batteries[b.ID] = b
		a.add(b)
	}

	return a, nil
}

func (a *capsAhead) add(b *store.CapBattery) {
	a.Reserve(a.place[b.Group], takesFrom(b, a.from, 2*headroom.Hours))
}

// take leaves a battery out of the headroom, and puts the one before back.
func (a *capsAhead) take(
	ctx context.Context,
	tx *store.Tx,
	asset *flex.Asset,
	power flex.Watts,
) error {
	if a.own != nil {
		a.add(a.own)
		a.own = nil
	}

	b := a.batteries[asset.ID]
	if b == nil { // it has no plan yet
		group, err := tx.CapGroup(ctx, asset.SiteID)
		if err != nil {
			return err
		}

		b = &store.CapBattery{ID: asset.ID, Group: group, Power: power, Controlled: true}
		a.batteries[b.ID] = b
		a.add(b)
	}

	a.own = b
	a.Release(a.place[b.Group], takesFrom(b, a.from, 2*headroom.Hours))

	return nil
}

// replaced notes a battery's new plan, and that the headroom changed for others if it charges
// at other times.
func (a *capsAhead) replaced(
	ctx context.Context,
	tx *store.Tx,
	next *store.BatteryPlan,
) error {
	if a == nil || a.own == nil {
		return nil
	}

	before := takesFrom(a.own, a.from, 2*headroom.Hours)
	a.own.Plan = *next
	if slices.Equal(before, takesFrom(a.own, a.from, 2*headroom.Hours)) {
		return nil
	}

	a.Version++

	return tx.RecordCapsUsed(ctx, time.Time{})
}

// left is what the caps leave to the battery that is planned in a half-hour; false if they
// bound nothing then.
func (a *capsAhead) left(p flex.Period) (flex.Watts, bool) {
	return a.Spare(a.place[a.own.Group], p.Span())
}

// underCaps has a battery not charge in the half-hours in which cars and the other batteries
// leave it no headroom for its full power.
func (s *homeAhead) underCaps(
	a *capsAhead,
	power flex.Watts,
) {
	if a == nil {
		return
	}

	s.caps = a
	if s.allowed == nil {
		s.around(&meter{}, power)
	}

	for i, p := range s.periods {
		if left, bounded := a.left(p); bounded && left < power {
			s.allowed[i] &^= battery.Modes(battery.ModeCharge)
			if s.waits[i] == WaitsNot {
				s.waits[i] = WaitsForCap
			}
		}
	}
}

// takeBackCharge is takeBack for charging that caps limit.
func takeBackCharge(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	next *store.BatteryPlan,
	ahead *homeAhead,
) error {
	if ahead.caps == nil {
		return nil
	}

	own := ahead.caps.own
	for _, p := range ahead.periods {
		left, bounded := ahead.caps.left(p)
		left = max(0, left)
		if !bounded || mostDrawn(own, p, true) <= left {
			continue
		}

		lockMode(&b.Plan, p, battery.ModeCharge)
		rest := p.Span()
		rest.From = flex.Later(rest.From, tx.Now().Truncate(time.Minute))
		passes := asksMore(own, rest, 1, func(minute flex.Span) (flex.Watts, bool) {
			return ahead.caps.Spare(ahead.caps.place[own.Group], minute)
		})
		if !passes {
			continue
		}

		if err := dispatchZero(ctx, tx, b.Asset.ID, next, rest); err != nil {
			return fmt.Errorf("take a dispatch back: %w", err)
		}
		own.Asked = append(own.Asked, store.AskedPower{Span: rest})
	}

	return nil
}

// CheckImport refuses a dispatch, as a Conflict, if batteries draw more by it than before, and
// more than caps, all cars and the other batteries leave. It is made in the transaction of the
// dispatch. Whoever plans on a snapshot without the dispatch plans again.
func CheckImport(
	ctx context.Context,
	tx *store.Tx,
	order *store.Dispatch,
) error {
	if !slices.ContainsFunc(order.Assets, func(a store.DispatchedAsset) bool { return a.Power > 0 }) {
		return nil
	}

	inForce, ok, err := tx.LockCaps(ctx)
	if err != nil || !ok || !bindPower(&inForce) {
		return err
	}

	ahead, err := readCapsAhead(ctx, tx, inForce)
	if err != nil {
		return err
	}

	places := map[int]bool{}
	for _, a := range order.Assets {
		cap, err := ahead.ask(ctx, tx, a, order.Span)
		if err != nil {
			return err
		}
		if cap >= 0 {
			places[cap] = true
		}
	}

	for _, cap := range slices.Sorted(maps.Keys(places)) {
		if err := ahead.checkDispatch(cap, order.Span); err != nil {
			return err
		}
	}

	if len(places) == 0 {
		return nil
	}

	return tx.RecordCapsUsed(ctx, time.Time{})
}

// ask puts what a dispatch asks of a battery into the headroom, beyond what it draws already,
// and returns the place of its cap; -1 for an asset that is no battery, or draws no more with
// the dispatch than without it.
func (a *capsAhead) ask(
	ctx context.Context,
	tx *store.Tx,
	asked store.DispatchedAsset,
	span flex.Span,
) (int, error) {
	asset, err := tx.Asset(ctx, asked.ID)
	if err != nil || asset.Type != flex.Battery || asked.Power <= 0 {
		return -1, err
	}

	if err := a.take(ctx, tx, &asset, asked.Power); err != nil {
		return -1, err
	}

	cap := a.place[a.own.Group]
	more := *a.own
	more.Asked = append(slices.Clone(more.Asked), store.AskedPower{Span: span, Power: asked.Power})
	raises := slices.ContainsFunc(periodsTo(flex.PeriodAt(span.From), span.To), func(p flex.Period) bool {
		return mostDrawn(&more, p, true) > mostDrawn(a.own, p, true)
	})

	a.Reserve(cap, takesFrom(&more, a.from, 2*headroom.Hours))
	a.own = nil
	if !raises {
		return -1, nil
	}

	return cap, nil
}

// checkDispatch is a Conflict where what is drawn passes a cap in a half-hour of a dispatch.
func (a *capsAhead) checkDispatch(
	cap int,
	span flex.Span,
) error {
	for _, p := range periodsTo(flex.PeriodAt(span.From), span.To) {
		left, bounded := a.Spare(cap, p.Span().Meet(span))
		if !bounded || left >= 0 {
			continue
		}

		return flex.Fail(
			flex.Conflict,
			"with this dispatch %s would draw %g kW more than its caps allow at %s: flexd caps show and flexd limits list print what binds it",
			a.titled(cap),
			(-left).KW(),
			p.Start().Format(time.RFC3339),
		)
	}

	return nil
}

// titled names a group, or the whole fleet.
func (a *capsAhead) titled(cap int) string {
	if name := a.name(cap); name != "" {
		return fmt.Sprintf("%q", name)
	}
	return "the fleet"
}
