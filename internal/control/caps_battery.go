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
// A battery that charges counts with its full power for whole half-hours, whatever its home is
// expected to use. Cars have priority: a car leaves headroom only for dispatches of batteries
// and for their plans in committed half-hours, while a battery leaves headroom for all that
// cars may draw. So if a car takes the headroom of a battery before the half-hour is
// committed, the battery is planned to wait. What a battery or a car discharges makes no
// headroom for others, so that the caps are kept even if it does not discharge.

// plannerRun plans the batteries of one organisation, or its heaters, one after the other.
type plannerRun struct {
	*Service
	caps headroomCache
	// the batteries that were last planned together, in one transaction
	joint []flex.AssetID
}

// headroomCache caches the headroom under caps during a run over batteries or heaters. Nil
// caches nothing.
type headroomCache struct {
	batteries *batteryCaps
	heaters   *heatHeadroom
	feeders   feederCache // nil while batteries are planned, which changes it
}

// feederCache returns the cached feeders.
func (k *headroomCache) feederCache() feederCache {
	if k == nil {
		return nil
	}

	return k.feeders
}

// batteryCaps is the headroom that caps leave to one battery beside all cars, heaters and
// other batteries. It is nil if no cap limits power.
type batteryCaps struct {
	*headroom.Profile
	*orderedCaps
	from      time.Time
	batteries map[flex.AssetID]*store.CapBattery
	own       *store.CapBattery // the battery that is planned; it is not counted in the profile
}

// maxDraw returns the most that a battery draws in a half-hour, by dispatches and, if
// planned, by its plan.
func maxDraw(
	b *store.CapBattery,
	p flex.Period,
	planned bool,
) flex.Watts {
	most := maxDispatched(b, p.Span(), 1)
	if !planned || !b.Controlled {
		return most
	}

	if mayBeInMode(&b.Plan, p, battery.ModeCharge) {
		most = max(most, b.Power)
	}

	return most
}

// drawSteps returns what a battery draws from an instant on: by dispatches, and for a number
// of half-hours by its plan.
func drawSteps(
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
		steps = appendStep(steps, flex.Step{
			Span:  p.Span(),
			Limit: maxDraw(b, p, i < planned),
		})
	}

	return steps
}

// reserveBatteries reserves what batteries draw in committed half-hours and by dispatches, for
// a group or for all.
func (r *assetHeadroom) reserveBatteries(
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
		r.Reserve(r.place[b.Group], drawSteps(b, from, batteryCommitted))
	}

	return nil
}

