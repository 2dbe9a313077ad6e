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
	// TailTime is for how long after the last ready-by of a site the schedules that were sent
	// still observe its main fuse without further messages: each car has its part of it.
	TailTime = 7 * 24 * time.Hour
	// FuseInterval is how soon a site is planned again while one of its cars waits until
	// another has accepted a schedule with less power.
	FuseInterval = 30 * time.Second
)

// behindFuse is everything that draws power at a site whose import capacity was set, planned
// as one. It also serves a site without one whose batteries are planned with its cars.
type behindFuse struct {
	*assetHeadroom
	fuse   flex.Watts
	phases int // of the fuse, if its capacity was set by phase; 0 for not known
	from   time.Time
	now    time.Time
	prices []flex.PricedPeriod
	cars   []*siteCar
	gone   []*siteCar                   // cars past their ready-by that are not planned but may still discharge
	givers map[flex.AssetID]*giver      // cars that may discharge by a schedule, and have no cause of their own
	others []draws                      // loads that are not planned here
	freed  []draws                      // what freed cars may still discharge
	tanks  []draws                      // tanks and heat pumps
	asked  []draws                      // the power that these ask the cars to leave them
	orders []draws                      // dispatches of batteries that are not planned
	again  map[time.Time][]flex.AssetID // the assets to plan again, by time
	// all loads together can draw more than the fuse carries
	tight bool
	last  time.Time // when all cars are done

	home    *siteHome   // batteries beside the cars; nil for none
	reserve []flex.Step // when batteries charge by the site's plan
	base    baseLoad    // what the home itself draws
	lack    lack        // what the site's plan as one lacks
}

// siteCar is one car behind a fuse.
type siteCar struct {
	member
	// set for a car that is planned for a cause of its own or may discharge; nil for the
	// others
	charging         *store.PlanningState
	cause            replanReason
	withoutCause     bool // it has no cause of its own
	counted          bool // its plan is counted, instead of the headroom that was reserved for it
	pastReadyBy      bool // past its ready-by: it has what others leave
	keepsDischarging bool // it may discharge, and keeps its schedule: others are planned around it
	// the steps of each schedule that its charger may be following until it accepts the next
	sent [][]flex.Step
	// its discharge by the schedule that it is about to be sent, or else by the one in force
	discharges []flex.Step
	// the schedules that its charger may be following, if it discharges by one of them; nil
	// for not known
	discharging []*store.Schedule

	problem       charge.Problem
	plan          charge.Plan
	renewed       bool        // the plan replaces the schedule in force
	finalSteps    []flex.Step // its steps until its end, once all have accepted theirs
	stepsForNow   []flex.Step // its steps until its end that it is sent now
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

// replanSite plans what is plugged in behind a site's main fuse as one, because of some of its
// assets, and commits the changes. It returns false and does nothing if the fuse cannot limit
// them.
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
) (*behindFuse, error) {
	c := cars[0]
	h, err := s.homeBeside(ctx, tx, c)
	if err != nil || c.Fuse == 0 && h == nil {
		return nil, err
	}

	f := &behindFuse{
		fuse:   c.Fuse,
		phases: c.FusePhases,
		home:   h,
		now:    tx.Now(),
		from:   tx.Now().Truncate(time.Second),
		again:  map[time.Time][]flex.AssetID{},
	}

	loads, found, err := f.read(ctx, tx, c)
	if err != nil || loads == nil {
		return nil, err
	}

	inputs, err := f.inputs(ctx, tx, why, cars, found)
	if err != nil {
		return nil, err
	}

	f, err = f.plan(ctx, tx, s, func(f *behindFuse) {
		for i, c := range cars {
			f.addCause(c, why, inputs[i])
		}
		f.gather(found, loads)
	})
	if err != nil {
		return nil, err
	}

	return f, s.planDischarging(ctx, tx, f)
}

// inputs reads the prices, and the inputs of the cars with a cause of their own and of the
// cars beside them that may discharge.
func (f *behindFuse) inputs(
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

	return all, f.readGivers(ctx, tx, found, cars)
}

