package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// siteHome is the home of a site whose cars and batteries are planned as one: the batteries,
// the load and the solar generation.
type siteHome struct {
	supply flex.Supply
	device home.Battery // all batteries together
	wiring flex.Wiring  // of all batteries as one
	count  int          // number of batteries
	// the inputs of the batteries' plans, without cars; stored is the sum over all
	ahead batteryInputs
	// when the batteries charge in any case: in committed half-hours, and by dispatches
	certainCharging []flex.Step
	// what the batteries were sent for the running half-hour and for dispatched half-hours
	sentModes map[flex.Period]sentMode
	// there is another battery that flexd does not plan, which stores what cars discharge
	unplanned bool
}

// sentMode is what batteries were already sent for a half-hour.
type sentMode struct {
	stores     bool       // they would store what cars discharge
	covers     bool       // they would supply what cars draw, and that is committed
	discharges flex.Watts // full power of those that discharge
}

// addSentMode records what a battery was sent for a half-hour. Without a plan it is in
// self-use: it supplies the home and stores its surplus.
func (h *siteHome) addSentMode(
	b *store.Battery,
	p flex.Period,
	power flex.Watts,
) {
	if h.sentModes == nil {
		h.sentModes = map[flex.Period]sentMode{}
	}

	m, ok := modeAt(&b.Plan, p)
	if !ok {
		m = battery.ModeSelfUse
	}

	s := h.sentModes[p]
	rests := m == battery.ModeCharge || m == battery.ModeLock
	fixed := p.Start().Before(b.Plan.DispatchedTo)
	s.stores = s.stores || m == battery.ModeCharge || m == battery.ModeSelfUse
	s.covers = s.covers || fixed && !rests

	if m == battery.ModeDischarge {
		s.discharges += power
	}

	h.sentModes[p] = s
}

// homeAt reads and locks the controlled batteries of a site. It is nil if no battery has a
// known power and capacity. One whose record cannot be read counts as one that is not planned.
func (s *Service) homeAt(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) (*siteHome, error) {
	ids, err := batteriesAt(ctx, tx, site)
	if err != nil || len(ids) == 0 {
		return nil, err
	}

	h := &siteHome{}
	for _, id := range ids {
		b, device, err := lockBattery(ctx, tx, id)
		unread := errors.Is(err, store.ErrUnreadable)
		if err != nil && !unread {
			return nil, err
		}

		if b == nil {
			continue
		}
		if unread || !isPlanned(b) {
			h.unplanned = true
			continue
		}

		if err := s.addToHome(ctx, tx, h, b, device); err != nil {
			return nil, err
		}
	}

	if h.device.Power == 0 {
		return nil, nil
	}

	record, err := tx.Site(ctx, site)
	h.supply = record.Supply

	return h, err
}

// batteriesAt lists the batteries of a site.
func batteriesAt(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) ([]flex.AssetID, error) {
	var ids []flex.AssetID
	all, err := tx.AssetsOf(ctx, site)
	for i := range all {
		if all[i].Type == flex.Battery {
			ids = append(ids, all[i].ID)
		}
	}

	return ids, err
}

// addToHome adds a battery to those of its site. All of them are planned with the forecast and
// the prices of the first one; stored energy, wear and dispatches are combined.
func (s *Service) addToHome(
	ctx context.Context,
	tx *store.Tx,
	h *siteHome,
	b *store.Battery,
	device home.Battery,
) error {
	now := flex.PeriodAt(tx.Now())
	next := nextPlan(&b.Plan, now)
	if err := s.forecast(ctx, tx, b, &next, lastPlanned(tx)); err != nil {
		return err
	}

	ahead, err := s.readOwnInputs(ctx, tx, b, &next, device, now)
	if err != nil {
		return err
	}

	charged := ahead.stored
	if h.device.Power == 0 {
		h.ahead = ahead
		h.ahead.stored = 0
	}

	if h.count > 0 {
		h.ahead.orders = sumDispatches(len(h.ahead.periods), h.ahead.orders, ahead.orders)
	}

	h.addWear(ahead.wear, device.Power)
	h.ahead.stored += charged
	drawn, _ := stepsOf(ahead.orders, ahead.periods, device.Power)
	h.certainCharging = append(h.certainCharging, drawn...)
	h.addDevice(b, now, device)

	return nil
}

