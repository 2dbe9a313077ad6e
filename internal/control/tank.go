package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/home"
	"flexd/internal/engine/instruct"
	"flexd/internal/engine/tank"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// What is assumed of a hot-water tank where nothing was set, and limits of its plans.
const (
	// TankLow and TankHigh are the comfort band in degrees Celsius; TankCold is the
	// temperature of mains water.
	TankLow, TankHigh, TankCold = tank.Low, tank.High, tank.Cold
	// TankVolume is in litres. With the band it determines the capacity.
	TankVolume = tank.Volume
	// TankDraw is what a household uses in a day: 5.845 kWh, tapping cycle M of EU regulation
	// 814/2013.
	TankDraw = tank.DailyDraw
	// TankLoss is what the tank loses in a day.
	TankLoss = tank.DailyLoss
	// TankSpare is the reserve for unexpected use while people are up.
	TankSpare flex.WattHours = 1500
	// wakingFrom and wakingTo are the half-hours of the day (0 to 47) between which people are
	// up.
	wakingFrom, wakingTo = 11, 46
	// maxSparePart is the greatest reserve, as a fraction of the tank's capacity.
	maxSparePart = 0.8

	// tankStart is the cost of switching on, in pence, so that a plan has no more windows than
	// are worth it.
	tankStart = 0.1
	// tankHold is the cost of a half-hour on, in pence, so that the tank is not left on while
	// its thermostat has it off.
	tankHold = 0.05
	// tankMinSaving is what a new plan must save, in pence, and tankWarmer by how much its
	// shortfall must be less, in Wh summed over the half-hours, to replace one that was sent.
	tankMinSaving = 1.0
	tankWarmer    = 100
	// minPlanAhead is how far ahead a plan that was sent must reach to stay in force.
	minPlanAhead = 12 * time.Hour
)

// heatedTank is a tank, or the common part of a heat pump, with everything that its plan
// depends on.
type heatedTank struct {
	asset          flex.Asset
	state          store.PlanningState // its tariff, and whether it is controlled
	plan           store.TankPlan      // in force
	power          flex.Watts
	capacity       flex.WattHours
	low            float64 // the comfort band, in degrees
	high           float64
	from           time.Time
	model          store.HeatModel // the learned model
	recordedPeriod flex.Period     // the half-hour in which it was last planned

	stored       flex.WattHours // now, above the bottom of the band
	basis        store.TankBasis
	slots        []flex.Span        // to be planned: the rest of this half-hour, and the following ones
	residual     float64            // value of a kWh that is stored at their end, in pence
	buy          []float64          // price of a kWh in each slot, in pence
	closed       []bool             // the main fuse leaves it too little headroom
	usedByOthers []bool             // it would leave enough if all loads that can be moved were
	underCaps    bool               // there are caps; then cars are not planned around requests
	carLosses    []carLoss          // what it takes from cars that fall short
	gaveUp       bool               // it gave up half-hours for cars
	calls        []store.HeaterCall // the instructions that bind it
	headroom     *heatHeadroom      // nil where none binds power
	group        string             // the cap group of its site
	excess       []int              // by how many times its power it would exceed caps in each slot; nil without caps
	pump         *heatPump          // the heat pump that this is part of; nil for a tank

	// for each instruction that calls it, the return of all called assets; nil if it may
	// return at once
	returns []*instruct.Rebound
}

// PlanTanks plans every hot-water tank and heat pump that is controlled and due: once in each
// half-hour, and when prices, its tariff, a reading or its site's capacity changed. It is safe
// to run twice and on several machines at once.
func (s *Service) PlanTanks(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(
		ctx,
		s.DB.OrgsBy((*store.All).OrgIDs),
		s.PlanTanksOf,
	)
}

// PlanTanksOf is PlanTanks for one organisation.
func (s *Service) PlanTanksOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	var r worker.Report
	run := plannerRun{Service: s}
	err := run.batteries(
		ctx,
		org,
		&r,
		(*store.Tx).TanksDue,
		run.planTank,
	)
	if err != nil {
		return r, fmt.Errorf("plan tanks: %w", err)
	}

	return r, nil
}

// planTank plans one tank or heat pump to the end of tomorrow, and sends the plan if it
// changed.
func (run *plannerRun) planTank(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) error {
	inForce, capped, err := tx.LockCaps(ctx)
	if err != nil {
		return fmt.Errorf("lock the caps: %w", err)
	}

	t, err := lockTank(ctx, tx, id)
	if flex.KindOf(err) == flex.NotFound { // deleted since it was found
		return nil
	}
	if err != nil || t.uncontrolledReason() != "" {
		return err
	}

	t.underCaps = capped
	t.headroom, err = run.caps.readHeat(ctx, tx, inForce)
	if err != nil {
		return err
	}

	if err := t.readCalls(ctx, tx); err != nil {
		return err
	}
	if err := t.readReturns(ctx, tx); err != nil {
		return err
	}

	if t.asset.Type == flex.HeatPump {
		return run.planHeatPump(ctx, tx, t)
	}

	if err := t.readStored(ctx, tx); err != nil {
		return err
	}

	if err := run.readAround(ctx, tx, t); err != nil {
		return err
	}

	return t.planWater(ctx, tx)
}

