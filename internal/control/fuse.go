package control

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
	"flexd/internal/store"
)

const (
	// TailTime is how long after the last ready-by of a site the schedules that were sent
	// still observe its main fuse without further messages: each car has its share of the
	// fuse.
	TailTime = 7 * 24 * time.Hour
	// FuseInterval is how soon a site is planned again while one of its cars waits until
	// another has accepted a schedule with less power.
	FuseInterval = 30 * time.Second
)

// sitePlan is the plan of a site as one problem: of everything that draws power behind a
// main fuse whose capacity was set, or of batteries and cars at a site without one.
type sitePlan struct {
	*assetHeadroom
	fuse             flex.Watts
	phases           int // of the fuse, if its capacity was set by phase; 0 for not known
	from             time.Time
	now              time.Time
	prices           []flex.PricedPeriod
	cars             []*siteCar
	finishedCars     []*siteCar                       // past their ready-by: not planned, but may still discharge
	dischargingCars  map[flex.AssetID]*dischargingCar // without a cause of their own
	others           []loadBound                      // loads that are not planned here
	uncontrolledCars []loadBound                      // what cars may still discharge that flexd no longer controls
	heaters          []loadBound                      // tanks and heat pumps
	heatRequests     []loadBound                      // the power that heaters request from the cars
	dispatches       []loadBound                      // of batteries that are not planned
	replanTimes      map[time.Time][]flex.AssetID     // which assets to plan again, by time
	// all loads together can exceed the fuse
	tight   bool
	lastEnd time.Time // the latest end of any car

	home         *siteHome   // batteries beside the cars; nil for none
	batterySteps []flex.Step // when batteries charge by the site's plan
	base         baseLoad    // what the home itself draws
	quality      planQuality // why the site is not planned as one, or how far that plan may be from the optimum
}

// siteCar is one car behind a fuse.
type siteCar struct {
	member
	// set for a car that is planned for a cause of its own or may discharge
	state            *store.PlanningState
	cause            replanReason
	withoutCause     bool // it has no cause of its own
	counted          bool // its plan is counted, instead of the headroom that was reserved for it
	pastReadyBy      bool // past its ready-by: it has the power that others leave
	keepsDischarging bool // it keeps discharging by its schedule: others are planned around it
	// the steps of each schedule that its charger may be following until it accepts the next
	possibleSteps [][]flex.Step
	// its discharge by the schedule that it is about to be sent, or else by the one in force
	discharges []flex.Step
	// the schedules that its charger may be following, if it discharges by one of them; nil
	// for not known
	possibleSchedules []*store.Schedule

	problem       charge.Problem
	plan          charge.Plan
	renewed       bool        // the plan replaces the schedule in force
	finalSteps    []flex.Step // its steps until its end once all cars have accepted theirs
	stepsForNow   []flex.Step // its steps until its end that it is sent now, before the others accept
	stepsAfterEnd []flex.Step // its steps after its end
}

// least returns the least power that the car can charge with.
func (c *siteCar) least() flex.Watts { return flex.LeastPower(c.from.Phases) }

// end returns when the car is to be done: at ready-by, or at the end of charge-now if that is
// later.
func (c *siteCar) end(from time.Time) time.Time {
	if c.pastReadyBy {
		return from
	}
	return flex.Later(c.from.ReadyBy, c.from.ChargeNow.To)
}

// replanSite plans a site as one problem because of some of its cars, and commits the changes.
// It does nothing and returns false if the main fuse cannot limit the site.
func (s *Service) replanSite(
	ctx context.Context,
	tx *store.Tx,
	why replanReason,
	cars ...*store.PlanningState,
) (bool, error) {
	if err := tx.LockSite(ctx, cars[0].Asset.SiteID); err != nil {
		return false, fmt.Errorf("lock the site: %w", err)
	}

	f, err := s.planSite(ctx, tx, why, cars)
	if err != nil || f == nil {
		return false, err
	}

	if err := s.commitSite(ctx, tx, f, cars[0].Asset.SiteID); err != nil {
		return true, err
	}

	return true, s.planAround(ctx, tx, cars[0])
}

