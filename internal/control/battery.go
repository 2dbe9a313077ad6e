package control

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/check"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Rates that home batteries are planned with where none were given, in pence per kWh.
const (
	DefaultPeakRate    = 28.0
	DefaultOffPeakRate = 9.0
	DefaultExportRate  = 15.0
)

const (
	// batteriesMax is the number of batteries that are read at a time.
	batteriesMax = 200
	// dispatchMarket is the market that a battery's own plan is made for.
	dispatchMarket = "wholesale"
)

// A plan is stored as a code for each half-hour: modeCodes has the codes in the order of
// battery.Mode, and unplanned means no plan. A code of carLockCodes means that the battery is
// in LOCK because of cars, instead of FEED_IN or SELF_USE.
const (
	modeCodes    = "CDLFS"
	carLockCodes = "fs"
	unplanned    = '.'
)

func modeCode(m battery.Mode) byte { return modeCodes[m] }

// modeOf returns the mode of a code; false for no plan.
func modeOf(code byte) (battery.Mode, bool) {
	if strings.IndexByte(carLockCodes, code) >= 0 {
		return battery.ModeLock, true
	}
	i := strings.IndexByte(modeCodes, code)

	return battery.Mode(max(0, i)), i >= 0
}

// modeAt returns the mode of a half-hour in a plan; false if it has none.
func modeAt(p *store.BatteryPlan, at flex.Period) (battery.Mode, bool) {
	i := at.Sub(p.From)
	if p.Modes == "" || i < 0 || i >= len(p.Modes) {
		return 0, false
	}

	return modeOf(p.Modes[i])
}

// PlanBatteries plans every battery that is controlled and due: once in each half-hour, when
// prices or the tariff change, and when its measured state of charge is far from its plan. It
// is safe to run twice and on several machines at once.
func (s *Service) PlanBatteries(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(ctx, s.DB.OrgsBy((*store.All).OrgIDs), s.PlanBatteriesOf)
}

// PlanBatteriesOf is PlanBatteries for one organisation.
func (s *Service) PlanBatteriesOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	read := func(tx *store.Tx, ctx context.Context, limit int) ([]flex.AssetID, error) {
		return tx.BatteriesRead(ctx, ChargeInterval, limit)
	}

	var r worker.Report
	run := plannerRun{Service: s}
	err := run.batteries(ctx, org, &r, (*store.Tx).BatteriesDue, run.planBattery)
	if ctx.Err() == nil {
		err = errors.Join(err, run.batteries(ctx, org, &r, read, run.checkCharge))
	}

	if err != nil {
		return r, fmt.Errorf("plan batteries: %w", err)
	}

	return r, nil
}

// batteries calls do for each battery that find returns, until there is no new one. Each
// battery has one turn in a run, even if it is still due afterwards. A battery that fails does
// not delay the others.
func (run *plannerRun) batteries(ctx context.Context, org flex.OrgID, r *worker.Report,
	find func(*store.Tx, context.Context, int) ([]flex.AssetID, error), do func(context.Context, *store.Tx, flex.AssetID) error) error {
	tried := failedAssets{assets: map[flex.AssetID]bool{}}
	visited, remaining := map[flex.AssetID]bool{}, 0 // remaining counts those that were found again
	for {
		most := batteriesMax + remaining
		found, err := run.find(ctx, org, most, find)
		if err != nil {
			return errors.Join(tried.err(), err)
		}

		remaining = 0
		for _, id := range found {
			if visited[id] {
				remaining++
				continue
			}

			visited[id], run.joint = true, nil
			err := run.battery(ctx, org, id, do)
			if flex.KindOf(err) == flex.Unavailable || ctx.Err() != nil {
				return errors.Join(tried.err(), err, ctx.Err())
			}

			if err != nil {
				tried.add([]notPlanned{{id, err}})
				continue
			}

			r.Count += 1 + run.addJoint(visited)
		}

		if len(found) < most {
			return tried.err()
		}
	}
}

