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
	// ChargeFresh is how old a battery's state of charge may be. An older one is projected
	// on from the plan.
	ChargeFresh = 2 * time.Hour
	// ChargeOff is how far a state of charge may be from what the plan comes to, as a part of
	// the capacity. A battery that is farther off is planned again at once.
	ChargeOff = 0.1
	// ChargeInterval is the least time between two plans of a battery that were made for that.
	ChargeInterval = MarketInterval
	// projectedMax is the number of half-hours over which a plan is projected.
	projectedMax = 96
)

// checkCharge plans a battery again if its state of charge was read far from what its plan
// comes to.
func (run *batteryRun) checkCharge(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) error {
	run.joint = nil
	own, all, err := lockBeside(ctx, tx, id)
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

// readCharge is what a battery was last read to hold, and when, if that was lately.
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

// latestReading is the newest reading of an asset with one of some labels, if that was lately.
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

	// of those that end at one instant the first that was found
	latest := list[len(list)-1]
	for _, r := range list {
		if r.To.Equal(latest.To) {
			return r, true, nil
		}
	}

	return latest, true, nil
}

// expectedLevel is what a battery holds at an instant if all has gone by the plan; false if the
// plan is too old to say, or there is none. Before it was made, that is what it began with. One that has others beside it covers
// what its plan says, and not the whole home.
func expectedLevel(
	p *store.BatteryPlan,
	home home.Battery,
	at time.Time,
	beside bool,
) (flex.WattHours, bool) {
	last := flex.PeriodAt(at.Add(-1)) // a half-hour that has begun counts
	if p.PlannedAt.IsZero() || last.Sub(p.StoredAt) >= projectedMax {
		return 0, false
	}

	past := periodsTo(p.StoredAt, at)
	if len(past) == 0 {
		return p.Stored, true
	}

	modes := modesIn(p, past)

	load, roof := guessed(p, past)
	if beside {
		coversBeside(p, past, load, roof)
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

	problem.Ordered = movedByOrders(p, past, modes)
	levels, _ := problem.Run(modes)
	before, after := problem.Init, levels[len(levels)-1]

	if n := len(levels); n > 1 {
		before = levels[n-2]
	}

	share := at.Sub(past[len(past)-1].Start()).Seconds() / flex.HalfHour.Seconds()

	return flex.WattHours(float64(before) + share*float64(after-before)), true
}

// modesIn are the modes of a plan in half-hours. Without a plan a battery covers the home and stores its surplus.
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

// projected is what a battery holds at the end of a span that is over, at most ChargeFresh long, if it was read to hold a level at
// its beginning and did as its plans said, and as operators' dispatches asked.
func projected(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	device home.Battery,
	read flex.WattHours,
	span flex.Span,
) (flex.WattHours, error) {
	past := periodsTo(flex.PeriodAt(span.From), span.To)
	orders, err := ordersOf(ctx, tx, b.Asset.ID, &b.Plan, past)
	if err != nil {
		return 0, err
	}

	modes := modesIn(&b.Plan, past)

	load, roof, err := guessedBeside(ctx, tx, b, past)
	if err != nil {
		return 0, err
	}

	for i, p := range past {
		share := p.Span().Meet(span).Len().Hours() / flex.HalfHour.Hours()
		problem := partOfSlot(device, share, read, load[i], roof[i])

		if orders != nil && orders[i].given {
			modes[i] = battery.ModeLock
			moved := float64(orderedMove(orders[i].power))
			problem.Ordered = []int{int(share * moved)}
		}

		levels, _ := problem.Run(modes[i : i+1])
		read = flex.WattHours(levels[0])
	}

	return read, nil
}

// partOfSlot is a battery in a part of a half-hour, in which a part of all moves.
func partOfSlot(
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

// stored is what the battery holds at the start of the running half-hour: as it was read
// lately and as the plan before moves it since then, else as that plan comes to, else half.
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

	beside, err := hasBeside(ctx, tx, b)
	if err != nil {
		return 0, err
	}

	level, ok := expectedLevel(&b.Plan, home, now.Start(), beside)
	if known && ok && at.Before(now.Start()) {
		return projected(ctx, tx, b, home, read, flex.Span{From: at, To: now.Start()})
	}

	then, _ := expectedLevel(&b.Plan, home, at, beside)

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