// plan plans a site: its cars with its batteries, if it has any, then around its discharging
// cars, and then around its heaters. pose builds the problem.
func (f *behindFuse) plan(
	ctx context.Context,
	tx *store.Tx,
	d *Service,
	pose func(*behindFuse),
) (*behindFuse, error) {
	pose(f)
	if err := f.readSent(ctx, tx); err != nil {
		return nil, err
	}

	alone, err := f.besideGivers(ctx, d, pose)
	if err != nil {
		return nil, err
	}

	return f.besideHeat(ctx, d, pose, alone)
}

// solved plans a site once; with its batteries, if it has any.
func (f *behindFuse) solved(
	ctx context.Context,
	d *Service,
	pose func(*behindFuse),
) (*behindFuse, error) {
	if f.home != nil {
		return f.solveHome(ctx, d, pose)
	}

	if err := f.solve(ctx, d); err != nil {
		return nil, err
	}

	return f, nil
}

// read reads what is plugged in at an asset's site, and the schedules there. Both are nil if
// the fuse cannot limit the assets, and no schedule in force was made for it.
func (f *behindFuse) read(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) ([]store.Load, []store.ScheduledAsset, error) {
	extra, err := f.readBeside(ctx, tx, c)
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

	f.freed, err = freedAt(ctx, tx, c.Asset.SiteID)
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

// readBeside reads what the home itself, its heaters and its dispatched batteries draw, and
// returns the most that is drawn beside the cars.
func (f *behindFuse) readBeside(
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

		f.orders, err = ordersUnplanned(ctx, tx, ids)
		if err != nil {
			return most, err
		}
	}

	f.tanks, err = tanksAt(ctx, tx, c.Asset.SiteID, flex.AssetID{})
	most.add(f.base.most(), flex.Wiring{})
	most.addMost(f.tanks)
	most.addMost(f.orders)
	if f.home != nil {
		most.add(f.home.device.Power, f.home.wired)
	}

	return most, err
}

// readSent reads the schedules that each charger may be following.
func (f *behindFuse) readSent(ctx context.Context, tx *store.Tx) error {
	for _, car := range slices.Concat(f.cars, f.gone) {
		if err := car.readSent(ctx, tx); err != nil {
			return err
		}
	}

	return nil
}

// tightLoads reads what is plugged in at an asset's site, and reports whether that and sum can
// together draw more than the fuse carries; a single car may be enough. It reports false if no
// fuse was set.
func (f *behindFuse) tightLoads(
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

	return loads, c.Fuse > 0 && sum.most() > c.Fuse, nil
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
func (f *behindFuse) addCause(
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
		member:   member{ScheduledAsset: own, from: e},
		charging: c,
		cause:    why,
	})
}

// gather adds the other assets that are planned as cars, and everything else that is plugged
// in as loads.
func (f *behindFuse) gather(
	found []store.ScheduledAsset,
	loads []store.Load,
) {
	planned := map[flex.AssetID]bool{}
	for _, car := range f.cars {
		planned[car.Current.AssetID] = true
	}

	for i := range found {
		p := &found[i]
		if car := f.carNamed(p.Current.AssetID); car != nil {
			car.Taken, car.MendedAt = p.Taken, p.MendedAt
			continue
		}

		if car := f.carOf(p); car != nil {
			planned[p.Current.AssetID] = true
			f.cars = append(f.cars, car)
		} else if p.Current.From.Discharge != nil {
			f.gone = append(f.gone, &siteCar{member: member{ScheduledAsset: p, from: p.Current.From}, pastReadyBy: true})
		}
	}

	f.drawBeside(loads, planned)

	slices.SortFunc(f.cars, func(a, b *siteCar) int {
		return bytes.Compare(a.Current.AssetID[:], b.Current.AssetID[:])
	})
	f.pose()
}

// drawBeside adds the loads beside the cars that are planned.
func (f *behindFuse) drawBeside(
	loads []store.Load,
	planned map[flex.AssetID]bool,
) {
	f.last = f.from
	for _, car := range f.cars {
		f.last = flex.Later(f.last, car.end(f.from))
	}

	f.drawOthers(loads, planned)
	f.others = append(f.others, f.tanks...)
	f.others = append(f.others, f.orders...)
	f.drawAsked()
	f.drawBatteries()
	f.drawBase()
}