// battery calls do for one battery, in a transaction.
func (run *plannerRun) battery(
	ctx context.Context,
	org flex.OrgID,
	id flex.AssetID,
	do func(context.Context, *store.Tx, flex.AssetID) error,
) error {
	cache := run.caps
	err := run.DB.Write(ctx, org, func(tx *store.Tx) error {
		// A second try uses nothing of the first one, which is rolled back.
		run.caps, cache = cache, headroomCache{}
		return do(ctx, tx, id)
	})
	if err != nil {
		run.caps = headroomCache{}
	}

	return err
}

// lockBattery locks a battery in the transaction and reads it; it returns nil if the battery
// was deleted since it was found.
func lockBattery(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) (*store.Battery, home.Battery, error) {
	_, _, err := tx.LockCaps(ctx)
	if err == nil {
		err = tx.LockSiteOf(ctx, id)
	}
	if err == nil {
		err = tx.LockAsset(ctx, id)
	}

	if flex.KindOf(err) == flex.NotFound {
		return nil, home.Battery{}, nil
	}
	if err != nil {
		return nil, home.Battery{}, err
	}

	b, err := tx.Battery(ctx, id)

	return &b, home.Battery{Power: b.Power(), Capacity: b.Capacity()}, err
}

// planBattery plans a battery and the others of its site to the end of tomorrow, and
// dispatches what begins soon.
func (run *plannerRun) planBattery(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) error {
	_, all, err := lockWithOthers(ctx, tx, id)
	if err != nil {
		return err
	}

	run.joint = nil
	for _, b := range all {
		run.joint = append(run.joint, b.Asset.ID)
	}

	return run.planTogether(ctx, tx, all, &run.caps)
}

// planLocked plans a battery that is locked. The headroom under caps is cached between
// batteries if a cache is given.
func (s *Service) planLocked(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	home home.Battery,
	kept *headroomCache,
) error {
	if home.Power <= 0 || home.Capacity <= 0 {
		next := nextPlan(&b.Plan, flex.PeriodAt(tx.Now()))
		return putWithoutForecast(ctx, tx, b.Asset.ID, next)
	}

	next, err := s.readForecast(ctx, tx, b)
	if err != nil {
		return err
	}

	own := siteBattery{Battery: b, device: home, next: next}

	return s.planWithOthers(ctx, tx, &own, nil, kept)
}

// planWithOthers plans a battery whose forecast was read. Other batteries of its site are
// expected to have the given powers, instead of those of their stored plans.
func (s *Service) planWithOthers(
	ctx context.Context,
	tx *store.Tx,
	own *siteBattery,
	others []expectedPowers,
	kept *headroomCache,
) error {
	b, next := own.Battery, own.next
	now := flex.PeriodAt(tx.Now())
	ahead, err := s.readBatteryInputs(ctx, tx, b, &next, own.device, now, kept)
	if err != nil {
		return err
	}

	for _, e := range others {
		ahead.meter.setExpected(e)
	}
	ahead.includeOtherBatteries(false)

	// A car that discharges by a schedule made without the battery is planned again with it.
	if ahead.meter != nil {
		if err := tx.MarkDue(ctx, ahead.meter.replanCars...); err != nil {
			return err
		}
	}

	if err := ahead.readCalls(ctx, tx, b.Asset.ID); err != nil {
		return err
	}

	next.Stored, next.StoredAt = ahead.stored, now
	if err := withdrawDispatches(ctx, tx, b, &next, &ahead); err != nil {
		return err
	}

	if err := ahead.readOwnDispatches(ctx, tx, b); err != nil {
		return err
	}

	return s.putInForce(ctx, tx, b, own.device, &next, ahead)
}

// readForecast begins a battery's next plan with the forecast of load and solar generation.
func (s *Service) readForecast(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
) (store.BatteryPlan, error) {
	next := nextPlan(&b.Plan, flex.PeriodAt(tx.Now()))
	err := readDispatchedTo(ctx, tx, b.Asset.ID, &next)
	if err == nil {
		err = s.forecast(ctx, tx, b, &next, lastPlanned(tx))
	}

	return next, err
}

