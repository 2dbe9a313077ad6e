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
	// TailTime is for how long after the last ready-by of a site the pushed schedules alone keep its
	// main fuse: each car has its part.
	TailTime = 7 * 24 * time.Hour
	// FuseInterval is how soon a site is planned again while one of its cars waits for another to
	// accept that it gives way.
	FuseInterval = 30 * time.Second
)

// behindFuse is what is plugged in at a site whose import capacity was set, planned as one.
type behindFuse struct {
	*assetHeadroom
	fuse   flex.Watts
	phases int // of the fuse, if it was set by phases; 0 for not known
	from   time.Time
	now    time.Time
	prices []flex.PricedPeriod
	cars   []*siteCar
	gone   []*siteCar                   // cars past their ready-by that are not planned but may still discharge
	givers map[flex.AssetID]*giver      // cars that may discharge by a schedule, and have no cause of their own
	others []draws                      // what is plugged in and not planned
	freed  []draws                      // what cars may still discharge that were freed while they were plugged in
	tanks  []draws                      // heaters
	asked  []draws                      // what heaters ask the cars to leave to them
	orders []draws                      // what dispatches have batteries draw that are not planned
	again  map[time.Time][]flex.AssetID // the assets to look at again, by time
	// all loads together can draw more than the fuse carries
	tight bool
	last  time.Time

	home    *siteHome   // batteries beside the cars; nil for none
	reserve []flex.Step // when the site's plan has its batteries charge
	base    baseLoad
	lack    lack // what the site's plan as one lacks
}

// siteCar is one car behind a fuse.
type siteCar struct {
	member
	// set for a car that is planned for a cause of its own or may discharge; nil for the others
	charging         *store.PlanningState
	cause            replanReason
	withoutCause     bool // it has no cause of its own
	counted          bool // what it does is counted, in place of the headroom that was kept for it
	pastReadyBy      bool // past its ready-by: it has what others leave
	keepsDischarging bool // it may discharge, and keeps its schedule: others are planned around it
	// the steps that its charger may be following until it accepts the next
	sent [][]flex.Step
	// what it discharges by the schedule that it is about to be sent, or else by the one in force
	discharges []flex.Step
	// the schedules that its charger may be following, if it discharges by any of them; nil for not known
	discharging []*store.Schedule

	problem       charge.Problem
	plan          charge.Plan
	renewed       bool        // the plan replaces the schedule in force
	finalSteps    []flex.Step // what it does until its end, once all have accepted
	stepsForNow   []flex.Step // what it does until its end, for now
	stepsAfterEnd []flex.Step // what it does after its end
}

// least is the least power that the car can charge with.
func (c *siteCar) least() flex.Watts { return flex.LeastPower(c.from.Phases) }

// end is when the car is to be done.
func (c *siteCar) end(from time.Time) time.Time {
	if c.pastReadyBy {
		return from
	}
	return flex.Later(c.from.ReadyBy, c.from.ChargeNow.To)
}

// replanSite plans what is plugged in behind a site's main fuse as one, for a cause of some of its
// assets, and commits what changed. It is false, and nothing is done, where the fuse cannot bind.
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

// planSite plans a site as one. It is nil where the fuse cannot bind, and nothing is in force that
// was made for it.
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

// inputs reads the prices, and what the cars with a cause of their own, and those beside them that may give, are planned from.
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

// plan solves a site's problem as it is: with its batteries, if it has any.
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

// solved solves a site: with its batteries, if it has any.
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

// read reads what is plugged in at an asset's site, and what of it has a schedule. It is nil where the
// fuse cannot bind, and nothing is in force that was made for it.
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

// readBeside reads what the home itself and its tanks draw, and returns the most that is drawn beside cars.
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

// readSent reads what each charger may be doing.
func (f *behindFuse) readSent(ctx context.Context, tx *store.Tx) error {
	for _, car := range slices.Concat(f.cars, f.gone) {
		if err := car.readSent(ctx, tx); err != nil {
			return err
		}
	}

	return nil
}

// tightLoads reads what is plugged in at an asset's site, and reports whether it can together draw
// more than the fuse, with something extra beside it: a single car too. Nothing is tight where no fuse was set.
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

// ownLoad is what an asset's charger can draw.
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

// gather adds the other assets that are planned as cars, and all else that is plugged in as draws.
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

// drawBeside notes what is drawn beside the cars that are planned.
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

// drawOthers notes what is drawn by what is plugged in and not planned here.
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

// carOf is a car that is planned beside the one with a cause, or nil if it stays as it is until its
// next event.
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

// pose writes each car's problem, and the headroom that is there before any of them is planned.
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
			nameable(&car.from)
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

// limit is what the site's import carries: without end where that was never set.
func (f *behindFuse) limit() flex.Watts {
	if f.fuse == 0 {
		return flex.Unbounded
	}
	return f.fuse
}

// readSent reads what a car's charger may be doing: what was accepted last, and what was sent
// since, of which nobody knows whether it arrived.
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

// takenUp reports whether a client took a schedule that did not fail at the charger since, or was followed after it had. accepted is the
// newest generation that the client has taken.
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

// solve plans the cars: their shares together, then one after the other, those first that can wait
// least; then what of it may be sent before the others have accepted theirs; then what each has
// once it is done.
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

	f.fenceAll(order)

	return nil
}

// divide gives each car its share of the fuse.
func (f *behindFuse) divide() error {
	var cars []headroom.Car
	var of []*siteCar
	for _, car := range f.cars {
		if !car.pastReadyBy && !car.keepsDischarging {
			cars, of = append(cars, car.Car), append(of, car)
		}
	}

	if !f.tight || len(cars) < 2 {
		return nil
	}

	if f.phased() {
		if err := f.sharePhases(of); err != nil {
			return fmt.Errorf("share the phases of the fuse: %w", err)
		}
		return nil
	}

	shares, err := f.Share(cars, f.prices, nil)
	if err != nil {
		return fmt.Errorf("share the fuse: %w", err)
	}

	for i, car := range of {
		car.share = shares.Cars[i]
	}

	return nil
}