// planSite plans a site as one. It returns nil if the fuse cannot limit its assets, and no
// schedule in force was made for it.
func (s *Service) planSite(
	ctx context.Context,
	tx *store.Tx,
	why replanReason,
	cars []*store.PlanningState,
) (*sitePlan, error) {
	c := cars[0]
	h, err := s.homeForCar(ctx, tx, c)
	if err != nil || c.Fuse == 0 && h == nil {
		return nil, err
	}

	f := &sitePlan{
		fuse:        c.Fuse,
		phases:      c.FusePhases,
		home:        h,
		now:         tx.Now(),
		from:        tx.Now().Truncate(time.Second),
		replanTimes: map[time.Time][]flex.AssetID{},
	}

	loads, found, err := f.read(ctx, tx, c)
	if err != nil || loads == nil {
		return nil, err
	}

	inputs, err := f.inputs(ctx, tx, why, cars, found)
	if err != nil {
		return nil, err
	}

	f, err = f.plan(ctx, tx, s, func(f *sitePlan) {
		for i, c := range cars {
			f.addCause(c, why, inputs[i])
		}
		f.addCars(found, loads)
	})
	if err != nil {
		return nil, err
	}

	return f, s.planDischarging(ctx, tx, f)
}

// inputs reads the prices, and the inputs of the cars with a cause of their own and of the
// cars beside them that may discharge.
func (f *sitePlan) inputs(
	ctx context.Context,
	tx *store.Tx,
	why replanReason,
	cars []*store.PlanningState,
	found []store.ScheduledAsset,
) ([]store.PlanInputs, error) {
	var err error
	all := make([]store.PlanInputs, len(cars))
	all[0], f.prices, err = inputsAndPrices(ctx, tx, cars[0], f.from, why.intent)
	for i := 1; i < len(cars) && err == nil; i++ {
		all[i], err = inputs(ctx, tx, cars[i], f.from, why.intent)
	}

	if err != nil {
		return nil, err
	}

	return all, f.readDischargingCars(ctx, tx, found, cars)
}

// plan plans a site in three steps: cars and batteries together, then around cars that keep
// discharging, and then around the requests of heaters. build builds the problem each time.
func (f *sitePlan) plan(
	ctx context.Context,
	tx *store.Tx,
	d *Service,
	pose func(*sitePlan),
) (*sitePlan, error) {
	pose(f)
	if err := f.readPossibleSteps(ctx, tx); err != nil {
		return nil, err
	}

	withoutHeat, err := f.planAroundDischarging(ctx, d, pose)
	if err != nil {
		return nil, err
	}

	return f.planAroundHeat(ctx, d, pose, withoutHeat)
}

// solveOnce plans a site once, together with its batteries if it has any.
func (f *sitePlan) solveOnce(
	ctx context.Context,
	d *Service,
	pose func(*sitePlan),
) (*sitePlan, error) {
	if f.home != nil {
		return f.solveHome(ctx, d, pose)
	}

	if err := f.solve(ctx, d); err != nil {
		return nil, err
	}

	return f, nil
}

// read reads what is plugged in at an asset's site, and the schedules there. Both are nil if
// the fuse cannot limit the loads and no schedule in force was made for a fuse.
func (f *sitePlan) read(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) ([]store.Load, []store.ScheduledAsset, error) {
	extra, err := f.readOtherLoads(ctx, tx, c)
	if err != nil {
		return nil, nil, err
	}

	loads, tight, err := f.tightLoads(ctx, tx, c, extra)
	f.tight = tight
	alone := len(loads) < 2 && !c.Current.HasTail() && f.home == nil
	if err != nil || alone && !f.tight {
		return nil, nil, err
	}

	found, err := tx.PlannedAt(ctx, c.Asset.SiteID)
	if err != nil {
		return nil, nil, fmt.Errorf("read the site's schedules: %w", err)
	}

	f.uncontrolledCars, err = uncontrolledCarsAt(ctx, tx, c.Asset.SiteID)
	if err != nil {
		return nil, nil, err
	}

	made := slices.ContainsFunc(found, func(p store.ScheduledAsset) bool {
		return p.Current.HasTail()
	})
	if !f.tight && !made && f.home == nil {
		return nil, nil, nil
	}

	return loads, found, nil
}