// putWithoutForecast stores a battery's plan up to now, if there is no forecast: no modes or
// powers follow.
func putWithoutForecast(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
	next store.BatteryPlan,
) error {
	now := flex.PeriodAt(tx.Now())
	next.Modes = next.Modes[:now.Sub(next.From)]
	next.Powers = nil
	next.May = ""
	next.Refused = false

	return tx.PutBatteryPlan(ctx, id, next)
}

// putInForce plans what is ahead, sends what begins soon, and puts the plan in force.
func (s *Service) putInForce(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	home home.Battery,
	next *store.BatteryPlan,
	ahead batteryInputs,
) error {
	modes, powers, err := planModes(&b.Plan, home, ahead)
	if err != nil {
		s.log().ErrorContext(
			ctx,
			"a plan breaks a law and is not put in force",
			"asset",
			b.Asset.ID,
			"law",
			err,
		)

		return nil
	}

	next.Refused = s.guardBattery(ctx, b, home, &ahead, modes, powers)
	ahead.setModes(next, modes, tx.Now())
	next.Without, next.Powers = powers, powers
	next.May = ahead.movementCodes()

	if ahead.rates.market || ahead.fixed != nil || ahead.orders != nil {
		next.Without = s.withoutMarket(ctx, b, home, ahead, powers)
	}

	err = s.sendDispatches(ctx, tx, b, next, &ahead, modes, powers)
	if err != nil {
		return err
	}

	if err := ahead.put(ctx, tx, b, next); err != nil {
		return err
	}

	return ahead.caps.replacePlan(ctx, tx, next)
}

// movementCodes returns, for each half-hour, the store's code of whether the battery may
// charge or discharge. Where an instruction calls it, it may do neither.
func (s *batteryInputs) movementCodes() string {
	codes := make([]byte, len(s.periods))
	for i := range codes {
		codes[i] = movementCode(s.allowedIn(i))
		if s.fixed != nil && s.fixed[i] {
			codes[i] = '-'
		}
	}

	return string(codes)
}

// movementCode returns the code of a set of modes.
func movementCode(set battery.ModeSet) byte {
	charges := set.Has(battery.ModeCharge)
	discharges := set.Has(battery.ModeDischarge)

	switch {
	case charges && discharges:
		return 'b'
	case charges:
		return 'c'
	case discharges:
		return 'd'
	}

	return '-'
}

// keepHalfHour records the stored energy, the planned power and the permitted modes of the
// half-hour that a plan begins with, for forecasts of what batteries can do. The effect of
// instructions is left out.
func (s *batteryInputs) keepHalfHour(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
	next *store.BatteryPlan,
) error {
	powers := next.Powers
	if s.fixed != nil && s.fixed[0] {
		powers = next.Without
	}
	if len(powers) == 0 {
		return nil
	}

	may := movementCode(s.allowedIn(0))
	half := store.BatteryHalfHour{
		Stored: next.Stored,
		Power:  powers[0],
		May:    store.BatteryMovement(may),
	}

	return tx.AddBatteryHalfHour(
		ctx,
		id,
		next.StoredAt,
		half,
	)
}

// put stores a plan. The first plan of a half-hour is also recorded as a half-hour of the
// battery. For a battery that instructions call, the expected powers are stored too.
func (s *batteryInputs) put(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	next *store.BatteryPlan,
) error {
	id := b.Asset.ID
	err := tx.PutBatteryPlan(ctx, id, *next)
	if err == nil && b.Plan.StoredAt.Before(next.StoredAt) {
		err = s.keepHalfHour(ctx, tx, id, next)
	}

	if err == nil && s.fixed != nil {
		err = tx.ExpectOfBattery(ctx, id, next)
	}
	if err != nil {
		return err
	}

	return s.recordExpected(ctx, tx, b, next)
}