// addWear includes the wear cost of a battery in the mean of all, weighted by power.
func (h *siteHome) addWear(wear float64, power flex.Watts) {
	worn := h.ahead.wear*float64(h.device.Power) + wear*float64(power)
	h.ahead.wear = worn / float64(h.device.Power+power)
}

// addDevice adds a battery's power and capacity, and what it was sent.
func (h *siteHome) addDevice(
	b *store.Battery,
	now flex.Period,
	device home.Battery,
) {
	h.wiring = combinedWiring(h.wiring, h.count, b)
	h.count++
	h.device.Power += device.Power
	h.device.Capacity += device.Capacity
	h.addSent(b, now, device.Power)
}

// addSent records what a battery was sent for the running half-hour and by
// dispatches, and in which committed half-hours it may charge.
func (h *siteHome) addSent(
	b *store.Battery,
	now flex.Period,
	power flex.Watts,
) {
	for p := now; isCommitted(&b.Plan, p, now); p = p.Add(1) {
		if p == now || p.Start().Before(b.Plan.DispatchedTo) {
			h.addSentMode(b, p, power)
		}

		if mayBeInMode(&b.Plan, p, battery.ModeCharge) {
			h.certainCharging = append(h.certainCharging, flex.Step{Span: p.Span(), Limit: power})
		}
	}
}

// lastPlanned returns the last half-hour that batteries are planned for: the end of tomorrow.
func lastPlanned(tx *store.Tx) flex.Period {
	return flex.PeriodAt(flex.DayAt(tx.Now()).Add(2).Start()).Add(-1)
}

// replanBatteries plans the batteries of a site again around its cars' present schedules. The
// headroom under caps is cached between the sites of a transaction.
func (s *Service) replanBatteries(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	cache *headroomCache,
) error {
	var all []*siteBattery
	ids, err := batteriesAt(ctx, tx, site)
	for i := 0; i < len(ids) && err == nil; i++ {
		var b *store.Battery
		var device home.Battery
		b, device, err = lockBattery(ctx, tx, ids[i])

		if errors.Is(err, store.ErrUnreadable) { // PlanBatteries reports it
			err = nil
			continue
		}
		if err == nil && b != nil && b.Controlled {
			all = append(all, &siteBattery{Battery: b, device: device})
		}
	}

	if err == nil {
		err = s.planTogether(ctx, tx, all, cache)
	}
	if err != nil {
		return fmt.Errorf("plan the site's batteries around its cars: %w", err)
	}

	return nil
}

// meter has the loads and the limits at a site's meter, beside one of its batteries or
// heaters.
type meter struct {
	supply flex.Supply // without limits if it was never set
	wiring flex.Wiring // of the asset that is planned
	// what each load may draw, by the last plan or dispatch that it received
	possibleDraws []loadBound
	plannedDraws  []loadBound // what cars are planned to draw until they are done
	// loads that no battery may discharge into: what cars are planned to draw, and what cars
	// that may discharge could draw
	noDischargeInto []loadBound
	// what cars may discharge by any schedule that their chargers may be following, and what
	// they are planned to discharge
	possibleDischarges []loadBound
	plannedDischarges  []loadBound
	// what the other batteries are sent to discharge at full power
	batteryDischarges []loadBound
	others            []expectedPowers // what the other batteries are planned to move
	// cars whose newest schedule discharges, and was made without the site's batteries
	replanCars []flex.AssetID
	cars       []*siteCar // cars that have a schedule
	base       baseLoad
}

// headroom is the least headroom that all other loads leave to the asset under the import
// capacity at any instant of a half-hour.
func (m *meter) headroom(p flex.Period) flex.Watts { return m.headroomBeside(m.possibleDraws, p) }

// heatHeadroom is the headroom if all loads that can be moved were elsewhere.
func (m *meter) heatHeadroom(p flex.Period) flex.Watts { return m.headroomBeside(m.fixedLoads(), p) }

// fixedLoads returns the loads that cannot be moved.
func (m *meter) fixedLoads() []loadBound {
	return slices.DeleteFunc(slices.Clone(m.possibleDraws), func(d loadBound) bool { return d.movable })
}