// readOtherLoads reads what the home itself, its heaters and its dispatched batteries draw,
// and returns the most that is drawn beside the cars.
func (f *sitePlan) readOtherLoads(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) (phaseLoad, error) {
	var err error
	most := f.load()
	if c.Fuse > 0 {
		f.base, err = baseAt(ctx, tx, c.Asset.SiteID)
		if err != nil {
			return most, err
		}
	}

	if c.Fuse > 0 && c.Battery {
		ids, err := batteriesAt(ctx, tx, c.Asset.SiteID)
		if err != nil {
			return most, err
		}

		f.dispatches, err = unplannedDispatches(ctx, tx, ids)
		if err != nil {
			return most, err
		}
	}

	f.heaters, err = heatersAt(ctx, tx, c.Asset.SiteID, flex.AssetID{})
	most.add(f.base.max(), flex.Wiring{})
	most.addMax(f.heaters)
	most.addMax(f.dispatches)
	if f.home != nil {
		most.add(f.home.device.Power, f.home.wiring)
	}

	return most, err
}

// readPossibleSteps reads the schedules that each charger may be following.
func (f *sitePlan) readPossibleSteps(ctx context.Context, tx *store.Tx) error {
	for _, car := range slices.Concat(f.cars, f.finishedCars) {
		if err := car.readPossibleSteps(ctx, tx); err != nil {
			return err
		}
	}

	return nil
}

// tightLoads reads what is plugged in at an asset's site, and reports whether that and sum
// together can exceed the fuse; a single car may be enough. It reports false if no fuse was
// set.
func (f *sitePlan) tightLoads(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	sum phaseLoad,
) (loads []store.Load, tight bool, err error) {
	loads, err = tx.SiteLoads(ctx, c.Asset.SiteID)
	if err != nil {
		return nil, false, fmt.Errorf(
			"read what is plugged in at the site: %w",
			err,
		)
	}

	sum.addLoad(ownLoad(c))

	for i := range loads {
		if l := &loads[i]; l.AssetID != c.Asset.ID {
			sum.addLoad(l)
		}
	}

	return loads, c.Fuse > 0 && sum.max() > c.Fuse, nil
}

// ownLoad returns what an asset's charger can draw.
func ownLoad(c *store.PlanningState) *store.Load {
	power, origin := powerOf(c)

	return &store.Load{
		AssetID: c.Asset.ID,
		Power:   power,
		Assumed: origin == fromDefault,
		Wired:   c.Asset.Wiring(),
	}
}

// addCause adds a car that is planned for a cause of its own.
func (f *sitePlan) addCause(
	c *store.PlanningState,
	why replanReason,
	e store.PlanInputs,
) {
	own := &store.ScheduledAsset{
		Session:  c.Session.ID,
		MarketAt: c.Session.MarketAt,
		Current:  c.Current,

		ProfilePhases: e.ProfilePhases,
	}

	own.Current.AssetID = c.Asset.ID
	f.cars = append(f.cars, &siteCar{
		member: member{ScheduledAsset: own, from: e},
		state:  c,
		cause:  why,
	})
}