// withoutMarket returns the power of each half-hour by a plan at fixed rates, without
// dispatches. If there is no such plan, it is the power of the plan in force. In half-hours
// for which instructions call the battery, it is the power from before the call.
func (s *Service) withoutMarket(
	ctx context.Context,
	b *store.Battery,
	home home.Battery,
	ahead batteryInputs,
	inForce []flex.Watts,
) []flex.Watts {
	ahead.rates = fixedRates(b, ahead.settings, ahead.periods)
	calls := ahead
	ahead.fixed, ahead.callValue = nil, nil
	ahead.orders = nil
	ahead.includeOtherBatteries(true)
	_, without, err := planModes(&store.BatteryPlan{}, home, ahead)
	if err != nil {
		s.log().ErrorContext(
			ctx,
			"a plan without market prices breaks a law: what is dispatched is no flex event",
			"asset",
			b.Asset.ID,
			"law",
			err,
		)

		return inForce
	}

	return calls.keepBaselines(&b.Plan, without)
}

// isDispatchedMode reports whether a half-hour is sent as a dispatch: the battery is to charge
// or discharge in it, or an instruction keeps it idle.
func (s *batteryInputs) isDispatchedMode(
	i int,
	m battery.Mode,
	power flex.Watts,
) bool {
	switch m {
	case battery.ModeCharge, battery.ModeDischarge:
		return power != 0
	case battery.ModeLock:
		return s.fixed != nil && s.fixed[i]
	}

	return false
}

// comparisonFor returns what a half-hour's dispatch is compared for: the service of the
// instruction that calls the battery then, or the comparison that its plan is made for.
func (s *batteryInputs) comparisonFor(i int) string {
	if s.fixed != nil && s.services[i] != "" {
		return s.services[i]
	}
	return dispatchMarket
}

// setModes writes modes into a plan from its first half-hour on, and records when that changed
// anything.
func (s *batteryInputs) setModes(
	next *store.BatteryPlan,
	modes []battery.Mode,
	at time.Time,
) {
	ahead := make([]byte, len(modes))
	for i, m := range modes {
		ahead[i] = s.codeOf(next, i, m)
	}

	now := s.periods[0]
	past, before := next.Modes[:now.Sub(next.From)], next.Modes[now.Sub(next.From):]
	if before != string(ahead) {
		next.ChangedAt = at
	}

	next.Modes = past + string(ahead)
}

// nextPlan begins a plan with a copy of the previous one. The copy begins ChargeFresh before
// today, for as long as a state of charge is projected.
func nextPlan(old *store.BatteryPlan, now flex.Period) store.BatteryPlan {
	next := *old
	keepCommitted(&next, old, now)
	next.From = flex.PeriodAt(flex.DayAt(now.Start()).Start().Add(-ChargeFresh))
	var modes []byte

	for p := next.From; p.Before(now) || p.Sub(old.From) < len(old.Modes); p = p.Add(1) {
		code := byte(unplanned)
		if _, ok := modeAt(old, p); ok {
			code = old.Modes[p.Sub(old.From)]
		}
		modes = append(modes, code)
	}

	next.Modes = string(modes)
	if next.ChangedAt.IsZero() {
		next.ChangedAt = now.Start()
		next.StoredAt = now
		next.ForecastFrom = now
	}

	return next
}

// solvers pools the working memory of batteries' plans, some hundred kilobytes each.
var solvers = sync.Pool{New: func() any { return new(battery.Solver) }}