// headroomBeside is the headroom beside some loads and the home itself.
func (m *meter) headroomBeside(loads []loadBound, p flex.Period) flex.Watts {
	l := m.loadIn(loads, p)
	return l.headroom(m.supply.Import, m.wiring)
}

// loadIn returns the most that some loads and the home itself draw on each phase in a
// half-hour.
func (m *meter) loadIn(loads []loadBound, p flex.Period) phaseLoad {
	f := sitePlan{others: loads, phases: m.supply.Fuse.Phases}
	most := f.load()
	for _, at := range f.changeTimes(p.Span()) {
		if !at.Before(p.End()) {
			continue
		}

		l := f.load()
		l.addAll(loads, at)
		for i, w := range l.on {
			most.on[i] = max(most.on[i], w)
		}
	}

	most.add(m.base.powerAt(p), flex.Wiring{})

	return most
}

// carDischarge is the most that cars may discharge in a half-hour.
func (m *meter) carDischarge(p flex.Period) flex.Watts {
	return sumOfMax(m.possibleDischarges, p)
}

// dischargeHeadroom is how much the asset may discharge in a half-hour by the phases of the
// main fuse. net is what the home is expected to draw. The worst case counts: the discharge of
// cars and batteries and surplus solar power may all be on one phase, while the home draws on
// another.
func (m *meter) dischargeHeadroom(p flex.Period, net flex.WattHours) flex.Watts {
	l := phaseLoad{phases: m.supply.Fuse.Phases}
	if l.phases != 3 {
		return flex.Unbounded
	}

	for _, all := range [][]loadBound{m.possibleDischarges, m.batteryDischarges} {
		for i := range all {
			l.add(all[i].maxIn(p.Span()), all[i].wiring)
		}
	}

	l.add(max(0, flex.Watts(-2*net)), flex.Wiring{})

	return l.headroom(m.supply.Import, m.wiring)
}

// sumOfMax returns the sum of the most that each load may have in a half-hour.
func sumOfMax(all []loadBound, p flex.Period) flex.Watts {
	var sum flex.Watts
	for i := range all {
		sum += all[i].maxIn(p.Span())
	}

	return sum
}

// carCharge is the energy that cars are planned to charge in a half-hour.
func (m *meter) carCharge(p flex.Period) flex.WattHours {
	return energyIn(m.plannedDraws, p)
}

// energyIn returns the energy of some loads in a half-hour.
func energyIn(all []loadBound, p flex.Period) flex.WattHours {
	sum := int64(0)
	for _, w := range all {
		for _, steps := range w.lists {
			for _, s := range stepsWithin(steps, p.Span()) {
				sum += int64(min(s.Limit, w.power)) * int64(s.Len()/time.Second)
			}
		}
	}

	return flex.WattHours(sum / 3600)
}

// untilIdle returns when the loads that draw something in a half-hour, and those that follow
// without a gap, end.
func untilIdle(all []loadBound, p flex.Period) time.Time {
	to := p.Start()
	for _, w := range all {
		for _, steps := range w.lists {
			for _, s := range steps {
				if s.Limit > 0 && s.From.Before(flex.Later(p.End(), to)) &&
					s.To.After(to) {
					to = s.To
				}
			}
		}
	}

	return to
}

// allowed returns the modes that a battery of some power may be sent in a half-hour in which
// the home is expected to draw net, and why it may not be sent all.
//
//   - While a car charges, no mode that may discharge: the battery would supply whatever is
//     drawn, the car too.
//   - While a car discharges, no mode that may charge: the battery would store what the car
//     discharges.
//   - Charging is at full power, for which the other loads must leave headroom under the main
//     fuse.
//   - Discharging is at full power too: with what cars and other batteries discharge, and less
//     what the home draws, it must not exceed the export limit, nor the main fuse on any
//     phase.
func (m *meter) allowed(
	p flex.Period,
	power flex.Watts,
	net flex.WattHours,
) (battery.ModeSet, Waits) {
	var why Waits
	set := battery.AllModes
	if m.supply.Set && m.exceedsExport(p, power, net) {
		set &^= battery.Modes(battery.ModeDischarge)
		why = WaitsForExport
	}

	if m.carDischarge(p) > 0 {
		set &^= battery.Modes(battery.ModeCharge, battery.ModeSelfUse)
		why = WaitsForDischarging
	}

	if energyIn(m.noDischargeInto, p) > 0 {
		set &= battery.Modes(battery.ModeCharge, battery.ModeLock)
		why = WaitsForCar
	}

	if m.supply.Set && power > m.headroom(p) {
		set &^= battery.Modes(battery.ModeCharge)
		why = WaitsForFuse
	}

	return set, why
}

