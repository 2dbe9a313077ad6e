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

// siteHome is the home of a site whose cars are planned as one with its batteries: batteries, load and roof.
type siteHome struct {
	supply flex.Supply
	device home.Battery // all batteries together
	wired  flex.Wiring  // of all batteries as one
	count  int          // number of batteries
	// what the batteries are planned on, without cars; stored is the sum over all
	ahead homeAhead
	// when the batteries may charge: in the committed half-hours, and as dispatched
	busy []flex.Step
	// what the batteries were sent for the running half-hour and for dispatched half-hours
	sent map[flex.Period]sentMode
	// the site has another battery, which is not planned: it stores what cars discharge
	unplanned bool
}

// sentMode is what batteries were already sent to do in a half-hour.
type sentMode struct {
	stores     bool       // they also store what cars discharge
	covers     bool       // they also cover what cars draw, and that is final
	discharges flex.Watts // full power of those that do so
}

// send notes what a battery was sent for a half-hour; without a plan it covers the home and stores its surplus.
func (h *siteHome) send(
	b *store.Battery,
	p flex.Period,
	power flex.Watts,
) {
	if h.sent == nil {
		h.sent = map[flex.Period]sentMode{}
	}

	m, ok := modeAt(&b.Plan, p)
	if !ok {
		m = battery.ModeSelfUse
	}

	s := h.sent[p]
	rests := m == battery.ModeCharge || m == battery.ModeLock
	fixed := p.Start().Before(b.Plan.DispatchedTo)
	s.stores = s.stores || m == battery.ModeCharge || m == battery.ModeSelfUse
	s.covers = s.covers || fixed && !rests

	if m == battery.ModeDischarge {
		s.discharges += power
	}

	h.sent[p] = s
}

// homeAt reads the batteries under control of a site and locks them. It is nil where no battery
// has a known power and capacity. One whose record cannot be read counts as one that is not planned.
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

		if err := s.join(ctx, tx, h, b, device); err != nil {
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

// join adds a battery to those of its site. All are planned on the forecast and the prices of the
// first; stored energy, wear and dispatches are combined.
func (s *Service) join(
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

	ahead, err := s.situationAlone(ctx, tx, b, &next, device, now)
	if err != nil {
		return err
	}

	charged := ahead.stored
	if h.device.Power == 0 {
		h.ahead = ahead
		h.ahead.stored = 0
	}

	if h.count > 0 {
		h.ahead.orders = together(len(h.ahead.periods), h.ahead.orders, ahead.orders)
	}

	h.addWear(ahead.wear, device.Power)
	h.ahead.stored += charged
	drawn, _ := stepsOf(ahead.orders, ahead.periods, device.Power)
	h.busy = append(h.busy, drawn...)
	h.addDevice(b, now, device)

	return nil
}

// addWear counts the wear cost of a battery: all together have the mean of theirs, weighted by power.
func (h *siteHome) addWear(wear float64, power flex.Watts) {
	worn := h.ahead.wear*float64(h.device.Power) + wear*float64(power)
	h.ahead.wear = worn / float64(h.device.Power+power)
}

// addDevice counts a battery, and what it was sent.
func (h *siteHome) addDevice(
	b *store.Battery,
	now flex.Period,
	device home.Battery,
) {
	h.wired = besideBattery(h.wired, h.count, b)
	h.count++
	h.device.Power += device.Power
	h.device.Capacity += device.Capacity
	h.addSent(b, now, device.Power)
}

// addSent notes what a battery was sent for the running half-hour and by dispatches, and in which committed half-hours it may charge.
func (h *siteHome) addSent(
	b *store.Battery,
	now flex.Period,
	power flex.Watts,
) {
	for p := now; isCommitted(&b.Plan, p, now); p = p.Add(1) {
		if p == now || p.Start().Before(b.Plan.DispatchedTo) {
			h.send(b, p, power)
		}

		if mayBeInMode(&b.Plan, p, battery.ModeCharge) {
			h.busy = append(h.busy, flex.Step{Span: p.Span(), Limit: power})
		}
	}
}

// lastPlanned is the last half-hour that batteries are planned for: the end of tomorrow.
func lastPlanned(tx *store.Tx) flex.Period {
	return flex.PeriodAt(flex.DayAt(tx.Now()).Add(2).Start()).Add(-1)
}

// replanBatteries plans the batteries of a site again around what its cars do now. The headroom under caps is kept from one
// site of the transaction to the next.
func (s *Service) replanBatteries(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	kept *capsKept,
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
		err = s.planTogether(ctx, tx, all, kept)
	}
	if err != nil {
		return fmt.Errorf("plan the site's batteries around its cars: %w", err)
	}

	return nil
}