// read returns the headroom that caps leave to a battery; nil if no cap limits power.
func (k *headroomCache) read(
	ctx context.Context,
	tx *store.Tx,
	a *flex.Asset,
	power flex.Watts,
) (*batteryCaps, error) {
	inForce, ok, err := tx.Caps(ctx)
	if err != nil || !ok || !bindPower(&inForce) {
		return nil, err
	}

	if k == nil {
		k = &headroomCache{}
	}
	if k.batteries == nil || k.batteries.Version != inForce.Version {
		k.batteries, err = readBatteryCaps(ctx, tx, inForce)
		if err != nil {
			return nil, err
		}
	}

	return k.batteries, k.batteries.exclude(ctx, tx, a, power)
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

func readBatteryCaps(
	ctx context.Context,
	tx *store.Tx,
	inForce store.CapsInForce,
) (*batteryCaps, error) {
	k := orderCaps(inForce)
	from := flex.PeriodAt(tx.Now()).Start()
	a := &batteryCaps{
		Profile:     k.profile(from),
		orderedCaps: k,
		from:        from,
		batteries:   map[flex.AssetID]*store.CapBattery{},
	}

	loads, err := tx.Loads(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("read what is plugged in: %w", err)
	}

	cars := assetHeadroom{Profile: a.Profile, orderedCaps: k}
	for i := range loads {
		cars.addLoad(&loads[i], tx.Now().Truncate(time.Second))
	}

	if err := k.reserveHeaters(ctx, tx, a.Profile); err != nil {
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

func (a *batteryCaps) add(b *store.CapBattery) {
	a.Reserve(a.place[b.Group], drawSteps(b, a.from, 2*headroom.Hours))
}

// exclude excludes a battery from the profile, and adds the one that was excluded before.
func (a *batteryCaps) exclude(
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
	a.Release(a.place[b.Group], drawSteps(b, a.from, 2*headroom.Hours))

	return nil
}

// replacePlan records a battery's new plan. If it charges at other times, the caps are marked
// as changed, for whoever plans with them.
func (a *batteryCaps) replacePlan(
	ctx context.Context,
	tx *store.Tx,
	next *store.BatteryPlan,
) error {
	if a == nil || a.own == nil {
		return nil
	}

	before := drawSteps(a.own, a.from, 2*headroom.Hours)
	a.own.Plan = *next
	if slices.Equal(before, drawSteps(a.own, a.from, 2*headroom.Hours)) {
		return nil
	}

	a.Version++

	return tx.RecordCapsUsed(ctx, time.Time{})
}

// headroomIn is the headroom of the excluded battery in a half-hour; false if no cap applies
// then.
func (a *batteryCaps) headroomIn(p flex.Period) (flex.Watts, bool) {
	return a.Spare(a.place[a.own.Group], p.Span())
}

// limitByCaps forbids a battery to charge in half-hours in which cars and the other batteries
// leave it less headroom than its power.
func (s *batteryInputs) limitByCaps(
	a *batteryCaps,
	power flex.Watts,
) {
	if a == nil {
		return
	}

	s.caps = a
	if s.allowed == nil {
		s.limitBySite(&meter{}, power)
	}

	for i, p := range s.periods {
		if remaining, bounded := a.headroomIn(p); bounded && remaining < power {
			s.allowed[i] &^= battery.Modes(battery.ModeCharge)
			if s.waits[i] == WaitsNot {
				s.waits[i] = WaitsForCap
			}
		}
	}
}

// withdrawCharge withdraws dispatched charging in half-hours in which caps leave no headroom
// for it any more.
func withdrawCharge(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	next *store.BatteryPlan,
	ahead *batteryInputs,
) error {
	if ahead.caps == nil {
		return nil
	}

	own := ahead.caps.own
	for _, p := range ahead.periods {
		remaining, bounded := ahead.caps.headroomIn(p)
		remaining = max(0, remaining)
		if !bounded || maxDraw(own, p, true) <= remaining {
			continue
		}

		lockMode(&b.Plan, p, battery.ModeCharge)
		rest := p.Span()
		rest.From = flex.Later(rest.From, tx.Now().Truncate(time.Minute))
		exceeds := dispatchExceeds(own, rest, 1, func(minute flex.Span) (flex.Watts, bool) {
			return ahead.caps.Spare(ahead.caps.place[own.Group], minute)
		})
		if !exceeds {
			continue
		}

		if err := dispatchZero(ctx, tx, b.Asset.ID, next, rest); err != nil {
			return fmt.Errorf("take a dispatch back: %w", err)
		}
		own.Asked = append(own.Asked, store.AskedPower{Span: rest})
	}

	return nil
}

// CheckImport returns a Conflict for a dispatch by which batteries draw more than before, and
// more than caps leave beside all cars and the other batteries. It must run in the transaction
// of the dispatch. It marks the caps as changed, so that plans made on a snapshot without the
// dispatch are made again.
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

	ahead, err := readBatteryCaps(ctx, tx, inForce)
	if err != nil {
		return err
	}

	places := map[int]bool{}
	for _, a := range order.Assets {
		cap, err := ahead.addDispatch(ctx, tx, a, order.Span)
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

// addDispatch reserves what a dispatch has a battery draw in addition, and returns the index
// of its cap; -1 for an asset that is no battery, or that draws no more with the dispatch than
// without it.
func (a *batteryCaps) addDispatch(
	ctx context.Context,
	tx *store.Tx,
	dispatched store.DispatchedAsset,
	span flex.Span,
) (int, error) {
	asset, err := tx.Asset(ctx, dispatched.ID)
	if err != nil || asset.Type != flex.Battery || dispatched.Power <= 0 {
		return -1, err
	}

	if err := a.exclude(ctx, tx, &asset, dispatched.Power); err != nil {
		return -1, err
	}

	cap := a.place[a.own.Group]
	more := *a.own
	more.Asked = append(slices.Clone(more.Asked), store.AskedPower{Span: span, Power: dispatched.Power})
	raises := slices.ContainsFunc(periodsTo(flex.PeriodAt(span.From), span.To), func(p flex.Period) bool {
		return maxDraw(&more, p, true) > maxDraw(a.own, p, true)
	})

	a.Reserve(cap, drawSteps(&more, a.from, 2*headroom.Hours))
	a.own = nil
	if !raises {
		return -1, nil
	}

	return cap, nil
}

// checkDispatch returns a Conflict if a cap is exceeded in a half-hour of a dispatch.
func (a *batteryCaps) checkDispatch(
	cap int,
	span flex.Span,
) error {
	for _, p := range periodsTo(flex.PeriodAt(span.From), span.To) {
		remaining, bounded := a.Spare(cap, p.Span().Meet(span))
		if !bounded || remaining >= 0 {
			continue
		}

		return flex.Fail(
			flex.Conflict,
			"with this dispatch %s would draw %g kW more than its caps allow at %s: flexd caps show and flexd limits list print what binds it",
			a.displayName(cap),
			(-remaining).KW(),
			p.Start().Format(time.RFC3339),
		)
	}

	return nil
}

// displayName returns the name of a cap for messages.
func (a *batteryCaps) displayName(cap int) string {
	if name := a.name(cap); name != "" {
		return fmt.Sprintf("%q", name)
	}
	return "the fleet"
}
