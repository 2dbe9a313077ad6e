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

// What home batteries are planned on where nothing was given, in pence per kWh.
const (
	DefaultPeakRate    = 28.0
	DefaultOffPeakRate = 9.0
	DefaultExportRate  = 15.0
)

const (
	// batteriesMax is the number of batteries that are looked for at a time.
	batteriesMax = 200
	// dispatchMarket is the market that a battery's own plan is made for.
	dispatchMarket = "wholesale"
)

// A plan is written as a code for each half-hour: modeCodes has them in the order of battery.Mode, and unplanned stands for no plan. Those of
// restCodes are LOCK, beside cars, in the place of FEED_IN and of SELF_USE.
const (
	modeCodes = "CDLFS"
	restCodes = "fs"
	unplanned = '.'
)

func modeCode(m battery.Mode) byte { return modeCodes[m] }

// modeOf reads a code, and is false where nothing was planned.
func modeOf(code byte) (battery.Mode, bool) {
	if strings.IndexByte(restCodes, code) >= 0 {
		return battery.ModeLock, true
	}
	i := strings.IndexByte(modeCodes, code)

	return battery.Mode(max(0, i)), i >= 0
}

// modeAt returns what a plan says for a half-hour.
func modeAt(p *store.BatteryPlan, at flex.Period) (battery.Mode, bool) {
	i := at.Sub(p.From)
	if p.Modes == "" || i < 0 || i >= len(p.Modes) {
		return 0, false
	}

	return modeOf(p.Modes[i])
}

// PlanBatteries works out again the plan of every battery under control that is due: once in
// each half-hour, when prices or the tariff change, and when its state of charge is read far
// from what the plan comes to. It is safe to run twice and on several machines at once.
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
	run := batteryRun{Service: s}
	err := run.batteries(ctx, org, &r, (*store.Tx).BatteriesDue, run.planBattery)
	if ctx.Err() == nil {
		err = errors.Join(err, run.batteries(ctx, org, &r, read, run.checkCharge))
	}

	if err != nil {
		return r, fmt.Errorf("plan batteries: %w", err)
	}

	return r, nil
}

// batteries calls do for each battery that find returns, until there is no new one. Each has one turn in a run, even if it is still due
// afterwards. A battery that fails does not hold up the others.
func (run *batteryRun) batteries(ctx context.Context, org flex.OrgID, r *worker.Report,
	find func(*store.Tx, context.Context, int) ([]flex.AssetID, error), do func(context.Context, *store.Tx, flex.AssetID) error) error {
	tried := failedAssets{assets: map[flex.AssetID]bool{}}
	seen, left := map[flex.AssetID]bool{}, 0 // left counts those that were found again
	for {
		most := batteriesMax + left
		found, err := run.find(ctx, org, most, find)
		if err != nil {
			return errors.Join(tried.err(), err)
		}

		left = 0
		for _, id := range found {
			if seen[id] {
				left++
				continue
			}

			seen[id], run.joint = true, nil
			err := run.battery(ctx, org, id, do)
			if flex.KindOf(err) == flex.Unavailable || ctx.Err() != nil {
				return errors.Join(tried.err(), err, ctx.Err())
			}

			if err != nil {
				tried.add([]notPlanned{{id, err}})
				continue
			}

			r.Count += 1 + run.addJoint(seen)
		}

		if len(found) < most {
			return tried.err()
		}
	}
}

// battery calls do for one battery, in a transaction.
func (run *batteryRun) battery(
	ctx context.Context,
	org flex.OrgID,
	id flex.AssetID,
	do func(context.Context, *store.Tx, flex.AssetID) error,
) error {
	kept := run.caps
	err := run.DB.Write(ctx, org, func(tx *store.Tx) error {
		// A second try keeps nothing of the first, which is undone.
		run.caps, kept = kept, capsKept{}
		return do(ctx, tx, id)
	})
	if err != nil {
		run.caps = capsKept{}
	}

	return err
}

// lockBattery takes a battery for this transaction alone, or returns nil if it was deleted
// since it was found.
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

// planBattery works the plan of a battery out, and those of the others of its site, to the end of tomorrow, and hands over
// what begins soon.
func (run *batteryRun) planBattery(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) error {
	_, all, err := lockBeside(ctx, tx, id)
	if err != nil {
		return err
	}

	run.joint = nil
	for _, b := range all {
		run.joint = append(run.joint, b.Asset.ID)
	}

	return run.planTogether(ctx, tx, all, &run.caps)
}

