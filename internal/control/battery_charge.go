package control

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/store"
)

const (
	// ChargeFresh is the greatest age of a reading of a battery's state of charge. An older
	// state of charge is projected by the plan.
	ChargeFresh = 2 * time.Hour
	// ChargeOff is how far a measured state of charge may be from the plan, as a fraction of
	// the capacity. Beyond that the battery is planned again at once.
	ChargeOff = 0.1
	// ChargeInterval is the least time between two plans of a battery that were made because
	// of that.
	ChargeInterval = MarketInterval
	// maxProjected is the greatest number of half-hours over which a plan is projected.
	maxProjected = 96
)

// checkCharge plans a battery again if its measured state of charge is far from its plan.
func (run *plannerRun) checkCharge(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) error {
	run.joint = nil
	own, all, err := lockWithOthers(ctx, tx, id)
	if own == nil || err != nil {
		return err
	}

	b, home := own.Battery, own.device
	read, at, known, err := readCharge(ctx, tx, b, home)
	if err != nil {
		return err
	}

	if began := b.Plan.StoredAt.Start(); known && at.Before(began) {
		read, err = projected(ctx, tx, b, home, read, flex.Span{
			From: at,
			To:   began,
		})
		if err != nil {
			return err
		}

		at = began
	}

	level, ok := expectedLevel(&b.Plan, home, at, len(all) > 1)
	if known && ok && tooFar(read-level, home) {
		if err := run.planTogether(ctx, tx, all, &run.caps); err != nil {
			return err
		}
		return tx.RecordBatteryOffPlan(ctx, id)
	}

	return tx.RecordBatteryCheck(ctx, id, &b.Plan)
}

func tooFar(off flex.WattHours, home home.Battery) bool {
	return float64(max(off, -off)) > ChargeOff*float64(home.Capacity)
}

// readCharge returns the last measured energy in a battery and when it was measured; false if
// there is no reading within ChargeFresh.
func readCharge(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	home home.Battery,
) (flex.WattHours, time.Time, bool, error) {
	latest, _, err := latestReading(
		ctx,
		tx,
		b.Asset.ID,
		flex.BatteryStateOfCharge,
		flex.BatteryStoredEnergy,
	)
	if err != nil {
		return 0, time.Time{}, false, fmt.Errorf("read the state of charge: %w", err)
	}

	var (
		level flex.WattHours
		known bool
	)

	switch latest.Label {
	case flex.BatteryStateOfCharge:
		level, known = flex.WattHours(float64(latest.Value)/1e8*float64(home.Capacity)), true
	case flex.BatteryStoredEnergy:
		level, known = flex.WattHours(latest.Value/1000), true
	}

	return level, latest.To, known, nil
}

// latestReading returns the newest reading of an asset with one of some labels; false if there
// is none within ChargeFresh.
func latestReading(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	labels ...flex.Label,
) (flex.Reading, bool, error) {
	list, err := freshReadings(ctx, tx, asset, labels...)
	if err != nil || len(list) == 0 {
		return flex.Reading{}, false, err
	}

	// of those that end at the same instant, the first one found
	latest := list[len(list)-1]
	for _, r := range list {
		if r.To.Equal(latest.To) {
			return r, true, nil
		}
	}

	return latest, true, nil
}