// planWater plans a hot-water tank after everything that it depends on was read, and sends the
// plan if it changed.
func (t *heatedTank) planWater(ctx context.Context, tx *store.Tx) error {
	t.closeOverCaps()
	t.giveUpForCars(t.onBesideCars)
	p := t.problem(t.buy, t.closed)
	plan := tank.Solve(p)
	requests := t.requestForWater(&plan)
	if current, ok := t.currentSuffices(p, &plan); ok {
		t.record(&current)
		return t.putUnchanged(ctx, tx, requests)
	}

	accepted, err := tx.Accepted(ctx, t.asset.ID)
	if err != nil {
		return err
	}

	t.replace(t.steps(plan.On), accepted)
	t.record(&plan)

	return t.send(ctx, tx, requests)
}

// send puts a plan in force, with the heater's requests. The caller must have locked the caps.
func (t *heatedTank) send(
	ctx context.Context,
	tx *store.Tx,
	requests []flex.Step,
) error {
	t.plan.Asks = requests
	if err := tx.SendTankPlan(ctx, &t.plan); err != nil {
		return err
	}
	if err := t.recordExpected(ctx, tx); err != nil {
		return err
	}

	if err := t.recordHalfHour(ctx, tx, true); err != nil {
		return err
	}

	if err := t.replanCars(ctx, tx); err != nil {
		return err
	}

	if err := markCapsForHeat(ctx, tx); err != nil {
		return err
	}
	t.countSent()

	return nil
}

