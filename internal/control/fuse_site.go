package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// fusedSites reads the sites of assets whose main fuse was set; without assets, all sites of
// the organisation at which something is plugged in. It leaves out sites whose fuse always
// carries their only charger together with the home, so that a fleet of such sites is not read
// site by site.
func fusedSites(
	ctx context.Context,
	tx *store.Tx,
	assets ...flex.AssetID,
) ([]store.FusedSite, error) {
	sites, err := tx.FusedSites(ctx, assets...)
	if err != nil {
		return nil, err
	}

	carried, err := carriedSites(ctx, tx, sites)

	return slices.DeleteFunc(sites, func(s store.FusedSite) bool { return carried[s.ID] }), err
}

// carriedSites returns the sites whose main fuse carries their only charger together with the
// home's own load, as that was learned today.
func carriedSites(
	ctx context.Context,
	tx *store.Tx,
	sites []store.FusedSite,
) (map[flex.SiteID]bool, error) {
	alone := carriedWithoutHome(sites)
	if len(alone) == 0 {
		return nil, nil
	}

	metered, err := tx.ConsentSpans(ctx, alone, time.Time{})
	if err != nil {
		return nil, err
	}

	steady, err := tx.SteadyAt(ctx, alone)
	if err != nil {
		return nil, err
	}

	loads, err := tx.BaseLoads(ctx, alone)
	carried := map[flex.SiteID]bool{}
	for i := range sites {
		s := &sites[i]
		if len(metered[s.ID]) == 0 || len(steady[s.ID]) == 0 {
			carried[s.ID] = fuseCarries(s, 0)
			continue
		}

		// a site with batteries or heaters is left out
		own := loads[s.ID]
		base := baseLoad{watts: own.Load}
		fresh := own.Day == flex.DayAt(tx.Now()) && own.Basis == basisOf(
			s.Assets,
			steady[s.ID],
			nil,
			metered[s.ID],
		)
		carried[s.ID] = fresh && fuseCarries(s, base.most())
	}

	return carried, err
}

// carriedWithoutHome returns the sites whose main fuse carries their only charger if the home
// itself draws nothing.
func carriedWithoutHome(sites []store.FusedSite) []flex.SiteID {
	var alone []flex.SiteID
	for i := range sites {
		if fuseCarries(&sites[i], 0) {
			alone = append(alone, sites[i].ID)
		}
	}

	return alone
}

// fuseCarries reports whether a site's main fuse carries its only charger together with the
// home itself, which draws at most base.
func fuseCarries(s *store.FusedSite, base flex.Watts) bool {
	several := s.Chargers > 1 || len(s.Batteries) > 0
	if several || s.Heats {
		return false
	}

	sum := phaseLoad{phases: s.Phases}
	sum.add(base, flex.Wiring{})
	sum.addLoad(&s.Last)

	return sum.most() <= s.Fuse
}

// fusedAround reads the site of a car that is planned on its own: every other car follows its
// schedule in force. It is nil if the main fuse cannot limit the cars.
func fusedAround(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) (*behindFuse, error) {
	if c.Fuse == 0 {
		return nil, nil
	}

	sites, err := fusedSites(ctx, tx, c.Asset.ID)
	if err != nil || len(sites) == 0 {
		return nil, err
	}

	return readFused(ctx, tx, sites[0], *ownLoad(c))
}

// readFused reads a site with a main fuse by its schedules in force, and as if some loads were
// plugged in too. It is nil if the fuse cannot limit the cars.
func readFused(
	ctx context.Context,
	tx *store.Tx,
	s store.FusedSite,
	more ...store.Load,
) (*behindFuse, error) {
	loads, err := tx.SiteLoads(ctx, s.ID)
	if err != nil {
		return nil, fmt.Errorf("read what is plugged in at the site: %w", err)
	}

	found, err := tx.PlannedAt(ctx, s.ID)
	if err != nil {
		return nil, fmt.Errorf("read the site's schedules: %w", err)
	}

	for _, l := range more {
		if !slices.ContainsFunc(loads, func(of store.Load) bool {
			return of.AssetID == l.AssetID
		}) {
			loads = append(loads, l)
		}
	}

	return fusedAs(ctx, tx, s, loads, found)
}

