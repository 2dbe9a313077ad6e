package control

import (
	"context"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// ModeSpan is a time in which a battery is to be in one mode.
type ModeSpan struct {
	flex.Span
	Mode battery.Mode
}

// BatterySchedule returns what a battery is to do from the running half-hour on, and
// when that last changed. Any other asset is flex.NotFound, and a battery whose site has
// not consented to full schedule control flex.Forbidden. Without a plan yet there are no
// steps.
func (s *Service) BatterySchedule(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
) ([]ModeSpan, time.Time, error) {
	var (
		steps   []ModeSpan
		changed time.Time
	)

	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var p *store.BatteryPlan
		var err error
		steps, p, err = batteryPlanAhead(ctx, tx, asset)
		if err != nil {
			return err
		}

		var issued time.Time
		steps, issued, err = applyDispatchModes(ctx, tx, asset, p, steps)
		changed = flex.Later(changedAt(tx, p), issued)
		return err
	})

	return steps, changed, err
}

// batteryPlanAhead returns the plan of a controlled battery from the running half-hour on.
func batteryPlanAhead(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) ([]ModeSpan, *store.BatteryPlan, error) {
	b, err := tx.Battery(ctx, asset)
	if err != nil {
		return nil, nil, err
	}
	if b.Excluded { // that is no matter of the user's consent
		return nil, nil, flex.Fail(
			flex.Forbidden,
			"an operator excluded the battery from control",
		)
	}

	if !b.Controlled {
		return nil, nil, flex.Fail(
			flex.Forbidden,
			"the site has not consented to full_asset_schedule_control",
		)
	}

	now := flex.PeriodAt(tx.Now()).Start()

	return modeSpans(&b.Plan, flex.Span{
		From: now,
		To:   now.AddDate(0, 0, 3),
	}), &b.Plan, nil
}

// changedAt returns when a plan last changed; now if there never was one.
func changedAt(tx *store.Tx, p *store.BatteryPlan) time.Time {
	if p.ChangedAt.IsZero() {
		return tx.Now()
	}
	return p.ChangedAt
}

// BatterySteps returns the same in the terms of a battery schedule, which state what a battery
// avoids: how it waits depends on whether the home is expected to draw or to have a surplus in
// a half-hour. Where a limit is shared with others, it charges and discharges only in
// committed half-hours.
func (s *Service) BatterySteps(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
) ([]battery.Step, time.Time, error) {
	var (
		steps   []battery.Step
		changed time.Time
	)

	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		spans, p, err := batteryPlanAhead(ctx, tx, asset)
		if err != nil {
			return err
		}

		changed = changedAt(tx, p)
		kept, bound, err := limitToCommitted(ctx, tx, asset, spans)
		if err != nil {
			return err
		}
		if bound { // each half-hour one more is committed
			changed = flex.Later(changed, flex.PeriodAt(tx.Now()).Start())
		}

		kept, issued, err := applyDispatchModes(ctx, tx, asset, p, kept)
		if err != nil {
			return err
		}

		cars, err := readCarsAt(ctx, tx, asset)
		if err != nil {
			return err
		}

		changed = flex.Later(changed, flex.Later(issued, cars.changedAt()))
		steps = batterySteps(p, kept, cars)

		return nil
	})

	return steps, changed, err
}

// batterySteps converts modes to steps, with regard to the cars of the site. Equal neighbours
// are joined.
func batterySteps(
	p *store.BatteryPlan,
	spans []ModeSpan,
	beside *meter,
) []battery.Step {
	var steps []battery.Step
	for _, s := range spans {
		periods := periodsTo(flex.PeriodAt(s.From), s.To)
		load, roof := parseForecast(p, periods)

		for i, at := range periods {
			next := battery.Step{Span: at.Span()}
			next.Action, next.AllowDeviation = beside.carsIn(at).stepOf(s.Mode, load[i]-roof[i])

			if n := len(steps); n > 0 && continues(steps[n-1], next) {
				steps[n-1].To = next.To
			} else {
				steps = append(steps, next)
			}
		}
	}

	return steps
}

// DispatchPlan returns what a battery is to do, and did, today in London. Any other asset is
// flex.NotFound. It is empty outside production, for a battery without an asset model, for one
// whose site has not consented to full schedule control or to the wholesale market, and before
// the first plan: the interface does not distinguish these.
func (s *Service) DispatchPlan(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
) ([]ModeSpan, error) {
	var periods []ModeSpan
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		b, err := tx.Battery(ctx, asset)
		if err != nil {
			return err
		}

		wholesale := b.Consented || b.Model != nil && b.Model.CoP11
		if s.DB.Environment != flex.Production || !wholesale {
			return nil
		}
		if b.Asset.Model == "" || !b.Controlled {
			return nil
		}

		periods = modeSpans(&b.Plan, flex.DayAt(tx.Now()).Span())
		periods, _, err = applyDispatchModes(ctx, tx, asset, &b.Plan, periods)
		return err
	})

	return periods, err
}

// modeSpans joins consecutive half-hours of a plan within a span that have the same mode.
func modeSpans(p *store.BatteryPlan, within flex.Span) []ModeSpan {
	var spans []ModeSpan
	for at := flex.PeriodAt(within.From); at.Start().Before(within.To); at = at.Add(1) {
		if m, planned := modeAt(p, at); planned {
			spans = addMode(spans, at, m)
		}
	}

	return spans
}

// continues reports whether a step continues with the same as the one before it.
func continues(before, next battery.Step) bool {
	same := before.Action == next.Action &&
		before.AllowDeviation == next.AllowDeviation
	return same && before.To.Equal(next.From)
}