// Waits is why a battery may not use every mode in a half-hour.
type Waits string

// The reasons.
const (
	WaitsNot Waits = ""
	// a car charges: a battery does not discharge into it
	WaitsForCar Waits = "car"
	// a car gives: a battery does not charge from it
	WaitsForDischarging Waits = "car_gives"
	// what else is drawn leaves it no headroom under the main fuse
	WaitsForFuse Waits = "fuse"
	// at full power it would pass the export limit
	WaitsForExport Waits = "export"
	// other batteries of its feeder use what the feeder's export limit leaves
	WaitsForFeeder Waits = "feeder"
	// what cars and other batteries draw leaves it no headroom under a cap
	WaitsForCap Waits = "cap"
)

// meter is what passes a site's meter beside one of its batteries.
type meter struct {
	supply flex.Supply // it limits nothing where it was never set
	wired  flex.Wiring // of the asset whose meter it is
	// what each load may draw, by the last plan or dispatch that it received
	may  []draws
	will []draws // what cars are planned to draw until they are done
	// what no battery discharges into: what cars are planned to draw, and what cars that may discharge may draw
	into []draws
	// what cars may discharge by any schedule that their chargers may be following, and what they are planned
	// to discharge
	mayDischarge  []draws
	willDischarge []draws
	// what the other batteries are sent to discharge at full power
	discharge []draws
	others    []expectedBeside // what the other batteries are planned to move
	// the cars whose newest schedule has them discharge, and was made without the site's batteries
	givers []flex.AssetID
	cars   []*siteCar // the cars that have a schedule
	base   baseLoad
}

// leaves is what all other loads leave of the connection's import capacity to the asset whose meter it is: the least at
// any instant of a half-hour.
func (m *meter) leaves(p flex.Period) flex.Watts { return m.leftBy(m.may, p) }

// leavesHeat is leaves without the loads that can wait.
func (m *meter) leavesHeat(p flex.Period) flex.Watts { return m.leftBy(m.must(), p) }

// must are the loads that cannot wait.
func (m *meter) must() []draws {
	return slices.DeleteFunc(slices.Clone(m.may), func(d draws) bool { return d.waits })
}

// leftBy is what some loads and the home itself leave.
func (m *meter) leftBy(loads []draws, p flex.Period) flex.Watts {
	l := m.loadIn(loads, p)
	return l.left(m.supply.Import, m.wired)
}