// expectedLevel returns the energy in a battery at an instant if it followed its plan; false
// if the plan is too old, or there is none. Before the plan was made it is the energy that the
// plan began with. A battery beside others covers what its plan says, not the whole home.
func expectedLevel(
	p *store.BatteryPlan,
	home home.Battery,
	at time.Time,
	beside bool,
) (flex.WattHours, bool) {
	last := flex.PeriodAt(at.Add(-1)) // a half-hour that has begun counts
	if p.PlannedAt.IsZero() || last.Sub(p.StoredAt) >= maxProjected {
		return 0, false
	}

	past := periodsTo(p.StoredAt, at)
	if len(past) == 0 {
		return p.Stored, true
	}

	modes := modesIn(p, past)

	load, roof := parseForecast(p, past)
	if beside {
		coveredShare(p, past, load, roof)
	}

	none := make([]float64, len(past))
	problem := home.Problem(
		none,
		none,
		load,
		roof,
		p.Stored,
		battery.ModeSelfUse,
		0,
	)

	problem.Ordered = dispatchedMoves(p, past, modes)
	levels, _ := problem.Run(modes)
	before, after := problem.Init, levels[len(levels)-1]

	if n := len(levels); n > 1 {
		before = levels[n-2]
	}

	share := at.Sub(past[len(past)-1].Start()).Seconds() / flex.HalfHour.Seconds()

	return flex.WattHours(float64(before) + share*float64(after-before)), true
}

// modesIn returns the modes of a plan in some half-hours; without a plan, SELF_USE.
func modesIn(p *store.BatteryPlan, periods []flex.Period) []battery.Mode {
	modes := make([]battery.Mode, len(periods))
	for i, at := range periods {
		modes[i] = battery.ModeSelfUse
		if m, ok := modeAt(p, at); ok {
			modes[i] = m
		}
	}

	return modes
}

// projected returns the energy in a battery at the end of a past span, at most ChargeFresh
// long, if it had a level at its beginning and followed its plans and operators' dispatches
// since.
func projected(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	device home.Battery,
	read flex.WattHours,
	span flex.Span,
) (flex.WattHours, error) {
	past := periodsTo(flex.PeriodAt(span.From), span.To)
	orders, err := dispatchesOf(ctx, tx, b.Asset.ID, &b.Plan, past)
	if err != nil {
		return 0, err
	}

	modes := modesIn(&b.Plan, past)

	load, roof, err := pastNetLoad(ctx, tx, b, past)
	if err != nil {
		return 0, err
	}

	for i, p := range past {
		share := p.Span().Meet(span).Len().Hours() / flex.HalfHour.Hours()
		problem := partialBattery(device, share, read, load[i], roof[i])

		if orders != nil && orders[i].isSet {
			modes[i] = battery.ModeLock
			moved := float64(dispatchMove(orders[i].power))
			problem.Ordered = []int{int(share * moved)}
		}

		levels, _ := problem.Run(modes[i : i+1])
		read = flex.WattHours(levels[0])
	}

	return read, nil
}

// partialBattery returns a battery scaled to a part of a half-hour, in which it moves that
// part of the energy.
func partialBattery(
	device home.Battery,
	share float64,
	stored flex.WattHours,
	load flex.WattHours,
	roof flex.WattHours,
) battery.ModeProblem {
	part := func(w flex.WattHours) []flex.WattHours {
		return []flex.WattHours{flex.WattHours(share * float64(w))}
	}

	free := []float64{0}
	device.Power = flex.Watts(share * float64(device.Power))

	return device.Problem(
		free,
		free,
		part(load),
		part(roof),
		stored,
		battery.ModeSelfUse,
		0,
	)
}

// stored returns the energy in the battery at the start of the running half-hour: the last
// reading, projected by the plan in force since then; else what that plan expects; else half
// of the capacity.
func stored(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	home home.Battery,
	now flex.Period,
) (flex.WattHours, error) {
	read, at, known, err := readCharge(ctx, tx, b, home)
	if err != nil {
		return 0, err
	}

	hasOthers, err := hasOtherBatteries(ctx, tx, b)
	if err != nil {
		return 0, err
	}

	level, ok := expectedLevel(&b.Plan, home, now.Start(), hasOthers)
	if known && ok && at.Before(now.Start()) {
		return projected(ctx, tx, b, home, read, flex.Span{From: at, To: now.Start()})
	}

	then, _ := expectedLevel(&b.Plan, home, at, hasOthers)

	if known && ok {
		return max(0, min(read+level-then, home.Capacity)), nil
	}

	if known {
		return read, nil
	}

	if ok {
		return level, nil
	}

	return home.Capacity / 2, nil
}