// fusedOf reads the sites of assets whose main fuse can limit them, by their cars.
func fusedOf(
	ctx context.Context,
	tx *store.Tx,
	found []store.ScheduledAsset,
) (map[flex.AssetID]*behindFuse, error) {
	if len(found) == 0 {
		return nil, nil
	}

	ids := make([]flex.AssetID, len(found))
	for i := range found {
		ids[i] = found[i].Current.AssetID
	}

	by := map[flex.AssetID]*behindFuse{}
	sites, err := fusedSites(ctx, tx, ids...)
	for i := 0; i < len(sites) && err == nil; i++ {
		var f *behindFuse
		f, err = readFused(ctx, tx, sites[i])
		if errors.Is(err, store.ErrUnreadable) { // of another car of the site: the others are compared without it
			err = nil
			continue
		}
		if f == nil {
			continue
		}

		for _, car := range f.cars {
			by[car.Current.AssetID] = f
		}
	}

	return by, err
}

// fusedAs returns a site with a main fuse, from its loads and schedules. It is nil if the fuse
// cannot limit the cars.
func fusedAs(
	ctx context.Context,
	tx *store.Tx,
	s store.FusedSite,
	loads []store.Load,
	found []store.ScheduledAsset,
) (*behindFuse, error) {
	f := &behindFuse{
		fuse:   s.Fuse,
		phases: s.Phases,
		now:    tx.Now(),
		from:   tx.Now().Truncate(time.Second),
		again:  map[time.Time][]flex.AssetID{},
	}

	if err := f.readSite(ctx, tx, &s); err != nil {
		return nil, err
	}

	charging, err := f.busyAt(ctx, tx, s.Batteries)
	if err != nil {
		return nil, err
	}

	f.tight = f.binds(loads, charging)
	if !f.tight {
		return nil, nil
	}

	f.keepCurrent(loads, found)
	f.others = append(f.others, charging)

	if err := f.readSent(ctx, tx); err != nil {
		return nil, err
	}

	return f, nil
}

// readSite reads what the home itself and its heaters draw, and the dispatches of batteries
// that are not planned.
func (f *behindFuse) readSite(
	ctx context.Context,
	tx *store.Tx,
	s *store.FusedSite,
) error {
	var err error
	f.base, err = baseAt(ctx, tx, s.ID)
	if err != nil {
		return err
	}

	f.tanks, err = tanksAt(ctx, tx, s.ID, flex.AssetID{})
	if err != nil {
		return err
	}

	f.orders, err = ordersUnplanned(ctx, tx, s.Batteries)

	return err
}

// busyAt returns the power with which the batteries of a site may charge, in committed
// half-hours and by dispatches.
func (f *behindFuse) busyAt(
	ctx context.Context,
	tx *store.Tx,
	batteries []flex.AssetID,
) (draws, error) {
	d := draws{battery: true}
	var steps []flex.Step
	var read int
	for _, id := range batteries {
		b, err := tx.Battery(ctx, id)
		if errors.Is(err, store.ErrUnreadable) { // ordersUnplanned counts it
			continue
		}
		if err != nil {
			return d, err
		}

		d.addBattery(read, &b)
		read++
		charges, err := batteryMayCharge(ctx, tx, &b)
		if err != nil {
			return d, err
		}

		steps = append(steps, charges...)
	}

	d.lists = [][]flex.Step{eachOnce(steps, d.power)}

	return d, nil
}

// eachOnce returns half-hours in order, without duplicates, with one limit.
func eachOnce(steps []flex.Step, limit flex.Watts) []flex.Step {
	steps = slices.Clone(steps)
	slices.SortFunc(steps, func(a, b flex.Step) int {
		return a.From.Compare(b.From)
	})
	steps = slices.CompactFunc(steps, func(a, b flex.Step) bool {
		return a.From.Equal(b.From)
	})

	for i := range steps {
		steps[i].Limit = limit
	}

	return steps
}

