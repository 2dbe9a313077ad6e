package reward

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
	"flexd/internal/tariff"
	"flexd/internal/worker"
)

// SettleEvents finds the flex events of sessions and pauses that are over, and settles those
// that are due.
func (d *Service) SettleEvents(ctx context.Context) (worker.Report, error) {
	return d.settleOrgs(ctx, (*store.All).OrgsToSettle, d.settleEventsOf)
}

// SettleEventsOf is SettleEvents for one organisation.
func (d *Service) SettleEventsOf(ctx context.Context, org flex.OrgID) (report worker.Report, err error) {
	err = d.settleEventsOf(ctx, org, &report)
	return report, err
}

func (d *Service) settleEventsOf(ctx context.Context, org flex.OrgID, report *worker.Report) error {
	if err := d.detect(ctx, org, report); err != nil {
		return err
	}
	return settleDue(ctx, d.DB, org, eventQueue, report)
}

// detect looks for the flex events of what is over.
func (d *Service) detect(ctx context.Context, org flex.OrgID, report *worker.Report) error {
	did := 0
	err := d.DB.Write(ctx, org, func(tx *store.Tx) error {
		did = 0

		over, err := tx.DueDetections(ctx, sessionsMax)
		if err != nil {
			return err
		}

		for _, r := range over {
			if err := detectSession(ctx, tx, r); err != nil {
				return fmt.Errorf("find the flex events of session %s: %w", r.SessionID, err)
			}
		}

		pauses, err := tx.TakePauses(ctx, sessionsMax)
		if err != nil {
			return err
		}

		for _, p := range pauses {
			if err := detectPause(ctx, tx, p); err != nil {
				return fmt.Errorf("find the flex event of a pause of asset %s: %w", p.AssetID, err)
			}
		}

		dispatches, err := tx.DueDispatches(ctx, sessionsMax)
		if err != nil {
			return err
		}

		for _, p := range dispatches {
			if err := detectDispatch(ctx, tx, p); err != nil {
				return fmt.Errorf("find the flex events of dispatch %s of asset %s: %w", p.ID, p.AssetID, err)
			}
		}

		did = len(over) + len(pauses) + len(dispatches)
		report.More = report.More || max(len(over), len(pauses), len(dispatches)) == sessionsMax
		return nil
	})

	report.Did += did
	return err
}

// detectSession compares what the session's client took over with what would have been
// planned without the market. The user's own changes count in both; what was charged until
// then counts as it would have been without the market.
func detectSession(ctx context.Context, tx *store.Tx, r store.SessionSettlement) error {
	schedules, err := tx.SchedulesOf(ctx, r.SessionID)
	if err != nil {
		return err
	}

	taken, err := tx.TakenUp(ctx, schedules)
	if err != nil {
		return err
	}

	s := settle.Steering{Within: r.Span, Least: settle.LeastFlexed}
	if !r.Before.To.IsZero() { // a half-hour belongs to the first session in it
		if _, taken := halfHours(r.Before); taken.End().After(s.Within.From) {
			s.Within.From = taken.End()
		}
	}

	var nominated []settle.Dispatch
	for i, made := range schedules {
		s.Power = made.From.Power
		if after, ok := taken[made.EventID]; ok {
			s.Dispatched = append(s.Dispatched, settle.Dispatch{At: made.MadeAt.Add(after).Truncate(time.Second), Steps: made.Steps})
		}

		until := r.To
		if i+1 < len(schedules) {
			until = schedules[i+1].MadeAt
		}

		if now := made.From.ChargeNow.Meet(flex.Span{From: made.MadeAt, To: until}); !now.Empty() {
			s.Overrides = append(s.Overrides, now)
		}

		if i > 0 && (made.Cause == store.CauseMarket || made.Cause == store.CauseInputs || made.Cause == store.CauseCaps) {
			continue
		}

		charged := settle.Drawn(settle.InForce(nominated, made.MadeAt), s.Power, flex.Span{From: made.From.CountFrom, To: made.MadeAt})
		problem := blind(&made, charged)
		s.Counterfactual = append(s.Counterfactual, settle.Dispatch{At: made.MadeAt, Steps: charge.Solve(problem).Steps})
		nominated = append(nominated, settle.Dispatch{At: made.MadeAt, Steps: charge.Counterfactual(problem).Steps})
	}

	would := settle.InForce(nominated, r.To)
	plan := settle.Planned(would, s.Power, r.Span)

	for _, found := range settle.Detect(s) {
		e := eventOf(found)
		e.SiteID, e.AssetID, e.SessionID = r.SiteID, r.AssetID, r.SessionID
		e.Stay, e.StayPlan = r.Span, plan

		for n := found.First; n <= found.Last; n++ {
			e.Nominated = append(e.Nominated, settle.Drawn(would, s.Power, found.Day.Period(n).Span()))
		}

		if err := addEvent(ctx, tx, &e); err != nil {
			return err
		}
	}

	return tx.Detected(ctx, r.SessionID)
}