// planLocked plans a battery that is locked. The headroom under caps is kept from one battery to the next where it is
// given.
func (s *Service) planLocked(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	home home.Battery,
	kept *capsKept,
) error {
	if home.Power <= 0 || home.Capacity <= 0 {
		next := nextPlan(&b.Plan, flex.PeriodAt(tx.Now()))
		return putWithoutForecast(ctx, tx, b.Asset.ID, next)
	}

	next, err := s.readGuess(ctx, tx, b)
	if err != nil {
		return err
	}

	own := siteBattery{Battery: b, device: home, next: next}

	return s.planBeside(ctx, tx, &own, nil, kept)
}

// planBeside plans a battery whose guess is read. In the place of what is stored of them, others of its site are expected to move what is
// given.
func (s *Service) planBeside(
	ctx context.Context,
	tx *store.Tx,
	own *siteBattery,
	others []expectedBeside,
	kept *capsKept,
) error {
	b, next := own.Battery, own.next
	now := flex.PeriodAt(tx.Now())
	ahead, err := s.situationOf(ctx, tx, b, &next, own.device, now, kept)
	if err != nil {
		return err
	}

	for _, e := range others {
		ahead.meter.expect(e)
	}
	ahead.regardOthers(false)

	// A car that gives without regard to the battery is planned again, beside it.
	if ahead.meter != nil {
		if err := tx.MarkDue(ctx, ahead.meter.givers...); err != nil {
			return err
		}
	}

	if err := ahead.readCalls(ctx, tx, b.Asset.ID); err != nil {
		return err
	}

	next.Stored, next.StoredAt = ahead.stored, now
	if err := takeBack(ctx, tx, b, &next, &ahead); err != nil {
		return err
	}

	if err := ahead.readSent(ctx, tx, b); err != nil {
		return err
	}

	return s.putInForce(ctx, tx, b, own.device, &next, ahead)
}

// readGuess begins the next plan of a battery with its guess.
func (s *Service) readGuess(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
) (store.BatteryPlan, error) {
	next := nextPlan(&b.Plan, flex.PeriodAt(tx.Now()))
	err := readAskedTo(ctx, tx, b.Asset.ID, &next)
	if err == nil {
		err = s.forecast(ctx, tx, b, &next, lastPlanned(tx))
	}

	return next, err
}

// putWithoutForecast keeps a battery's plan up to now, where nothing is known ahead: no modes and no powers follow.
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
	ahead homeAhead,
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
	next.May = ahead.mayDo()

	if ahead.rates.market || ahead.kept != nil || ahead.orders != nil {
		next.Without = s.withoutMarket(ctx, b, home, ahead, powers)
	}

	err = s.sendDispatches(ctx, tx, b, next, &ahead, modes, powers)
	if err != nil {
		return err
	}

	if err := ahead.put(ctx, tx, b, next); err != nil {
		return err
	}

	return ahead.caps.replaced(ctx, tx, next)
}

// mayDo says for each half-hour whether the battery may charge or discharge, in the store's codes. Where an instruction has
// called it, it may do neither.
func (s *homeAhead) mayDo() string {
	codes := make([]byte, len(s.periods))
	for i := range codes {
		codes[i] = movementCode(s.allowedIn(i))
		if s.kept != nil && s.kept[i] {
			codes[i] = '-'
		}
	}

	return string(codes)
}

// movementCode is the code of what a battery may do.
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

