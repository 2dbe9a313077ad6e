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

// What a hot-water tank is taken to be where nothing was set of it.
const (
	// TankLow and TankHigh are its comfort band in degrees Celsius, TankCold what comes in from the mains.
	TankLow, TankHigh, TankCold = tank.Low, tank.High, tank.Cold
	// TankVolume is in litres: with the band it is the heat between its ends.
	TankVolume = tank.Volume
	// TankDraw is what a household draws in a day: 5.845 kWh, tapping cycle M of EU regulation 814/2013.
	TankDraw = tank.DailyDraw
	// TankLoss is what the tank loses in a day.
	TankLoss = tank.DailyLoss
	// TankSpare is what is to be in it beyond that while people are up, for a draw that nobody expected.
	TankSpare flex.WattHours = 1500
	// upFrom and upTo are the half-hours of the day between which people are up.
	upFrom, upTo = 11, 46
	// spareMost is the part of what a tank holds that is kept for the unexpected at most.
	spareMost = 0.8

	// tankStart is what switching the element on counts, in pence: an hour is not cut up for less.
	tankStart = 0.1
	// tankHold is what a half-hour counts in which it is on: it is not left on where the thermostat has it off.
	tankHold = 0.05
	// tankMinSaving is what a new plan must save, in pence, and tankWarmer what it must lack less, in Wh added up
	// over the half-hours, to replace one that was sent.
	tankMinSaving = 1.0
	tankWarmer    = 100
	// tankLeast is how far ahead a plan that was sent must reach to stay in force.
	tankLeast = 12 * time.Hour
)

// heatedTank is a tank, or what a heat pump has in common with one, with what its plan depends on.
type heatedTank struct {
	asset    flex.Asset
	charging store.PlanningState // its tariff, and whether it is under control
	plan     store.TankPlan      // in force
	power    flex.Watts
	capacity flex.WattHours
	low      float64 // the comfort band, in degrees
	high     float64
	from     time.Time
	known    store.HeatModel // what was learned of it
	noted    flex.Period     // in which it was planned last

	stored   flex.WattHours // now, above the bottom of the band
	basis    store.TankBasis
	slots    []flex.Span        // to be planned: the rest of this half-hour, and those after it
	residual float64            // pence of a kWh that is left at their end
	buy      []float64          // pence of a kWh in each
	closed   []bool             // the main fuse leaves the element no headroom
	crowded  []bool             // it would, if all that can wait did so
	capped   bool               // there are caps, under which no car is planned around what is asked for
	needs    []taken            // what cars need that fall short beside it
	yielded  bool               // it gave half-hours up for them
	called   []store.HeaterCall // what instructions have it keep to
	caps     *heatUnderCaps     // nil where none binds power
	group    string             // of its site, under those
	over     []int              // how many times its power it would exceed caps in each slot; nil where none binds power
	pump     *heatPump          // that this is a part of; nil of a tank

	// of each that calls it, how others come back; nil where it need not wait for others
	returns []*instruct.Rebound
}

// PlanTanks works out again the plan of every hot-water tank and heat pump under control that is due: once in each
// half-hour, and when prices, its tariff, a reading or its site's capacity came in. It is safe to run twice
// and on several machines at once.
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
	run := batteryRun{Service: s}
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

// planTank plans one tank or heat pump to the end of tomorrow, and sends what changed.
func (run *batteryRun) planTank(
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
	if err != nil || t.why() != "" {
		return err
	}

	t.capped = capped
	t.caps, err = run.caps.readHeat(ctx, tx, inForce)
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

// planWater plans a hot-water tank of which is known what is around it, and sends what changed.
func (t *heatedTank) planWater(ctx context.Context, tx *store.Tx) error {
	t.yieldToCaps()
	t.yields(t.besideNeeds)
	p := t.problem(t.buy, t.closed)
	plan := tank.Solve(p)
	asks := t.askWater(&plan)
	if kept, ok := t.keeps(p, &plan); ok {
		t.note(&kept)
		return t.put(ctx, tx, asks)
	}

	accepted, err := tx.Accepted(ctx, t.asset.ID)
	if err != nil {
		return err
	}

	t.replace(t.steps(plan.On), accepted)
	t.note(&plan)

	return t.send(ctx, tx, asks)
}

// send puts a plan in force, with what the heater asks for beside it. The caps are locked.
func (t *heatedTank) send(
	ctx context.Context,
	tx *store.Tx,
	asks []flex.Step,
) error {
	t.plan.Asks = asks
	if err := tx.SendTankPlan(ctx, &t.plan); err != nil {
		return err
	}
	if err := t.expect(ctx, tx); err != nil {
		return err
	}

	if err := t.keepHalfHour(ctx, tx, true); err != nil {
		return err
	}

	if err := t.tellCars(ctx, tx); err != nil {
		return err
	}

	if err := heatChanged(ctx, tx); err != nil {
		return err
	}
	t.countSent()

	return nil
}

// lockTank is readTank with the site locked before the tank: others lock a site, and then the tank or the mark of its plan.
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

// readTank locks a tank and reads what its plan depends on.
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
	if err != nil || t.why() != "" {
		return t, err
	}

	err = t.learn(ctx, tx)

	return t, err
}