// planModes chooses the modes of the half-hours. Dispatched modes stay as they are. It also
// returns the power of each half-hour, if the forecast of load and solar generation is right.
func planModes(
	old *store.BatteryPlan,
	device home.Battery,
	ahead batteryInputs,
) ([]battery.Mode, []flex.Watts, error) {
	settled := ahead.fixedModes(old)
	modes, fixed, before := ahead.dispatchedModes(old, settled)
	whole := ahead.problem(device, ahead.stored, before)
	remaining := whole.Init

	if fixed > 0 {
		levels, _ := whole.Run(modes[:fixed])
		remaining = levels[fixed-1]
	}

	free := ahead.from(fixed)
	rest := free.problem(device, flex.WattHours(remaining), before)
	free.bindProblem(&rest, old, fixed, settled)
	solver := solvers.Get().(*battery.Solver)
	chosen := solver.SolveModes(&rest, modes[fixed:])
	solvers.Put(solver)
	if err := check.Modes(&rest, modes[fixed:], chosen); err != nil {
		return nil, nil, err
	}

	levels, _ := whole.Run(modes)
	idleAtLimits(modes[fixed:], levels[fixed:], remaining, free.rates.buy)
	free.coverInsteadOfLock(&rest, modes[fixed:])
	for i, m := range settled {
		modes[i] = m
	}

	return modes, powersOf(levels, whole.Init), nil
}

// dispatchedModes returns the modes of the half-hours, the number of those at the beginning
// that are fixed, and the mode before the free ones. A battery to which nothing was sent for a
// half-hour is locked if a car was plugged in since, and unlocked if it was unplugged.
func (s *batteryInputs) dispatchedModes(
	old *store.BatteryPlan,
	fixed map[int]battery.Mode,
) ([]battery.Mode, int, battery.Mode) {
	before := battery.ModeSelfUse
	if m, ok := modeAt(old, s.periods[0].Add(-1)); ok {
		before = m
	}

	modes := make([]battery.Mode, len(s.periods))
	for i := range modes {
		m, ok := fixed[i]
		if !ok {
			return modes, i, before
		}

		modes[i], before = m, m
	}

	return modes, len(modes), before
}

// idleAtLimits replaces DISCHARGE by LOCK where the battery is expected to be at its reserve,
// and CHARGE where it is expected to be full and energy costs more than when it last charged.
// A plan may continue into such half-hours, because a change of mode has a cost. A battery in
// another state than expected would then use its reserve, or buy at a high price.
func idleAtLimits(
	modes []battery.Mode,
	levels []int,
	at int,
	buy []float64,
) {
	bought := math.Inf(-1)
	for i, l := range levels {
		switch m := modes[i]; {
		case m == battery.ModeCharge && l > at:
			bought = buy[i]
		case m == battery.ModeCharge && buy[i] > bought, m == battery.ModeDischarge && l == at:
			modes[i] = battery.ModeLock
		}

		at = l
	}
}

// sendDispatches dispatches the half-hour that begins at least half an hour after the start of
// this one, if the battery is to charge or discharge in it and an endpoint takes dispatches.
// If an instruction has it idle, that is dispatched too.
func (s *Service) sendDispatches(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	next *store.BatteryPlan,
	ahead *batteryInputs,
	modes []battery.Mode,
	powers []flex.Watts,
) error {
	periods, without := ahead.periods, powers
	if ahead.rates.market || ahead.fixed != nil {
		without = next.Without
	}

	e, listens, err := tx.EnabledEndpoint(ctx, flex.DispatchEndpoint)
	if err != nil || !listens {
		return err
	}

	for i := 1; i <= 2 && i < len(periods); i++ {
		if ahead.isFixed(&b.Plan, i) {
			continue
		}

		next.DispatchedTo = flex.Later(next.DispatchedTo, periods[i].End())
		if ahead.isDispatchedMode(i, modes[i], powers[i]) {
			_, err := tx.AddDispatch(
				ctx,
				store.Dispatch{
					Own:    true,
					Market: ahead.comparisonFor(i),
					Span:   periods[i].Span(),
					Batch:  e.Batch,
					Assets: []store.DispatchedAsset{{
						ID:      b.Asset.ID,
						Power:   powers[i],
						Without: without[i : i+1],
					}},
				},
			)

			if err != nil {
				return fmt.Errorf("hand over: %w", err)
			}
		}
	}

	return nil
}