// keepHalfHour keeps what a battery holds, is to do and may do in the half-hour that a plan begins with, for forecasts of what
// batteries can do. What an instruction has it do is left out.
func (s *homeAhead) keepHalfHour(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
	next *store.BatteryPlan,
) error {
	powers := next.Powers
	if s.kept != nil && s.kept[0] {
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

// put keeps a plan. The first plan of a half-hour is also kept as a half-hour of the battery. Of a battery that instructions call it
// keeps what is expected.
func (s *homeAhead) put(
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

	if err == nil && s.kept != nil {
		err = tx.ExpectOfBattery(ctx, id, next)
	}
	if err != nil {
		return err
	}

	return s.expectNamed(ctx, tx, b, next)
}

// withoutMarket is the power in each half-hour by a plan at fixed rates, without dispatches. If there is no such plan, it is
// the power of the plan in force. In half-hours for which instructions call the battery, it is the power from before
// they called it.
func (s *Service) withoutMarket(
	ctx context.Context,
	b *store.Battery,
	home home.Battery,
	ahead homeAhead,
	inForce []flex.Watts,
) []flex.Watts {
	ahead.rates = fixedRates(b, ahead.settings, ahead.periods)
	calls := ahead
	ahead.kept, ahead.worth = nil, nil
	ahead.orders = nil
	ahead.regardOthers(true)
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

	return calls.keepWithout(&b.Plan, without)
}

// sends reports whether a half-hour is sent as a dispatch: the battery is to charge or discharge in it, or an instruction
// keeps it idle.
func (s *homeAhead) sends(
	i int,
	m battery.Mode,
	power flex.Watts,
) bool {
	switch m {
	case battery.ModeCharge, battery.ModeDischarge:
		return power != 0
	case battery.ModeLock:
		return s.kept != nil && s.kept[i]
	}

	return false
}

// comparison is what a half-hour's dispatch is for: the service of the instruction that calls the battery for it, or the comparison
// that its plan is made for.
func (s *homeAhead) comparison(i int) string {
	if s.kept != nil && s.services[i] != "" {
		return s.services[i]
	}
	return dispatchMarket
}

// setModes puts modes into a plan from the first half-hour ahead on, and notes when that changed anything.
func (s *homeAhead) setModes(
	next *store.BatteryPlan,
	modes []battery.Mode,
	at time.Time,
) {
	ahead := make([]byte, len(modes))
	for i, m := range modes {
		ahead[i] = s.codeOf(next, i, m)
	}

	now := s.periods[0]
	kept, before := next.Modes[:now.Sub(next.From)], next.Modes[now.Sub(next.From):]
	if before != string(ahead) {
		next.ChangedAt = at
	}

	next.Modes = kept + string(ahead)
}

// nextPlan begins a plan with a copy of what the one before says. The copy begins earlier than today by ChargeFresh, for as
// long as a state of charge is projected.
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

// solvers keeps the working memory of batteries' plans, some hundred kilobytes each.
var solvers = sync.Pool{New: func() any { return new(battery.Solver) }}

// planModes chooses the modes of the half-hours. What was dispatched stays as it is.
// It returns the power of each half-hour too, as far as the guess of load and roof is right.
func planModes(
	old *store.BatteryPlan,
	device home.Battery,
	ahead homeAhead,
) ([]battery.Mode, []flex.Watts, error) {
	settled := ahead.fixedModes(old)
	modes, fixed, before := ahead.dispatchedModes(old, settled)
	whole := ahead.problem(device, ahead.stored, before)
	left := whole.Init

	if fixed > 0 {
		levels, _ := whole.Run(modes[:fixed])
		left = levels[fixed-1]
	}

	free := ahead.from(fixed)
	rest := free.problem(device, flex.WattHours(left), before)
	free.bind(&rest, old, fixed, settled)
	solver := solvers.Get().(*battery.Solver)
	chosen := solver.SolveModes(&rest, modes[fixed:])
	solvers.Put(solver)
	if err := check.Modes(&rest, modes[fixed:], chosen); err != nil {
		return nil, nil, err
	}

	levels, _ := whole.Run(modes)
	idleAtLimits(modes[fixed:], levels[fixed:], left, free.rates.buy)
	free.coverBeside(&rest, modes[fixed:])
	for i, m := range settled {
		modes[i] = m
	}

	return modes, powersOf(levels, whole.Init), nil
}

// dispatchedModes returns the modes of the half-hours, of which the first ones are fixed, how many those are, and the mode before those
// that are free. A battery of which nothing was sent is locked where a car has come since, and is locked no longer where that has left.
func (s *homeAhead) dispatchedModes(
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

// idleAtLimits says LOCK for a DISCHARGE that is expected to find the battery empty down to its
// reserve, and for a CHARGE that is expected to find it full where energy costs more than when
// it last took some. A plan may run on into such hours, since a change of mode costs something,
// and a battery that is not as the plan supposes would then use its reserve, or buy dear.
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

// sendDispatches sends what the battery is to do in the half-hour that begins at least half an
// hour from the start of this one, if it is to charge or discharge and an endpoint takes dispatches. Where an instruction
// keeps it idle, that is sent too.
func (s *Service) sendDispatches(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	next *store.BatteryPlan,
	ahead *homeAhead,
	modes []battery.Mode,
	powers []flex.Watts,
) error {
	periods, without := ahead.periods, powers
	if ahead.rates.market || ahead.kept != nil {
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
		if ahead.sends(i, modes[i], powers[i]) {
			_, err := tx.AddDispatch(
				ctx,
				store.Dispatch{
					Own:    true,
					Market: ahead.comparison(i),
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