// blind is the planning problem of a schedule without the market's prices, when so much had
// been charged.
func blind(s *store.Schedule, charged flex.WattHours) charge.Problem {
	e := &s.From
	p := charge.Problem{
		From: s.Steps[0].From, ReadyBy: e.ReadyBy, Need: max(0, e.Need-charged), Power: e.Power,
		MayChargePeak: e.MayChargePeak, Mode: e.Mode, ChargeNow: e.ChargeNow,
	}

	w, err := tariff.Parse(e.Tariff.OffPeak, e.Tariff.Zone, e.Tariff.Type)
	p.AllOffPeak = err != nil
	if !p.AllOffPeak {
		p.OffPeak = w.Spans(flex.Span{From: p.From, To: s.End()})
	}

	return p
}

// detectPause makes the event of a pause that was put into a client's own schedule.
func detectPause(ctx context.Context, tx *store.Tx, p store.Pause) error {
	a, err := tx.Asset(ctx, p.AssetID)
	if flex.KindOf(err) == flex.NotFound {
		return nil // taken away since
	}
	if err != nil {
		return err
	}

	power := DefaultPower
	if a.Power != nil && *a.Power > 0 {
		power = *a.Power
	}

	if p.Until.IsZero() {
		p.Until = p.To.Add(pauseStay)
	}

	stay := flex.Span{From: p.From, To: p.Until}

	free := []flex.Step{{Span: p.Span, Limit: flex.NoLimit}}
	for _, found := range settle.Detect(settle.Steering{
		Within: p.Span, Power: power, Least: settle.LeastFlexed,
		Dispatched:     []settle.Dispatch{{At: p.MadeAt, Steps: []flex.Step{{Span: p.Span}}}},
		Counterfactual: []settle.Dispatch{{At: p.MadeAt, Steps: free}},
	}) {
		e := eventOf(found)
		e.SiteID, e.AssetID = p.SiteID, p.AssetID
		e.Stay, e.StayPlan = stay, settle.Planned(free, power, stay)

		for n := found.First; n <= found.Last; n++ {
			e.Nominated = append(e.Nominated, settle.Drawn(free, power, found.Day.Period(n).Span()))
		}

		if err := addEvent(ctx, tx, &e); err != nil {
			return err
		}
	}

	return nil
}

// pauseStay is how long after a pause its car is taken to be plugged in, where the end of the
// client's schedule was not noted.
const pauseStay = 12 * time.Hour

// detectDispatch makes the events of an asset's part in a dispatch that its client took over.
func detectDispatch(ctx context.Context, tx *store.Tx, p store.EndedDispatch) error {
	if !p.TakenAt.IsZero() && !p.SiteID.IsZero() {
		o := settle.Order{Span: p.Span, Power: p.Power, Without: p.Without, TakenAt: p.TakenAt, Rated: p.Rated, Least: settle.LeastFlexed}
		if o.Rated <= 0 {
			o.Rated = DefaultPower
		}

		for _, found := range o.Detect() {
			e := eventOf(found)
			e.SiteID, e.AssetID = p.SiteID, p.AssetID

			for n := found.First; n <= found.Last; n++ {
				e.Nominated = append(e.Nominated, o.Nominated(found.Day.Period(n)))
			}

			if err := addEvent(ctx, tx, &e); err != nil {
				return err
			}
		}
	}

	return tx.DispatchDetected(ctx, p.ID, p.AssetID)
}

// DefaultPower is the power of a charger whose own is not known.
const DefaultPower flex.Watts = 7400

func eventOf(found settle.Event) store.FlexEvent {
	return store.FlexEvent{Day: found.Day, First: found.First, Last: found.Last, Span: found.Span(), Meant: found.Meant}
}

// addEvent keeps an event with a first estimate of its revenue: as if exactly what was meant
// had been moved, at the prices known now.
func addEvent(ctx context.Context, tx *store.Tx, e *store.FlexEvent) error {
	prices, err := tx.SettlementPrices(ctx, e.Span, tx.Now())
	if err != nil {
		return err
	}

	var exact settle.PicoPounds
	for i, p := range prices {
		if p.Known {
			exact += settle.Revenue(e.Meant[i], p.Price)
		}
	}

	e.Estimated = exact.MicroPounds(settle.HalfAway)
	_, err = tx.AddFlexEvent(ctx, e)
	return err
}

// FlexEvents returns the site's flex events, oldest first, and where their prices are from.
func (d *Service) FlexEvents(ctx context.Context, org flex.OrgID, site flex.SiteID) (events []store.FlexEvent, prices map[flex.FlexEventID][]EventPrice, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Site(ctx, site); err != nil {
			return err
		}
		events, err = tx.FlexEvents(ctx, site)
		if err != nil {
			return err
		}

		prices, err = pricesOf(ctx, tx, events)
		return err
	})
	return events, prices, err
}

// finalAt is when an event's settlement becomes final: when the month after its own is over.
func finalAt(d flex.Day) time.Time {
	return flex.Day{Year: d.Year, Month: d.Month + 2, Dom: 1}.Start()
}