// loadIn is the most that some loads and the home itself draw on each phase in a half-hour.
func (m *meter) loadIn(loads []draws, p flex.Period) phaseLoad {
	f := behindFuse{others: loads, phases: m.supply.Fuse.Phases}
	most := f.load()
	for _, at := range f.cuts(p.Span()) {
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

// given is the most that cars may discharge in a half-hour.
func (m *meter) given(p flex.Period) flex.Watts {
	return mostDischarged(m.mayDischarge, p)
}

// outLeft is how much the asset whose meter it is may discharge in a half-hour, by the phases of the main fuse. net is what the home is
// expected to draw. The worst case counts: what cars and other batteries discharge and what the roof gives beyond the
// home's use may lie on the same phase, and what the home uses on another.
func (m *meter) outLeft(p flex.Period, net flex.WattHours) flex.Watts {
	l := phaseLoad{phases: m.supply.Fuse.Phases}
	if l.phases != 3 {
		return flex.Unbounded
	}

	for _, all := range [][]draws{m.mayDischarge, m.discharge} {
		for i := range all {
			l.add(all[i].mostIn(p.Span()), all[i].wired)
		}
	}

	l.add(max(0, flex.Watts(-2*net)), flex.Wiring{})

	return l.left(m.supply.Import, m.wired)
}

// mostDischarged is the most that all given loads discharge in a half-hour.
func mostDischarged(all []draws, p flex.Period) flex.Watts {
	var sum flex.Watts
	for i := range all {
		sum += all[i].mostIn(p.Span())
	}

	return sum
}

// charged is what cars are planned to take in a half-hour.
func (m *meter) charged(p flex.Period) flex.WattHours {
	return energyIn(m.will, p)
}

// energyIn is the energy of all given loads in a half-hour.
func energyIn(all []draws, p flex.Period) flex.WattHours {
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

// untilIdle is when the last of the loads that draw something in a half-hour ends.
func untilIdle(all []draws, p flex.Period) time.Time {
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

// allowed is what a battery of some power may be sent in a half-hour in which the home is expected to
// draw net, and why it may not be sent all.
//
//   - While a car charges, no mode that may discharge: in each of them a battery covers whatever is
//     drawn, the car's too.
//   - While a car gives, no mode that may charge: in each of them a battery stores what the car gives.
//   - Charging is at full power: what may be drawn by others must leave that under the main fuse.
//   - Discharging is at full power too: what the home does not draw must stay under the export limit, with what
//     cars give and other batteries discharge, and on no phase may they pass the main fuse together.
func (m *meter) allowed(
	p flex.Period,
	power flex.Watts,
	net flex.WattHours,
) (battery.ModeSet, Waits) {
	var why Waits
	set := battery.AllModes
	if m.supply.Set && m.passesOut(p, power, net) {
		set &^= battery.Modes(battery.ModeDischarge)
		why = WaitsForExport
	}

	if m.given(p) > 0 {
		set &^= battery.Modes(battery.ModeCharge, battery.ModeSelfUse)
		why = WaitsForDischarging
	}

	if energyIn(m.into, p) > 0 {
		set &= battery.Modes(battery.ModeCharge, battery.ModeLock)
		why = WaitsForCar
	}

	if m.supply.Set && power > m.leaves(p) {
		set &^= battery.Modes(battery.ModeCharge)
		why = WaitsForFuse
	}

	return set, why
}

// around has a battery of some power planned in regard to what else passes its site's meter.
func (s *homeAhead) around(m *meter, power flex.Watts) {
	if m == nil {
		return
	}

	s.meter = m
	n := len(s.periods)
	s.cars, s.allowed = make([]flex.WattHours, n), make([]battery.ModeSet, n)
	s.waits, s.until = make([]Waits, n), make([]time.Time, n)

	for i, p := range s.periods {
		s.cars[i] = m.charged(p) - energyIn(m.willDischarge, p)
		s.allowed[i], s.waits[i] = m.allowed(p, power, s.load[i]-s.roof[i])
		if energyIn(m.into, p) > 0 {
			s.until[i] = untilIdle(m.into, p)
		} else if s.waits[i] == WaitsForDischarging {
			s.until[i] = untilIdle(m.mayDischarge, p)
		}
	}

	s.regardOthers(false)
}

// meterBeside reads what passes the meter of a battery's or a tank's site beside it. It is nil where nothing
// else is planned and the connection's capacity was never set: such a battery is planned by itself.
func (s *Service) meterBeside(
	ctx context.Context,
	tx *store.Tx,
	asset *flex.Asset,
	wired flex.Wiring,
) (*meter, error) {
	m := &meter{wired: wired}
	beside, err := m.addOthers(ctx, tx, asset)
	if err != nil {
		return nil, err
	}

	if err := m.readSite(ctx, tx, asset.SiteID); err != nil {
		return nil, err
	}

	if !beside && !m.supply.Set {
		return nil, nil
	}

	if err := m.addFreed(ctx, tx, asset.SiteID); err != nil {
		return nil, err
	}
	if err := m.addCars(ctx, tx, asset.SiteID); err != nil {
		return nil, err
	}

	return m, nil
}

// addOthers reads what the tanks and the other batteries of a battery's or a tank's site may draw. It reports
// whether anything at the site is planned beside it.
func (m *meter) addOthers(
	ctx context.Context,
	tx *store.Tx,
	asset *flex.Asset,
) (beside bool, err error) {
	all, err := tx.AssetsOf(ctx, asset.SiteID)
	if err != nil {
		return false, err
	}

	m.may, err = tanksAt(ctx, tx, asset.SiteID, asset.ID)
	if err != nil {
		return false, err
	}

	beside = len(m.may) > 0 || asset.Type.Heats()
	if asset.Type == flex.Battery {
		m.may = append(m.may, merged(heatAsks(m.may), m.may)...)
	}

	for _, a := range all {
		other := a.Type == flex.Battery && a.ID != asset.ID
		beside = beside || other || a.Type.Charges()
		if !other {
			continue
		}

		if err := m.addOther(ctx, tx, asset.Type, a.ID); err != nil {
			return false, err
		}
	}

	return beside, nil
}

// addBattery adds what another battery of the site may draw and give, by its plan or by an operator's dispatch.
func (m *meter) addBattery(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
) error {
	ahead := periodsTo(flex.PeriodAt(tx.Now()), lastPlanned(tx).End())
	asked, err := ordersOf(ctx, tx, b.Asset.ID, &b.Plan, ahead)
	if err != nil {
		return err
	}

	power := orderedPower(b, asked)
	draw, give := stepsOf(asked, ahead, power)
	m.may = append(m.may, draws{
		lists: [][]flex.Step{sentTo(b, battery.ModeCharge), draw},
		power: power,
		waits: true,
		wired: b.Wiring(),
	})
	m.discharge = append(m.discharge, draws{
		lists: [][]flex.Step{sentTo(b, battery.ModeDischarge), give},
		power: power,
		wired: b.Wiring(),
	})

	return nil
}

// readSite reads what a site's connection carries, and what the home itself draws under it.
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

// sentTo are the half-hours in which a battery may be in a mode, by its plan or by those that it may have read before.
func sentTo(b *store.Battery, mode battery.Mode) []flex.Step {
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
	f := &behindFuse{from: from}
	planned := map[flex.AssetID]bool{}

	for i := range found {
		car := &siteCar{member: member{
			ScheduledAsset: &found[i],
			from:           found[i].Current.From,
		}}

		planned[found[i].Current.AssetID] = true
		if err := car.readSent(ctx, tx); err != nil {
			return err
		}

		car.keepWhole(from)
		f.cars = append(f.cars, car)

		if len(car.discharges) > 0 && !plannedAsOne(&car.from) {
			m.givers = append(m.givers, car.Current.AssetID)
		}
	}

	f.drawOthers(loads, planned)
	m.addSite(f)
	m.cars = f.cars

	return nil
}

// addSite adds what the cars of a site do, as planned and as they may do.
func (m *meter) addSite(f *behindFuse) {
	for _, o := range f.others {
		if !o.battery && !o.base && !o.asked {
			m.may = append(m.may, o)
		}
	}

	for _, car := range f.cars {
		m.addDischarging(car, f.from)

		may, will := car.mayDraw(), car.willDraw()
		if len(may.lists) > 0 {
			m.may = append(m.may, draws{
				lists: slices.Concat(may.lists, will.lists),
				power: car.from.Power,
				wired: car.wiring(),
				free:  true,
				waits: true,
			})
		} else {
			will.waits = true
			m.may = append(m.may, will)
		}

		m.will = append(m.will, draws{
			lists: [][]flex.Step{car.stepsForNow},
			power: car.from.Power,
		})
	}
}

// addDischarging adds what a car discharges, and when no battery may discharge into the car: while it is planned to charge. If the
// car may discharge, that is also whenever any schedule that its charger may be following lets it charge.
func (m *meter) addDischarging(car *siteCar, from time.Time) {
	into := draws{lists: [][]flex.Step{car.stepsForNow}, power: car.from.Power}
	may := car.mayDischarge(from)

	if len(may.lists) > 0 {
		m.mayDischarge = append(m.mayDischarge, may)
	}

	if car.Current.From.Discharge != nil {
		stay := flex.Span{From: from, To: car.lastEnd(from)}

		for _, steps := range car.sent {
			into.lists = append(into.lists, stepsWithin(steps, stay))
		}
	}

	m.into = append(m.into, into)

	if len(car.discharges) == 0 {
		return
	}

	m.willDischarge = append(m.willDischarge, draws{
		lists: [][]flex.Step{car.discharges},
		power: flex.Unbounded,
	})
}

// homeBeside is the batteries at the site of an asset that charges.
func (s *Service) homeBeside(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) (*siteHome, error) {
	if !c.Battery {
		return nil, nil
	}
	return s.homeAt(ctx, tx, c.Asset.SiteID)
}