// addCars adds the other cars of the site that are planned, and everything else that is
// plugged in as loads.
func (f *sitePlan) addCars(
	found []store.ScheduledAsset,
	loads []store.Load,
) {
	planned := map[flex.AssetID]bool{}
	for _, car := range f.cars {
		planned[car.Current.AssetID] = true
	}

	for i := range found {
		p := &found[i]
		if car := f.carByAsset(p.Current.AssetID); car != nil {
			car.Taken, car.MendedAt = p.Taken, p.MendedAt
			continue
		}

		if car := f.otherCar(p); car != nil {
			planned[p.Current.AssetID] = true
			f.cars = append(f.cars, car)
		} else if p.Current.From.Discharge != nil {
			f.finishedCars = append(f.finishedCars, &siteCar{member: member{ScheduledAsset: p, from: p.Current.From}, pastReadyBy: true})
		}
	}

	f.addLoads(loads, planned)

	slices.SortFunc(f.cars, func(a, b *siteCar) int {
		return bytes.Compare(a.Current.AssetID[:], b.Current.AssetID[:])
	})
	f.buildProblems()
}

// addLoads adds all loads that the cars are planned around.
func (f *sitePlan) addLoads(
	loads []store.Load,
	planned map[flex.AssetID]bool,
) {
	f.lastEnd = f.from
	for _, car := range f.cars {
		f.lastEnd = flex.Later(f.lastEnd, car.end(f.from))
	}

	f.addUnplannedLoads(loads, planned)
	f.others = append(f.others, f.heaters...)
	f.others = append(f.others, f.dispatches...)
	f.addHeatRequests()
	f.addBatteryLoads()
	f.addHomeLoad()
}

// addUnplannedLoads adds the loads of assets that are plugged in and not planned here.
func (f *sitePlan) addUnplannedLoads(
	loads []store.Load,
	planned map[flex.AssetID]bool,
) {
	for i := range loads {
		if planned[loads[i].AssetID] {
			continue
		}

		steps, power, _ := loadSteps(&loads[i], f.from)
		f.others = append(f.others, loadBound{
			lists:  [][]flex.Step{steps},
			power:  power,
			asset:  loads[i].AssetID,
			wiring: loads[i].Wired,
		})
	}
}

// otherCar returns a car of the site that is planned along with the cars that have a cause;
// nil if it stays as it is until its next event.
func (f *sitePlan) otherCar(p *store.ScheduledAsset) *siteCar {
	car := &siteCar{member: member{ScheduledAsset: p, from: p.Current.From}}
	car.pastReadyBy = !car.end(f.from).After(f.from)
	if !car.pastReadyBy {
		car.from = inputsAt(p, f.from)
		f.dischargingCars[p.Current.AssetID].applyTo(car)
		car.from.Ramp = nil // the fuse is shared to the second
		return car
	}

	if f.tight {
		return car
	}

	return nil
}

// buildProblems builds each car's problem, and the headroom before any of them is planned.
func (f *sitePlan) buildProblems() {
	f.assetHeadroom = fuseHeadroom(f.limit(), f.from)

	for _, o := range f.others {
		f.Add(0, o.lists[0], o.power, true)
	}

	for _, car := range f.cars {
		if car.pastReadyBy {
			continue
		}

		limitToLearned(&car.from, f.tight)
		if f.tight {
			raiseToMinPower(&car.from)
		}
		if f.home != nil {
			ignoreUnknownPower(&car.from)
		}

		car.problem = problemOf(car.from, f.from, f.prices)
		car.problem.Exact = car.problem.Exact || f.tight
		car.Car = headroom.Car{Problem: &car.problem}

		now := car.problem.ChargeNow.Meet(flex.Span{
			From: f.from,
			To:   car.problem.ChargeNow.To,
		})
		if !now.Empty() {
			car.member.now = []flex.Step{{Span: now, Limit: car.problem.Power}}
			f.Reserve(0, car.member.now)
		}
	}
}

// limit returns the import capacity of the site; unbounded if it was never set.
func (f *sitePlan) limit() flex.Watts {
	if f.fuse == 0 {
		return flex.Unbounded
	}
	return f.fuse
}