// drawOthers adds the loads of assets that are plugged in and not planned here.
func (f *behindFuse) drawOthers(
	loads []store.Load,
	planned map[flex.AssetID]bool,
) {
	for i := range loads {
		if planned[loads[i].AssetID] {
			continue
		}

		steps, power, _ := drawsFrom(&loads[i], f.from)
		f.others = append(f.others, draws{
			lists: [][]flex.Step{steps},
			power: power,
			asset: loads[i].AssetID,
			wired: loads[i].Wired,
		})
	}
}

// carOf returns a car that is planned together with the one that has a cause; nil if it stays
// as it is until its next event.
func (f *behindFuse) carOf(p *store.ScheduledAsset) *siteCar {
	car := &siteCar{member: member{ScheduledAsset: p, from: p.Current.From}}
	car.pastReadyBy = !car.end(f.from).After(f.from)
	if !car.pastReadyBy {
		car.from = inputsAt(p, f.from)
		f.givers[p.Current.AssetID].join(car)
		car.from.Ramp = nil // the fuse is shared to the second
		return car
	}

	if f.tight {
		return car
	}

	return nil
}

// pose builds each car's problem, and the headroom before any of them is planned.
func (f *behindFuse) pose() {
	f.assetHeadroom = fuseHeadroom(f.limit(), f.from)

	for _, o := range f.others {
		f.Add(0, o.lists[0], o.power, true)
	}

	for _, car := range f.cars {
		if car.pastReadyBy {
			continue
		}

		limitByRate(&car.from, f.tight)
		if f.tight {
			raiseToLeast(&car.from)
		}
		if f.home != nil {
			leaveUnmeasured(&car.from)
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
func (f *behindFuse) limit() flex.Watts {
	if f.fuse == 0 {
		return flex.Unbounded
	}
	return f.fuse
}

// readSent reads the schedules that a car's charger may be following: the last one that its
// client accepted, and those that were sent since, as it is not known whether they arrived.
func (c *siteCar) readSent(ctx context.Context, tx *store.Tx) error {
	if c.Current.Generation == 0 {
		return nil
	}

	if c.Current.From.Discharge != nil {
		return c.readDischarging(ctx, tx)
	}

	c.sent = append(c.sent, c.Current.Steps)
	if c.Followed() {
		return nil
	}

	accepted, err := tx.Accepted(ctx, c.Current.AssetID)
	if err != nil {
		return err
	}

	s, err := tx.Schedule(ctx, c.Current.EventID)
	for err == nil && !s.Before.IsZero() && len(c.sent) < chainMax {
		var followed bool
		followed, err = takenUp(ctx, tx, &s, accepted)
		if followed || err != nil {
			return err
		}

		s, err = tx.Schedule(ctx, s.Before)
		if err == nil {
			c.sent = append(c.sent, s.Steps)
		}
	}

	if flex.KindOf(err) == flex.NotFound { // deleted after its retention
		return nil
	}

	return err
}

// takenUp reports whether a client accepted a schedule that did not fail at the charger
// afterwards, or that was followed after it had failed. accepted is the newest generation that
// the client has accepted.
func takenUp(ctx context.Context, tx *store.Tx, s *store.Schedule, accepted int64) (bool, error) {
	if s.Generation > accepted {
		return false, nil
	}

	one := []store.Schedule{*s}
	up, err := tx.TakenUp(ctx, one)
	if err != nil || len(up) > 0 {
		return len(up) > 0, err
	}

	mended, err := tx.Mended(ctx, one)

	return len(mended) > 0, err
}

// solve plans the cars: first their shares together; then one after the other, those with the
// least slack first; then the schedules that may be sent before the others have accepted
// theirs; and then the power of each after its end.
func (f *behindFuse) solve(ctx context.Context, d *Service) error {
	for _, car := range f.cars {
		if car.keepsDischarging {
			car.keep(f.from)
			f.place(car)
		}
	}

	if err := f.divide(); err != nil {
		return err
	}

	order := f.order()
	for _, car := range order {
		f.releaseHeadroom(car)
		f.choose(ctx, d, car)
		f.place(car)
	}

	if f.keeps() && !f.better() {
		for _, car := range order {
			car.keep(f.from)
		}
	}

	f.limitAll(order)

	return nil
}

// divide gives each car its share of the fuse.
func (f *behindFuse) divide() error {
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

	if f.phased() {
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