// limitBySite limits the plan of a battery by the loads at its site's meter.
func (s *batteryInputs) limitBySite(m *meter, power flex.Watts) {
	if m == nil {
		return
	}

	s.meter = m
	n := len(s.periods)
	s.cars, s.allowed = make([]flex.WattHours, n), make([]battery.ModeSet, n)
	s.waits, s.waitsUntil = make([]Waits, n), make([]time.Time, n)

	for i, p := range s.periods {
		s.cars[i] = m.carCharge(p) - energyIn(m.plannedDischarges, p)
		s.allowed[i], s.waits[i] = m.allowed(p, power, s.load[i]-s.roof[i])
		if energyIn(m.noDischargeInto, p) > 0 {
			s.waitsUntil[i] = untilIdle(m.noDischargeInto, p)
		} else if s.waits[i] == WaitsForDischarging {
			s.waitsUntil[i] = untilIdle(m.possibleDischarges, p)
		}
	}

	s.includeOtherBatteries(false)
}

// readMeter reads the loads at the meter of a battery's or heater's site beside it. It is
// nil if nothing else is planned there and the connection's capacity was never set: such a
// battery is planned on its own.
func (s *Service) readMeter(
	ctx context.Context,
	tx *store.Tx,
	asset *flex.Asset,
	wiring flex.Wiring,
) (*meter, error) {
	m := &meter{wiring: wiring}
	hasOthers, err := m.addOthers(ctx, tx, asset)
	if err != nil {
		return nil, err
	}

	if err := m.readSite(ctx, tx, asset.SiteID); err != nil {
		return nil, err
	}

	if !hasOthers && !m.supply.Set {
		return nil, nil
	}

	if err := m.addUncontrolledCars(ctx, tx, asset.SiteID); err != nil {
		return nil, err
	}
	if err := m.addCars(ctx, tx, asset.SiteID); err != nil {
		return nil, err
	}

	return m, nil
}

// addOthers reads what the heaters and the other batteries of the site may draw. It reports
// whether anything else at the site is planned.
func (m *meter) addOthers(
	ctx context.Context,
	tx *store.Tx,
	asset *flex.Asset,
) (hasOthers bool, err error) {
	all, err := tx.AssetsOf(ctx, asset.SiteID)
	if err != nil {
		return false, err
	}

	m.possibleDraws, err = heatersAt(ctx, tx, asset.SiteID, asset.ID)
	if err != nil {
		return false, err
	}

	hasOthers = len(m.possibleDraws) > 0 || asset.Type.Heats()
	if asset.Type == flex.Battery {
		m.possibleDraws = append(m.possibleDraws, requestLoads(heatRequestsOf(m.possibleDraws), m.possibleDraws)...)
	}

	for _, a := range all {
		other := a.Type == flex.Battery && a.ID != asset.ID
		hasOthers = hasOthers || other || a.Type.Charges()
		if !other {
			continue
		}

		if err := m.addOtherBattery(ctx, tx, asset.Type, a.ID); err != nil {
			return false, err
		}
	}

	return hasOthers, nil
}

// addBattery adds what another battery of the site may charge and discharge, by its plan or by
// an operator's dispatch.
func (m *meter) addBattery(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
) error {
	ahead := periodsTo(flex.PeriodAt(tx.Now()), lastPlanned(tx).End())
	requested, err := dispatchesOf(ctx, tx, b.Asset.ID, &b.Plan, ahead)
	if err != nil {
		return err
	}

	power := dispatchPower(b, requested)
	draw, give := stepsOf(requested, ahead, power)
	m.possibleDraws = append(m.possibleDraws, loadBound{
		lists:   [][]flex.Step{possibleModeSteps(b, battery.ModeCharge), draw},
		power:   power,
		movable: true,
		wiring:  b.Wiring(),
	})
	m.batteryDischarges = append(m.batteryDischarges, loadBound{
		lists:  [][]flex.Step{possibleModeSteps(b, battery.ModeDischarge), give},
		power:  power,
		wiring: b.Wiring(),
	})

	return nil
}