// batteryMayCharge returns the committed half-hours in which a battery may charge, and those
// in which an operator's dispatch has it draw, which are not in its plan.
func batteryMayCharge(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
) ([]flex.Step, error) {
	now := flex.PeriodAt(tx.Now())
	ahead := periodsTo(now, lastPlanned(tx).End())
	var steps []flex.Step
	if isPlanned(b) { // the dispatches of others are in ordersUnplanned
		asked, err := ordersOf(ctx, tx, b.Asset.ID, &b.Plan, ahead)
		if err != nil {
			return nil, err
		}

		steps, _ = stepsOf(asked, ahead, b.Power())
	}

	for p := now; isCommitted(&b.Plan, p, now); p = p.Add(1) {
		if mayBeInMode(&b.Plan, p, battery.ModeCharge) {
			steps = append(steps, flex.Step{Span: p.Span()})
		}
	}

	return steps, nil
}

// binds reports whether the loads can together draw more than the fuse carries, beside heaters
// and some batteries.
func (f *behindFuse) binds(
	loads []store.Load,
	batteries draws,
) bool {
	sum := f.load()
	sum.add(f.base.most(), flex.Wiring{})
	sum.add(batteries.power, batteries.wired)
	sum.addMost(f.tanks)
	sum.addMost(f.orders)
	for i := range loads {
		sum.addLoad(&loads[i])
	}

	return sum.most() > f.fuse
}

// keepCurrent has every car of a site do what its schedule in force says.
func (f *behindFuse) keepCurrent(loads []store.Load, found []store.ScheduledAsset) {
	planned := map[flex.AssetID]bool{}
	for i := range found {
		planned[found[i].Current.AssetID] = true
		car := &siteCar{member: member{
			ScheduledAsset: &found[i],
			from:           found[i].Current.From,
		}}

		car.pastReadyBy = !car.end(f.from).After(f.from)
		car.keep(f.from)
		car.stepsForNow = car.finalSteps
		f.cars = append(f.cars, car)
	}

	f.drawBeside(loads, planned)
	slices.SortFunc(f.cars, func(a, b *siteCar) int {
		return bytes.Compare(a.Current.AssetID[:], b.Current.AssetID[:])
	})
}

// carNamed returns a car of the site by its asset; nil if it has no schedule.
func (f *behindFuse) carNamed(id flex.AssetID) *siteCar {
	i := slices.IndexFunc(f.cars, func(car *siteCar) bool {
		return car.Current.AssetID == id
	})
	if i < 0 {
		return nil
	}

	return f.cars[i]
}

// joined returns the car that is planned on its own, with the inputs of its plan. A car
// without a schedule was counted at full power among the others; it becomes a car of the site.
func (f *behindFuse) joined(c *store.PlanningState, e store.PlanInputs) *siteCar {
	if f == nil {
		return nil
	}

	car := f.carNamed(c.Asset.ID)
	if car == nil {
		p := &store.ScheduledAsset{Session: c.Session.ID}
		p.Current.AssetID = c.Asset.ID
		car = &siteCar{member: member{ScheduledAsset: p}}
		f.cars = append(f.cars, car)
		f.others = slices.DeleteFunc(f.others, func(o draws) bool {
			return o.asset == c.Asset.ID
		})
	}

	car.ScheduledAsset.ProfilePhases = e.ProfilePhases
	car.from, car.pastReadyBy = e, false // after its ready-by the car may have a new one
	car.pastReadyBy = !car.end(f.from).After(f.from)
	f.lasts(car.end(f.from))

	return car
}

// breaks reports whether a car's schedule in force exceeds what the others leave it, or was
// made without the fuse.
func (f *behindFuse) breaks(car *siteCar) bool {
	if car.Current.Generation == 0 {
		return false
	}
	if !car.Current.HasTail() {
		return true
	}

	span := flex.Span{From: f.from, To: car.Current.End()}

	return !staysWithin(
		stepsWithin(car.Current.Steps, span),
		car.from.Power,
		f.left(car, span),
	)
}

// replaces reports whether the schedule in force must be replaced even if the new one saves
// nothing: it exceeds the fuse, or was made for a fuse that no longer limits the car.
func (f *behindFuse) replaces(car *siteCar, c *store.PlanningState) bool {
	if f == nil {
		return c.Current.HasTail()
	}
	return f.breaks(car)
}