// readPossibleSteps reads the schedules that a car's charger may be following: the last one
// that its client accepted, and those that were sent since, as it is not known whether they
// arrived. If these are not all known, the charger may draw its full power at any time.
func (c *siteCar) readPossibleSteps(ctx context.Context, tx *store.Tx) error {
	if c.Current.Generation == 0 {
		return nil
	}

	if c.Current.From.Discharge != nil {
		return c.readPossibleSchedules(ctx, tx)
	}

	c.possibleSteps = append(c.possibleSteps, c.Current.Steps)
	if c.Followed() {
		return nil
	}

	accepted, err := tx.Accepted(ctx, c.Current.AssetID)
	if err != nil {
		return err
	}

	s, err := tx.Schedule(ctx, c.Current.EventID)
	for err == nil && !s.Before.IsZero() {
		var followed bool
		followed, err = isAccepted(ctx, tx, &s, accepted)
		if followed || err != nil {
			return err
		}

		if len(c.possibleSteps) == chainMax { // the earlier ones are not read
			c.addUnknownSteps(tx.Now())
			return nil
		}

		s, err = tx.Schedule(ctx, s.Before)
		if err == nil {
			c.possibleSteps = append(c.possibleSteps, s.Steps)
		}
	}

	if flex.KindOf(err) == flex.NotFound { // deleted after its retention
		c.addUnknownSteps(tx.Now())
		return nil
	}

	return err
}

// addUnknownSteps adds a list by which the charger may draw its full power at any time.
func (c *siteCar) addUnknownSteps(now time.Time) {
	always := alwaysUpTo(c.from.Power, now)
	c.possibleSteps = append(c.possibleSteps, always.lists...)
}

// isAccepted reports whether a schedule was followed: its client accepted it, and it did not
// fail at the charger, or was followed after a failure. newest is the newest generation that
// the client has accepted.
func isAccepted(ctx context.Context, tx *store.Tx, s *store.Schedule, newest int64) (bool, error) {
	if s.Generation > newest {
		return false, nil
	}

	one := []store.Schedule{*s}
	accepted, err := tx.TakenUp(ctx, one)
	if err != nil || len(accepted) > 0 {
		return len(accepted) > 0, err
	}

	recovered, err := tx.Mended(ctx, one)

	return len(recovered) > 0, err
}

// solve plans the cars of a site: first the share of the fuse that each has; then one car
// after the other, least slack first; then the schedules that may be sent before the others
// have accepted theirs; and last the power of each car after its end.
func (f *sitePlan) solve(ctx context.Context, d *Service) error {
	for _, car := range f.cars {
		if car.keepsDischarging {
			car.keepSchedule(f.from)
			f.countPlan(car)
		}
	}

	if err := f.shareFuse(); err != nil {
		return err
	}

	order := f.order()
	for _, car := range order {
		f.releaseHeadroom(car)
		f.choose(ctx, d, car)
		f.countPlan(car)
	}

	if f.currentFits() && !f.worthReplacing() {
		for _, car := range order {
			car.keepSchedule(f.from)
		}
	}

	f.limitAll(order)

	return nil
}

// shareFuse gives each car that is planned its share of the fuse.
func (f *sitePlan) shareFuse() error {
	var problems []headroom.Car
	var cars []*siteCar
	for _, car := range f.cars {
		if !car.pastReadyBy && !car.keepsDischarging {
			problems = append(problems, car.Car)
			cars = append(cars, car)
		}
	}

	if !f.tight || len(problems) < 2 {
		return nil
	}

	if f.hasPhases() {
		if err := f.sharePhases(cars); err != nil {
			return fmt.Errorf("share the phases of the fuse: %w", err)
		}
		return nil
	}

	shares, err := f.Share(problems, f.prices, nil)
	if err != nil {
		return fmt.Errorf("share the fuse: %w", err)
	}

	for i, car := range cars {
		car.share = shares.Cars[i]
	}

	return nil
}