// tankOf is a tank with its plan.
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
		asset:    asset,
		charging: c,
		from:     tx.Now().Truncate(time.Second),
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

	t.noted = flex.PeriodAt(t.plan.StoredAt)

	t.known, err = tx.HeatModel(ctx, asset.ID)

	return t, err
}

// why is why a tank is left alone; empty if it is planned.
func (t *heatedTank) why() string {
	if !t.charging.Excluded.IsZero() {
		return "an operator has it excluded from control"
	}

	if !t.charging.Controlled {
		return "its site is not enrolled in " + string(flex.FullAssetSchedule)
	}

	if t.power <= 0 {
		return "its power, power_kw, was never given"
	}

	return ""
}

// floor is the level at which all of its water is cold.
func (t *heatedTank) floor() int {
	below := (t.low - TankCold) / (t.high - t.low)
	return -int(below * float64(t.capacity))
}

// readStored finds out what the tank holds now: as it was read in the last two hours and as its plan
// moved it since then; else as its plan comes to; else nothing above the bottom of its band. A reading of
// before the plan in force is in that plan already, or came too late for it.
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
		t.basis, t.stored = store.TankRead, t.moved(read, at)
	case planned:
		t.basis = store.TankExpected
		t.stored = t.moved(t.plan.Stored, t.plan.StoredAt)
		if t.plan.Basis == store.TankAssumed {
			t.basis = store.TankAssumed
		}
	default:
		t.basis = store.TankAssumed
	}

	return nil
}

// readHeat is what the tank was last read to hold, and when, if that was lately: as its temperature, or as a
// battery's charge.
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

// moved is what the tank holds now that held some at an instant, if it did what it was sent.
func (t *heatedTank) moved(
	level flex.WattHours,
	at time.Time,
) flex.WattHours {
	_, levels := t.course(level, at, t.from)
	if len(levels) == 0 {
		return level
	}

	return levels[len(levels)-1]
}

// spansTo cuts a time at its half-hours.
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

// onAt reports whether steps have the element on at an instant.
func onAt(steps []flex.Step, at time.Time) bool {
	return slices.ContainsFunc(steps, func(s flex.Step) bool {
		return s.Limit > 0 && !at.Before(s.From) && at.Before(s.To)
	})
}

// slot is a time within a half-hour as the planner knows it, before its price.
func (t *heatedTank) slot(s flex.Span, known *tank.Pattern) tank.Slot {
	_, place := kindOf(flex.PeriodAt(s.From))
	spare := min(known.Spare[place], int(spareMost*float64(t.capacity)))
	used := int64(known.Used[place]) * int64(s.Len()) / int64(flex.HalfHour)

	return tank.Slot{
		Heat:  int(int64(t.power) * int64(s.Len()/time.Second) / 3600),
		Draw:  int(used),
		Spare: spare,
	}
}

// readAround reads what the tank's half-hours cost, and what else is drawn at its site in them.
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

	m, err := s.meterBeside(
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

	return t.readOver(ctx, tx)
}

// readSlots notes the half-hours that have a price, and what all else at the site leaves in them.
func (t *heatedTank) readSlots(
	m *meter,
	periods []flex.Period,
	prices []float64,
) {
	for i, p := range periods {
		span := p.Span().Meet(flex.Span{From: t.from, To: p.End()})
		t.slots = append(t.slots, span)
		t.buy = append(t.buy, prices[i])
		closed := m.supply.Set && t.power > m.leaves(p)
		t.closed = append(t.closed, closed)
		t.crowded = append(t.crowded, closed && t.power <= m.leavesHeat(p))
	}

	t.needs = m.needsOf(t.power, t.slots)
}

// rates are what the tank's half-hours cost: what they cost a battery.
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
		SiteTariff: t.charging.SiteTariff,
		Tariff:     t.charging.Tariff,
	}, org.Settings, periods)
}
