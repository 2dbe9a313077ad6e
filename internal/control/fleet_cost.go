package control

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// bill returns the cost of the fleet's energy from an instant on, if each member draws the
// given steps. Energy costs the market's price. In a half-hour with a traded position, only
// the deviation counts: energy bought beyond the position, less energy sold.
func (f *fleet) bill(
	from time.Time,
	stepsOf func(*member) []flex.Step,
) flex.MicroPounds {
	sums := map[flex.Period]int64{} // watt-seconds
	add := func(steps []flex.Step, power flex.Watts) {
		for _, s := range stepsWithin(steps, flex.Span{
			From: from,
			To:   from.Add(planHorizon),
		}) {
			for at := flex.PeriodAt(s.From); s.Limit > 0 && at.Start().Before(s.To); at = at.Add(1) {
				sums[at] += int64(min(s.Limit, power)) * int64(s.Meet(at.Span()).Len()/time.Second)
			}
		}
	}

	for i := range f.members {
		add(stepsOf(&f.members[i]), f.members[i].Power)
	}

	for i := range f.others {
		steps, power, _ := cappedLoadSteps(&f.others[i], from)
		add(steps, power)
	}

	cost := f.deviations(from, sums)
	assumed := charge.AssumedPrice(f.market)
	for at, sum := range sums {
		cost += flex.MicroPounds(priced(
			f.market,
			assumed,
			at.Span(),
		) / 1800 * float64(sum) / (3600 * 1e6))
	}

	return cost
}

// deviations returns the cost of the deviations from a traded position. It removes the
// half-hours of the position from sums.
func (f *fleet) deviations(
	from time.Time,
	sums map[flex.Period]int64,
) flex.MicroPounds {
	var cost flex.MicroPounds
	for _, t := range f.Position {
		// In a half-hour that has begun, the energy bought for its first part counts as drawn.
		remaining := t.Period.Span().Meet(flex.Span{From: from, To: t.Period.End()}).Len()
		ahead := t.Energy * flex.WattHours(remaining/time.Second) / 1800
		beyond := flex.WattHours(sums[t.Period]/3600) - ahead
		delete(sums, t.Period)

		if beyond > 0 {
			cost += t.Buy.Of(beyond)
		} else if t.Period.End().After(from) {
			cost += t.Sell.Of(beyond)
		}
	}

	return cost
}

// commit puts the changed schedules in force, and marks when the fleet is to be planned again.
// It does nothing, and done is false, if something was planned under the caps since the
// snapshot.
func (s *Service) commit(
	ctx context.Context,
	tx *store.Tx,
	f *fleet,
	t *runCounts,
) (done bool, err error) {
	inForce, ok, err := tx.LockCaps(ctx)
	if err != nil || !ok || inForce.Version != f.Version {
		return !ok, err
	}

	curve, err := tx.AddCurve(ctx, f.prices)
	if err != nil {
		return false, fmt.Errorf("store the prices: %w", err)
	}

	f.changes(curve)

	changed, err := s.replace(ctx, tx, f)
	if err != nil {
		return false, err
	}

	// The discharge of each car is planned separately, in the headroom that this plan leaves.
	if err := tx.MarkAt(ctx, tx.Now(), f.dischargingCars()...); err != nil {
		return false, err
	}

	if err := s.countFleet(ctx, tx, &inForce); err != nil {
		return false, fmt.Errorf("add up what is drawn under caps: %w", err)
	}

	if err := f.noteExcesses(ctx, tx); err != nil {
		return false, err
	}

	t.add(runCounts{planned: len(f.members), changed: changed})

	return true, tx.RecordCapsPlanned(ctx, f.shadow, f.nextDue())
}

// nextDue returns when a fleet that was just planned is to be planned again.
func (f *fleet) nextDue() time.Time {
	next := flex.PeriodAt(f.now).End()
	if f.isWaiting() {
		next = sooner(next, f.now.Add(MarketInterval))
	}
	if !f.replanAt.IsZero() && f.replanAt.Before(next) {
		next = sooner(next, flex.Later(f.replanAt, f.now.Add(MarketInterval)))
	}

	return next
}