// fitToFuse changes a car's plan so that it fits the fuse whichever of their schedules the
// other cars follow, and adds the times in which the fuse limited it to the binding.
func (f *behindFuse) fitToFuse(
	car *siteCar,
	p *charge.Problem,
	plan *charge.Plan,
	b *store.Binding,
) *store.Binding {
	if f == nil {
		return b
	}

	span := flex.Span{From: f.from, To: car.end(f.from)}
	free := plan.Steps
	var limited bool
	car.finalSteps, limited = f.fitWithin(p, plan, span, f.stepped(span, car.least(), func(t time.Time) flex.Watts {
		return f.openAt(car, t)
	}))

	_, limitedForNow := f.fitWithin(p, plan, span, f.left(car, span))
	car.stepsForNow = plan.Steps
	if b == nil {
		b = &store.Binding{}
	}

	b.Limits = lesserLimits(p.Limits, nil, span)
	if limited || limitedForNow {
		b.Caps = append(b.Caps, f.bindingTimes(car, free, p, plan)...)
	}

	return b
}

// fitWithin makes a plan fit some limits, and reports whether it had to be planned again for
// that.
func (f *behindFuse) fitWithin(
	p *charge.Problem,
	plan *charge.Plan,
	span flex.Span,
	limits []flex.Step,
) (steps []flex.Step, remade bool) {
	remade = !staysWithin(plan.Steps, p.Power, limits)
	if remade {
		p.Limits = lesserLimits(p.Limits, limits, span)
		*plan = charge.Solve(*p)
	}

	return plan.Steps, remade
}

// openAt returns what the others leave to a car at an instant once they have accepted their
// new plans.
func (f *behindFuse) openAt(car *siteCar, t time.Time) flex.Watts {
	l := f.load()
	l.addAll(f.others, t)
	for _, other := range f.cars {
		if other != car {
			d := draws{
				lists: [][]flex.Step{other.finalSteps},
				power: other.from.Power,
			}

			l.add(d.powerAt(t), other.wiring())
		}
	}

	return l.left(f.limit(), car.wiring())
}

// bindingTimes returns the times in which a plan without the fuse draws more than the car may
// behind it.
func (f *behindFuse) bindingTimes(
	car *siteCar,
	free []flex.Step,
	p *charge.Problem,
	plan *charge.Plan,
) []store.BindingCap {
	var caps []store.BindingCap

	for _, s := range free {
		for _, l := range p.Limits {
			span := s.Meet(l.Span)
			if span.Empty() || min(s.Limit, p.Power) <= l.Limit {
				continue
			}

			if n := len(caps); n > 0 && caps[n-1].To.Equal(span.From) {
				caps[n-1].To = span.To
				continue
			}

			caps = append(caps, f.capOf(car, span))
		}
	}

	return caps
}

// ended returns what is sent to a car that is planned on its own: its plan, and the power that
// it may draw after its end. The latter is added to its binding too.
func (f *behindFuse) ended(
	car *siteCar,
	steps []flex.Step,
	b *store.Binding,
) []flex.Step {
	if f == nil {
		return steps
	}

	car.stepsForNow = steps
	f.finish(car)
	if b != nil {
		b.Limits = append(b.Limits, car.stepsAfterEnd...)
	}

	return slices.Concat(steps, car.stepsAfterEnd)
}

// due returns when a fleet under caps is to be planned as one because of a car of the site
// that was planned on its own: at once if the schedules of others were made without the fuse,
// at the market's pace if the fuse limited the car; else zero.
func (f *behindFuse) due(id flex.AssetID, b *store.Binding) time.Time {
	if f == nil {
		return time.Time{}
	}

	for _, car := range f.cars {
		if car.Current.AssetID != id && !car.Current.HasTail() {
			return f.now
		}
	}

	limited := b != nil && slices.ContainsFunc(b.Caps, func(c store.BindingCap) bool {
		return c.Site
	})
	if limited {
		return f.now.Add(MarketInterval)
	}

	return time.Time{}
}