// lockTank locks a heater's site and then reads the heater. Others lock a site before the tank
// or the mark of its plan, too.
func lockTank(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) (*heatedTank, error) {
	asset, err := tx.Asset(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := tx.LockSite(ctx, asset.SiteID); err != nil {
		return nil, fmt.Errorf("lock the site: %w", err)
	}

	return readTank(ctx, tx, id)
}

// readTank locks a tank and its plan, and reads what its plan depends on. It updates its model
// if that is due.
func readTank(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) (*heatedTank, error) {
	c, err := lockedCharging(ctx, tx, id)
	if err != nil {
		return nil, err
	}

	if err := tx.LockTankPlan(ctx, id); err != nil {
		return nil, fmt.Errorf("lock the plan: %w", err)
	}

	t, err := tankOf(ctx, tx, c)
	if err != nil || t.uncontrolledReason() != "" {
		return t, err
	}

	err = t.learn(ctx, tx)

	return t, err
}

// tankOf reads a tank or heat pump with its plan and its model, without locks.
func tankOf(
	ctx context.Context,
	tx *store.Tx,
	c store.PlanningState,
) (*heatedTank, error) {
	asset, err := tx.Asset(ctx, c.Asset.ID)
	if err != nil {
		return nil, err
	}

	t := &heatedTank{
		asset: asset,
		state: c,
		from:  tx.Now().Truncate(time.Second),
	}
	t.low, t.high = tankBand(&asset)

	if asset.Power != nil {
		t.power = *asset.Power
	}

	litres := asset.Heat.Volume.Or(TankVolume)
	t.capacity = flex.WattHours(tank.HeatOf(litres, t.high-t.low))
	if asset.Capacity != nil && *asset.Capacity > 0 {
		t.capacity = *asset.Capacity
	}

	t.plan, err = tx.TankPlan(ctx, asset.ID)
	if err != nil {
		return t, err
	}

	t.recordedPeriod = flex.PeriodAt(t.plan.StoredAt)

	t.model, err = tx.HeatModel(ctx, asset.ID)

	return t, err
}

// uncontrolledReason says why a tank is not controlled; empty if it is.
func (t *heatedTank) uncontrolledReason() string {
	if !t.state.Excluded.IsZero() {
		return "an operator has it excluded from control"
	}

	if !t.state.Controlled {
		return "its site is not enrolled in " + string(flex.FullAssetSchedule)
	}

	if t.power <= 0 {
		return "its power, power_kw, was never given"
	}

	return ""
}

// floor is the level at which all of its water is cold, in Wh below the bottom of the band.
func (t *heatedTank) floor() int {
	below := (t.low - TankCold) / (t.high - t.low)
	return -int(below * float64(t.capacity))
}

// readStored sets how much heat the tank stores now. The first of these that is known counts:
// a reading of the last two hours, projected by the plan in force; what that plan expects;
// else the bottom of the band. A reading from before the plan in force is not used: that plan
// was made with it, or it came too late.
func (t *heatedTank) readStored(ctx context.Context, tx *store.Tx) error {
	read, at, known, err := t.readHeat(ctx, tx)
	if err != nil {
		return err
	}

	planned := t.plan.Generation > 0 && !t.plan.Freed &&
		t.plan.End().After(t.from)
	follows := planned && !at.Before(t.plan.Steps[0].From)

	switch {
	case known && (follows || !planned):
		t.basis, t.stored = store.TankRead, t.projected(read, at)
	case planned:
		t.basis = store.TankExpected
		t.stored = t.projected(t.plan.Stored, t.plan.StoredAt)
		if t.plan.Basis == store.TankAssumed {
			t.basis = store.TankAssumed
		}
	default:
		t.basis = store.TankAssumed
	}

	return nil
}

// readHeat returns the last reading of the tank's heat, and when it was read; false if there
// is none of the last two hours. It may be a temperature or a state of charge.
func (t *heatedTank) readHeat(
	ctx context.Context,
	tx *store.Tx,
) (flex.WattHours, time.Time, bool, error) {
	b := &store.Battery{Asset: t.asset}
	device := home.Battery{Power: t.power, Capacity: t.capacity}
	level, at, known, err := readCharge(ctx, tx, b, device)
	if err != nil {
		return 0, at, false, err
	}

	read, found, err := t.latestTemp(ctx, tx, flex.TankTemperature)
	if err != nil || !found || read.To.Before(at) {
		return level, at, known, err
	}

	share := (float64(read.Value)/1e6 - t.low) / (t.high - t.low)

	return flex.WattHours(share * float64(t.capacity)), read.To, true, nil
}

// projected is the heat that the tank stores now if it stored level at an instant and followed
// its plan since.
func (t *heatedTank) projected(
	level flex.WattHours,
	at time.Time,
) flex.WattHours {
	_, levels := t.course(level, at, t.from)
	if len(levels) == 0 {
		return level
	}

	return levels[len(levels)-1]
}

// spansTo divides a span at its half-hours.
func spansTo(from, to time.Time) []flex.Span {
	var spans []flex.Span
	for _, p := range periodsTo(flex.PeriodAt(from), to) {
		s := p.Span().Meet(flex.Span{From: from, To: to})
		if !s.Empty() {
			spans = append(spans, s)
		}
	}

	return spans
}

// onAt reports whether steps have a heater on at an instant.
func onAt(steps []flex.Step, at time.Time) bool {
	return slices.ContainsFunc(steps, func(s flex.Step) bool {
		return s.Limit > 0 && !at.Before(s.From) && at.Before(s.To)
	})
}

// slot returns a slot of the planning problem, without its price.
func (t *heatedTank) slot(s flex.Span, known *tank.Pattern) tank.Slot {
	_, place := kindOf(flex.PeriodAt(s.From))
	spare := min(known.Spare[place], int(maxSparePart*float64(t.capacity)))
	used := int64(known.Used[place]) * int64(s.Len()) / int64(flex.HalfHour)

	return tank.Slot{
		Heat:  int(int64(t.power) * int64(s.Len()/time.Second) / 3600),
		Draw:  int(used),
		Spare: spare,
	}
}

// readAround reads the prices of the tank's half-hours, and what else draws power at its site
// in them.
func (s *Service) readAround(
	ctx context.Context,
	tx *store.Tx,
	t *heatedTank,
) error {
	periods := periodsTo(flex.PeriodAt(t.from), lastPlanned(tx).End())
	r, err := t.rates(ctx, tx, periods)
	if err != nil {
		return err
	}

	m, err := s.readMeter(
		ctx,
		tx,
		&t.asset,
		t.asset.WiringAt(&t.power),
	)
	if err != nil {
		return err
	}

	t.residual = r.residual
	t.readSlots(m, periods[:min(len(periods), len(r.buy))], r.buy)

	return t.readExcess(ctx, tx)
}

// readSlots sets the half-hours that have a price, and in which of them the main fuse leaves
// the heater enough.
func (t *heatedTank) readSlots(
	m *meter,
	periods []flex.Period,
	prices []float64,
) {
	for i, p := range periods {
		span := p.Span().Meet(flex.Span{From: t.from, To: p.End()})
		t.slots = append(t.slots, span)
		t.buy = append(t.buy, prices[i])
		closed := m.supply.Set && t.power > m.headroom(p)
		t.closed = append(t.closed, closed)
		t.usedByOthers = append(t.usedByOthers, closed && t.power <= m.heatHeadroom(p))
	}

	t.carLosses = m.carLosses(t.power, t.slots)
}

// rates returns the prices of the tank's half-hours: those that a battery would have.
func (t *heatedTank) rates(
	ctx context.Context,
	tx *store.Tx,
	periods []flex.Period,
) (ratings, error) {
	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return ratings{}, err
	}

	return periodRates(ctx, tx, &store.Battery{
		Asset:      t.asset,
		SiteTariff: t.state.SiteTariff,
		Tariff:     t.state.Tariff,
	}, org.Settings, periods)
}