// readSite reads the limits of a site's connection, and the home's own load.
func (m *meter) readSite(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) error {
	s, err := tx.Site(ctx, site)
	if err != nil {
		return err
	}

	m.supply = s.Supply
	if m.supply.Set {
		m.base, err = baseAt(ctx, tx, site)
	}

	return err
}

// possibleModeSteps returns the half-hours in which a battery may be in a mode, by its plan or
// by earlier plans that its client may have read.
func possibleModeSteps(b *store.Battery, mode battery.Mode) []flex.Step {
	var steps []flex.Step
	for i := range b.Plan.Modes {
		p := b.Plan.From.Add(i)
		if mayBeInMode(&b.Plan, p, mode) {
			steps = append(steps, flex.Step{Span: p.Span(), Limit: b.Power()})
		}
	}

	return steps
}

// addCars adds what is plugged in at a site.
func (m *meter) addCars(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) error {
	loads, err := tx.SiteLoads(ctx, site)
	if err != nil || len(loads) == 0 {
		return err
	}

	found, err := tx.PlannedAt(ctx, site)
	if err != nil {
		return fmt.Errorf("read the site's schedules: %w", err)
	}

	from := tx.Now().Truncate(time.Second)
	f := &sitePlan{from: from}
	planned := map[flex.AssetID]bool{}

	for i := range found {
		car := &siteCar{member: member{
			ScheduledAsset: &found[i],
			from:           found[i].Current.From,
		}}

		planned[found[i].Current.AssetID] = true
		if err := car.readPossibleSteps(ctx, tx); err != nil {
			return err
		}

		car.keepWholeSchedule(from)
		f.cars = append(f.cars, car)

		if len(car.discharges) > 0 && !plannedAsOne(&car.from) {
			m.replanCars = append(m.replanCars, car.Current.AssetID)
		}
	}

	f.addUnplannedLoads(loads, planned)
	m.addSite(f)
	m.cars = f.cars

	return nil
}

// addSite adds what the cars of a site are planned to do, and what they may do.
func (m *meter) addSite(f *sitePlan) {
	for _, o := range f.others {
		if !o.isBattery && !o.isHome && !o.isRequest {
			m.possibleDraws = append(m.possibleDraws, o)
		}
	}

	for _, car := range f.cars {
		m.addDischarging(car, f.from)

		may, will := car.possibleDraw(), car.plannedDraw()
		if len(may.lists) > 0 {
			m.possibleDraws = append(m.possibleDraws, loadBound{
				lists:     slices.Concat(may.lists, will.lists),
				power:     car.from.Power,
				wiring:    car.wiring(),
				openEnded: true,
				movable:   true,
			})
		} else {
			will.movable = true
			m.possibleDraws = append(m.possibleDraws, will)
		}

		m.plannedDraws = append(m.plannedDraws, loadBound{
			lists: [][]flex.Step{car.stepsForNow},
			power: car.from.Power,
		})
	}
}

// addDischarging adds what a car discharges, and when no battery may discharge because the car
// would charge from it: while the car is planned to charge, and for a car that may discharge,
// whenever any schedule that its charger may be following has it charge.
func (m *meter) addDischarging(car *siteCar, from time.Time) {
	into := loadBound{lists: [][]flex.Step{car.stepsForNow}, power: car.from.Power}
	may := car.possibleDischarge(from)

	if len(may.lists) > 0 {
		m.possibleDischarges = append(m.possibleDischarges, may)
	}

	if car.Current.From.Discharge != nil {
		stay := flex.Span{From: from, To: car.lastEnd(from)}

		for _, steps := range car.possibleSteps {
			into.lists = append(into.lists, stepsWithin(steps, stay))
		}
	}

	m.noDischargeInto = append(m.noDischargeInto, into)

	if len(car.discharges) == 0 {
		return
	}

	m.plannedDischarges = append(m.plannedDischarges, loadBound{
		lists: [][]flex.Step{car.discharges},
		power: flex.Unbounded,
	})
}

// homeForCar returns the home of an asset that charges; nil without batteries.
func (s *Service) homeForCar(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) (*siteHome, error) {
	if !c.Battery {
		return nil, nil
	}
	return s.homeAt(ctx, tx, c.Asset.SiteID)
}
