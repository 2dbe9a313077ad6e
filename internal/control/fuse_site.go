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

// limitedSites reads the sites of assets whose main fuse was set; without assets, all sites of
// the organisation at which something is plugged in. It leaves out sites whose fuse always
// carries their only charger together with the home, so that a fleet of such sites is not read
// site by site.
func limitedSites(
	ctx context.Context,
	tx *store.Tx,
	assets ...flex.AssetID,
) ([]store.FusedSite, error) {
	sites, err := tx.FusedSites(ctx, assets...)
	if err != nil {
		return nil, err
	}

	carried, err := unlimitedSites(ctx, tx, sites)

	return slices.DeleteFunc(sites, func(s store.FusedSite) bool { return carried[s.ID] }), err
}

// unlimitedSites returns the sites whose main fuse carries their only charger together with
// the home's own load, as it was learned today. Their cars need not be planned as a site.
func unlimitedSites(
	ctx context.Context,
	tx *store.Tx,
	sites []store.FusedSite,
) (map[flex.SiteID]bool, error) {
	alone := unlimitedWithoutHome(sites)
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
			carried[s.ID] = fuseSuffices(s, 0)
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
		carried[s.ID] = fresh && fuseSuffices(s, base.max())
	}

	return carried, err
}

// unlimitedWithoutHome returns the sites whose main fuse carries their only charger if the
// home itself draws nothing.
func unlimitedWithoutHome(sites []store.FusedSite) []flex.SiteID {
	var alone []flex.SiteID
	for i := range sites {
		if fuseSuffices(&sites[i], 0) {
			alone = append(alone, sites[i].ID)
		}
	}

	return alone
}

// fuseSuffices reports whether a site's main fuse carries its only charger together with the
// home itself, which draws at most base.
func fuseSuffices(s *store.FusedSite, base flex.Watts) bool {
	several := s.Chargers > 1 || len(s.Batteries) > 0
	if several || s.Heats {
		return false
	}

	sum := phaseLoad{phases: s.Phases}
	sum.add(base, flex.Wiring{})
	sum.addLoad(&s.Last)

	return sum.max() <= s.Fuse
}

// siteAround reads the site of a car that is planned on its own, while the other cars follow
// their schedules in force. It is nil if the main fuse cannot limit the cars.
func siteAround(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) (*sitePlan, error) {
	if c.Fuse == 0 {
		return nil, nil
	}

	sites, err := limitedSites(ctx, tx, c.Asset.ID)
	if err != nil || len(sites) == 0 {
		return nil, err
	}

	return readSitePlan(ctx, tx, sites[0], *ownLoad(c))
}

// readSitePlan reads a site with a main fuse and its schedules in force, as if some more loads
// were plugged in too. It is nil if the fuse cannot limit the cars.
func readSitePlan(
	ctx context.Context,
	tx *store.Tx,
	s store.FusedSite,
	more ...store.Load,
) (*sitePlan, error) {
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

	return newSitePlan(ctx, tx, s, loads, found)
}

