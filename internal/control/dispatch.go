package control

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/plan"
	"flexd/internal/store"
)

// ModeSpan is a time in which a battery is told to do one thing.
type ModeSpan struct {
	flex.Span
	Mode plan.Mode
}

// BatterySchedule returns what a battery is told to do from the running half-hour on, and
// when that last changed. Any other asset is flex.NotFound, and a battery whose site has
// not consented to full schedule control flex.Forbidden. Without a plan yet there are no
// steps.
func (d *Desk) BatterySchedule(ctx context.Context, org flex.OrgID, asset flex.AssetID) (steps []ModeSpan, changed time.Time, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		b, err := tx.Battery(ctx, asset)
		if err != nil {
			return err
		}
		if !b.Controlled {
			return flex.Fail(flex.Forbidden, "the site has not consented to full_asset_schedule_control")
		}
		now := flex.PeriodAt(tx.Now()).Start()
		steps = modeSpans(&b.Plan, flex.Span{From: now, To: now.AddDate(0, 0, 3)})
		if changed = b.Plan.ChangedAt; changed.IsZero() {
			changed = tx.Now()
		}
		return nil
	})
	return steps, changed, err
}

// DispatchPlan returns what a battery is told to do today in London, and was. Any other
// asset is flex.NotFound. It is empty outside production, for a battery without an asset
// model, for one whose site has not consented to full schedule control or to the wholesale
// market, and before the first plan: the interface tells these apart by nothing.
func (d *Desk) DispatchPlan(ctx context.Context, org flex.OrgID, asset flex.AssetID) (periods []ModeSpan, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		b, err := tx.Battery(ctx, asset)
		if err != nil {
			return err
		}
		wholesale := b.Consented || b.Model != nil && b.Model.CoP11
		if d.DB.Environment != flex.Production || b.Asset.Model == "" || !b.Controlled || !wholesale {
			return nil
		}
		periods = modeSpans(&b.Plan, flex.DayAt(tx.Now()).Span())
		return nil
	})
	return periods, err
}

// modeSpans joins the half-hours of a plan within a span that say the same.
func modeSpans(p *store.BatteryPlan, within flex.Span) (spans []ModeSpan) {
	for at := flex.PeriodAt(within.From); at.Start().Before(within.To); at = at.Add(1) {
		m, planned := modeAt(p, at)
		if !planned {
			continue
		}
		if n := len(spans); n > 0 && spans[n-1].Mode == m && spans[n-1].To.Equal(at.Start()) {
			spans[n-1].To = at.End()
		} else {
			spans = append(spans, ModeSpan{at.Span(), m})
		}
	}
	return spans
}