// fusedSitesOf reads the sites of assets whose main fuse can limit their cars, by car.
func fusedSitesOf(
	ctx context.Context,
	tx *store.Tx,
	found []store.ScheduledAsset,
) (map[flex.AssetID]*sitePlan, error) {
	if len(found) == 0 {
		return nil, nil
	}

	ids := make([]flex.AssetID, len(found))
	for i := range found {
		ids[i] = found[i].Current.AssetID
	}

	by := map[flex.AssetID]*sitePlan{}
	sites, err := limitedSites(ctx, tx, ids...)
	for i := 0; i < len(sites) && err == nil; i++ {
		var f *sitePlan
		f, err = readSitePlan(ctx, tx, sites[i])
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

// newSitePlan returns a site with a main fuse, from its loads and schedules. It is nil if the
// fuse cannot limit the cars.
func newSitePlan(
	ctx context.Context,
	tx *store.Tx,
	s store.FusedSite,
	loads []store.Load,
	found []store.ScheduledAsset,
) (*sitePlan, error) {
	f := &sitePlan{
		fuse:        s.Fuse,
		phases:      s.Phases,
		now:         tx.Now(),
		from:        tx.Now().Truncate(time.Second),
		replanTimes: map[time.Time][]flex.AssetID{},
	}

	if err := f.readSite(ctx, tx, &s); err != nil {
		return nil, err
	}

	charging, err := f.batteryLoad(ctx, tx, s.Batteries)
	if err != nil {
		return nil, err
	}

	f.tight = f.canExceedFuse(loads, charging)
	if !f.tight {
		return nil, nil
	}

	f.keepCurrent(loads, found)
	f.others = append(f.others, charging)

	if err := f.readPossibleSteps(ctx, tx); err != nil {
		return nil, err
	}

	return f, nil
}

// readSite reads what the home itself and its heaters draw, and the dispatches of batteries
// that are not planned.
func (f *sitePlan) readSite(
	ctx context.Context,
	tx *store.Tx,
	s *store.FusedSite,
) error {
	var err error
	f.base, err = baseAt(ctx, tx, s.ID)
	if err != nil {
		return err
	}

	f.heaters, err = heatersAt(ctx, tx, s.ID, flex.AssetID{})
	if err != nil {
		return err
	}

	f.dispatches, err = unplannedDispatches(ctx, tx, s.Batteries)

	return err
}

// batteryLoad returns the power with which the batteries of a site may charge: in half-hours
// that are committed, and by dispatches.
func (f *sitePlan) batteryLoad(
	ctx context.Context,
	tx *store.Tx,
	batteries []flex.AssetID,
) (loadBound, error) {
	d := loadBound{isBattery: true}
	var steps []flex.Step
	var read int
	for _, id := range batteries {
		b, err := tx.Battery(ctx, id)
		if errors.Is(err, store.ErrUnreadable) { // unplannedDispatches counts it
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

	d.lists = [][]flex.Step{distinctHalfHours(steps, d.power)}

	return d, nil
}

// distinctHalfHours returns half-hours in order, without duplicates, with one limit.
func distinctHalfHours(steps []flex.Step, limit flex.Watts) []flex.Step {
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
	if isPlanned(b) { // the dispatches of others are in unplannedDispatches
		requested, err := dispatchesOf(ctx, tx, b.Asset.ID, &b.Plan, ahead)
		if err != nil {
			return nil, err
		}

		steps, _ = stepsOf(requested, ahead, b.Power())
	}

	for p := now; isCommitted(&b.Plan, p, now); p = p.Add(1) {
		if mayBeInMode(&b.Plan, p, battery.ModeCharge) {
			steps = append(steps, flex.Step{Span: p.Span()})
		}
	}

	return steps, nil
}

// canExceedFuse reports whether the loads can together draw more than the fuse carries, beside
// heaters and some batteries.
func (f *sitePlan) canExceedFuse(
	loads []store.Load,
	batteries loadBound,
) bool {
	sum := f.load()
	sum.add(f.base.max(), flex.Wiring{})
	sum.add(batteries.power, batteries.wiring)
	sum.addMax(f.heaters)
	sum.addMax(f.dispatches)
	for i := range loads {
		sum.addLoad(&loads[i])
	}

	return sum.max() > f.fuse
}

// keepCurrent sets every car's steps to those of its schedule in force.
func (f *sitePlan) keepCurrent(loads []store.Load, found []store.ScheduledAsset) {
	planned := map[flex.AssetID]bool{}
	for i := range found {
		planned[found[i].Current.AssetID] = true
		car := &siteCar{member: member{
			ScheduledAsset: &found[i],
			from:           found[i].Current.From,
		}}

		car.pastReadyBy = !car.end(f.from).After(f.from)
		car.keepSchedule(f.from)
		car.stepsForNow = car.finalSteps
		f.cars = append(f.cars, car)
	}

	f.addLoads(loads, planned)
	slices.SortFunc(f.cars, func(a, b *siteCar) int {
		return bytes.Compare(a.Current.AssetID[:], b.Current.AssetID[:])
	})
}

// carByAsset returns the car of an asset; nil if that has no schedule.
func (f *sitePlan) carByAsset(id flex.AssetID) *siteCar {
	i := slices.IndexFunc(f.cars, func(car *siteCar) bool {
		return car.Current.AssetID == id
	})
	if i < 0 {
		return nil
	}

	return f.cars[i]
}

// addPlannedCar returns the car of the site that is planned on its own, with the inputs of its
// plan. A car without a schedule was counted at full power among the other loads; it is
// removed from these.
func (f *sitePlan) addPlannedCar(c *store.PlanningState, e store.PlanInputs) *siteCar {
	if f == nil {
		return nil
	}

	car := f.carByAsset(c.Asset.ID)
	if car == nil {
		p := &store.ScheduledAsset{Session: c.Session.ID}
		p.Current.AssetID = c.Asset.ID
		car = &siteCar{member: member{ScheduledAsset: p}}
		f.cars = append(f.cars, car)
		f.others = slices.DeleteFunc(f.others, func(o loadBound) bool {
			return o.asset == c.Asset.ID
		})
	}

	car.ScheduledAsset.ProfilePhases = e.ProfilePhases
	car.from, car.pastReadyBy = e, false // after its ready-by the car may have a new one
	car.pastReadyBy = !car.end(f.from).After(f.from)
	f.extendTo(car.end(f.from))

	return car
}

// exceedsFuse reports whether a car's schedule in force exceeds what the others leave it, or
// was made without the fuse.
func (f *sitePlan) exceedsFuse(car *siteCar) bool {
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
		f.safeHeadroom(car, span),
	)
}

// mustReplace reports whether the schedule in force must be replaced even if the new one saves
// nothing: it exceeds the fuse, or was made for a fuse that no longer limits the car.
func (f *sitePlan) mustReplace(car *siteCar, c *store.PlanningState) bool {
	if f == nil {
		return c.Current.HasTail()
	}
	return f.exceedsFuse(car)
}

// fitToFuse changes a car's plan so that it fits the fuse whichever of their schedules the
// other cars follow, and adds the times in which the fuse limited it to the binding.
func (f *sitePlan) fitToFuse(
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
	car.finalSteps, limited = f.fitWithin(p, plan, span, f.sampleSteps(span, car.least(), func(t time.Time) flex.Watts {
		return f.finalHeadroomAt(car, t)
	}))

	_, limitedForNow := f.fitWithin(p, plan, span, f.safeHeadroom(car, span))
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

// fitWithin makes a plan fit some limits, and reports whether it had to be planned again.
func (f *sitePlan) fitWithin(
	p *charge.Problem,
	plan *charge.Plan,
	span flex.Span,
	limits []flex.Step,
) (steps []flex.Step, replanned bool) {
	replanned = !staysWithin(plan.Steps, p.Power, limits)
	if replanned {
		p.Limits = lesserLimits(p.Limits, limits, span)
		*plan = charge.Solve(*p)
	}

	return plan.Steps, replanned
}

// finalHeadroomAt returns what the others leave to a car at an instant once they have accepted
// their new plans.
func (f *sitePlan) finalHeadroomAt(car *siteCar, t time.Time) flex.Watts {
	l := f.load()
	l.addAll(f.others, t)
	for _, other := range f.cars {
		if other != car {
			d := loadBound{
				lists: [][]flex.Step{other.finalSteps},
				power: other.from.Power,
			}

			l.add(d.powerAt(t), other.wiring())
		}
	}

	return l.headroom(f.limit(), car.wiring())
}

// bindingTimes returns the times in which the fuse limited a car: those in which its plan
// without the fuse draws more than the fuse leaves it.
func (f *sitePlan) bindingTimes(
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

// withStepsAfterEnd returns the steps that are sent to a car that is planned on its own: those
// of its plan, and its power after its end, which is added to its binding too.
func (f *sitePlan) withStepsAfterEnd(
	car *siteCar,
	steps []flex.Step,
	b *store.Binding,
) []flex.Step {
	if f == nil {
		return steps
	}

	car.stepsForNow = steps
	f.setStepsAfterEnd(car)
	if b != nil {
		b.Limits = append(b.Limits, car.stepsAfterEnd...)
	}

	return slices.Concat(steps, car.stepsAfterEnd)
}

// fleetReplanTime returns when the fleet under caps is to be planned because a car of the site
// was planned on its own: at once if schedules of the other cars were made without the fuse,
// after MarketInterval if the fuse limited the car; else zero.
func (f *sitePlan) fleetReplanTime(id flex.AssetID, b *store.Binding) time.Time {
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
