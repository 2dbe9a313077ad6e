package reward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// SettleEvents finds the flex events of sessions and pauses that are over, and settles those
// that are due.
func (s *Service) SettleEvents(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(
		ctx,
		s.DB.OrgsBy((*store.All).OrgsToSettle),
		s.SettleEventsOf,
	)
}

// SettleEventsOf is SettleEvents for one organisation. Items that cannot be searched or settled
// are put off and do not delay others.
func (s *Service) SettleEventsOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	detected, detectErr := s.detect(ctx, org)
	if worker.EndsRun(ctx, detectErr) {
		return detected, detectErr
	}

	report, err := eventQueue.Run(ctx, s.DB, org)
	report.Count += detected.Count
	report.More = report.More || detected.More

	return report, errors.Join(detectErr, err)
}

// detectSession compares the schedules that the session's client followed with the plans without
// the market. The user's own changes apply to both. A plan without the market assumes the energy
// that earlier such plans would have charged. A schedule that failed at the charger counts from
// when it was reported as followed.
func detectSession(
	ctx context.Context,
	tx *store.Tx,
	r store.SessionSettlement,
) error {
	schedules, err := tx.SchedulesOf(ctx, r.SessionID)
	if err != nil {
		return err
	}

	followedSince, err := tx.FollowedSince(ctx, schedules)
	if err != nil {
		return err
	}

	plans, err := plansWithout(ctx, tx, &r, schedules)
	if err != nil {
		return fmt.Errorf(
			"plan session %s without the market: %w",
			r.SessionID,
			err,
		)
	}

	s, counterfactual := steeringAndCounterfactual(r, plans, followedSince)
	e := store.FlexEvent{
		SiteID: r.SiteID, AssetID: r.AssetID, SessionID: r.SessionID,
		Stay: r.Span, StayPlan: settle.Planned(counterfactual, s.Power, r.Span),
	}

	err = addEvents(ctx, tx, e, settle.Detect(s), func(p flex.Period) flex.WattHours {
		return settle.Drawn(counterfactual, s.Power, p.Span())
	})
	if err != nil {
		return fmt.Errorf(
			"keep the flex events of session %s: %w",
			r.SessionID,
			err,
		)
	}

	return tx.Detected(ctx, r.SessionID)
}

// steeringAndCounterfactual returns the schedules that the session's client followed together with
// the plans without the market, and the steps of the plans for the nominated baseline.
func steeringAndCounterfactual(
	r store.SessionSettlement,
	plans *replannedSession,
	followedSince map[flex.EventID]time.Time,
) (settle.Steering, []flex.Step) {
	schedules := plans.schedules
	s := settle.Steering{
		Within:         ownTime(&r),
		Dispatched:     followedSchedules(schedules, followedSince),
		Counterfactual: plans.without,
		Least:          settle.LeastFlexed,
	}

	for i := range schedules {
		schedule := &schedules[i]
		s.Power = schedule.From.Power
		chargeNow := schedule.From.ChargeNow.Meet(validity(schedules, i, r.To))
		if !chargeNow.Empty() {
			s.Overrides = append(s.Overrides, chargeNow)
		}
	}

	return s, settle.InForce(plans.nominated, r.To)
}

// followedSchedules returns the followed schedules of a session, each with the time from which it
// was followed. A schedule that was reported as followed only after a newer one is ignored. After
// the deadline of the need, a schedule only protects the main fuse; the plan without the market
// has no steps there either.
func followedSchedules(
	schedules []store.Schedule,
	followedSince map[flex.EventID]time.Time,
) []settle.Dispatch {
	var newer time.Time
	var followed []settle.Dispatch

	for i := range slices.Backward(schedules) {
		at, wasFollowed := followedSince[schedules[i].EventID]
		at = at.Truncate(time.Second)
		replaced := !newer.IsZero() && at.After(newer)
		if !wasFollowed || replaced {
			continue
		}

		newer = at
		followed = append(followed, settle.Dispatch{At: at, Steps: schedules[i].Charging()})
	}

	slices.Reverse(followed)

	return followed
}

// validity returns the span in which the i-th schedule of a session was the newest.
func validity(
	schedules []store.Schedule,
	i int,
	end time.Time,
) flex.Span {
	if i+1 < len(schedules) {
		end = schedules[i+1].MadeAt
	}
	return flex.Span{From: schedules[i].MadeAt, To: end}
}

// ownTime returns the part of a session whose half-hours belong to it. A half-hour belongs to the
// first session in it.
func ownTime(r *store.SessionSettlement) flex.Span {
	own := r.Span
	if r.Before.To.IsZero() {
		return own
	}

	if _, last := halfHours(r.Before); last.End().After(own.From) {
		own.From = last.End()
	}

	return own
}

// detectPause adds the event of a pause that was inserted into a client's own schedule. If its
// asset was removed before the pause ended, the event is credited nothing. Its part of the
// deviation is not credited to others either.
func detectPause(
	ctx context.Context,
	tx *store.Tx,
	p store.Pause,
) error {
	if !p.GoneAt.IsZero() && !p.GoneAt.After(p.From) {
		return nil
	}

	power := p.Power.OrDefault()
	fullPower := []flex.Step{{Span: p.Span, Limit: flex.FullLimit(power)}}
	stay := assumedStay(p)
	found := settle.Detect(settle.Steering{
		Within: p.Span, Power: power, Least: settle.LeastFlexed,
		Dispatched:     []settle.Dispatch{{At: p.MadeAt, Steps: []flex.Step{{Span: p.Span}}}},
		Counterfactual: []settle.Dispatch{{At: p.MadeAt, Steps: fullPower}},
	})

	e := store.FlexEvent{
		SiteID:   p.SiteID,
		AssetID:  p.AssetID,
		Stay:     stay,
		StayPlan: settle.Planned(fullPower, power, stay),
	}

	err := addEvents(ctx, tx, e, found, func(p flex.Period) flex.WattHours {
		return settle.Drawn(fullPower, power, p.Span())
	})
	if err != nil {
		return fmt.Errorf(
			"keep the flex event of a pause of asset %s: %w",
			p.AssetID,
			err,
		)
	}

	return nil
}

// assumedStayAfterPause is how long after its pause a car is assumed to stay plugged in, if the end
// of the client's schedule is not recorded.
const assumedStayAfterPause = 12 * time.Hour

// PauseStayMax is the longest time that a car is assumed to stay plugged in after its pause. It is
// needed because a schedule may end in thousands of years, and the plan of each half-hour is
// stored.
const PauseStayMax = 7 * 24 * time.Hour

// assumedStay returns the span in which the paused car is assumed to be plugged in.
func assumedStay(p store.Pause) flex.Span {
	end := p.To.Add(assumedStayAfterPause)
	if !p.Until.IsZero() {
		end = flex.Earlier(p.Until, p.To.Add(PauseStayMax))
	}

	return flex.Span{From: p.From, To: end}
}

// detectDispatch adds the events of an asset's part in a dispatch that its client followed. In the
// half-hours of that part all dispatches of the asset count; where two overlap, the newer one
// replaces the older one.
func detectDispatch(
	ctx context.Context,
	tx *store.Tx,
	p store.EndedDispatch,
) error {
	if p.TakenAt.IsZero() || p.SiteID.IsZero() {
		return tx.DispatchDetected(ctx, p.ID, p.AssetID)
	}

	overlapping, err := tx.DispatchesBeside(ctx, p)
	if err != nil {
		return err
	}

	var orders settle.Orders
	for _, d := range overlapping {
		if !d.TakenAt.IsZero() {
			orders = append(orders, settle.Order{
				Span:       d.Span,
				Power:      d.Power,
				Without:    d.Without,
				AcceptedAt: d.TakenAt,
				Rated:      d.Rated.OrDefault(),
			})
		}
	}

	err = addEvents(
		ctx,
		tx,
		store.FlexEvent{SiteID: p.SiteID, AssetID: p.AssetID},
		orders.Detect(p.Span, settle.LeastFlexed),
		orders.Nominated,
	)
	if err != nil {
		return fmt.Errorf(
			"keep the flex events of dispatch %s of asset %s: %w",
			p.ID,
			p.AssetID,
			err,
		)
	}

	return tx.DispatchDetected(ctx, p.ID, p.AssetID)
}

// addEvents stores the detected events of an asset, except for half-hours that have an event
// already, since a half-hour is settled once. common has the fields that all events share.
// nominatedEnergy returns the energy of a half-hour without the market.
func addEvents(
	ctx context.Context,
	tx *store.Tx,
	common store.FlexEvent,
	found []settle.Event,
	nominatedEnergy func(flex.Period) flex.WattHours,
) error {
	found, err := withoutStoredPeriods(ctx, tx, common.AssetID, found)
	if err != nil || len(found) == 0 {
		return err
	}

	// The calls of all events are read in one query.
	calls, err := tx.PaidCalls(ctx, common.AssetID, flex.Span{
		From: found[0].Span().From,
		To:   found[len(found)-1].Span().To,
	})
	if err != nil {
		return err
	}

	for _, f := range found {
		e := common
		e.Day, e.Span = f.Day, f.Span()
		e.First, e.Last = f.First, f.Last
		e.Meant = f.Meant
		e.Instructed = instructedParts(f, calls)

		for n := f.First; n <= f.Last; n++ {
			e.Nominated = append(e.Nominated, nominatedEnergy(f.Day.Period(n)))
		}

		if err := addEvent(ctx, tx, &e); err != nil {
			return err
		}
	}

	return nil
}

// withoutStoredPeriods returns the parts of the events in half-hours for which the asset has no
// stored event.
func withoutStoredPeriods(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	found []settle.Event,
) ([]settle.Event, error) {
	if len(found) == 0 {
		return nil, nil
	}

	stored, err := tx.EventSpans(ctx, asset, flex.Span{
		From: found[0].Span().From,
		To:   found[len(found)-1].Span().To,
	})
	if err != nil || len(stored) == 0 {
		return found, err
	}

	var remaining []settle.Event
	for _, e := range found {
		remaining = append(remaining, e.OutsideSpans(stored)...)
	}

	return remaining, nil
}

// instructedParts applies grid instructions to an event. Each half-hour gets the parts in which an
// instruction had the direction of the event. An instruction for the opposite direction pays
// nothing, so that the market's price counts.
func instructedParts(
	f settle.Event,
	calls []store.PaidCall,
) []settle.Instructed {
	var parts []settle.Instructed
	for n := f.First; n <= f.Last; n++ {
		for _, c := range calls {
			within := c.Meet(f.Day.Period(n).Span())
			seconds := int(within.To.Sub(within.From) / time.Second)
			if seconds <= 0 || c.Down != f.Down() {
				continue
			}

			parts = append(parts, settle.Instructed{
				Period:      n,
				Seconds:     seconds,
				Price:       c.Price,
				Down:        c.Down,
				Instruction: c.Instruction,
				Baseline:    c.Baseline,
			})
		}
	}

	return parts
}

// addEvent stores an event with a first estimate of its revenue, which assumes that exactly the
// intended energy was moved, at the prices known now.
func addEvent(
	ctx context.Context,
	tx *store.Tx,
	e *store.FlexEvent,
) error {
	prices, err := tx.SettlementPrices(ctx, e.Span, tx.Now())
	if err != nil {
		return err
	}

	var exact settle.PicoPounds
	for i, p := range prices {
		price, known := settle.InstructedPrice(
			p.Price,
			p.Known,
			e.First+i,
			e.Instructed,
		)
		if known {
			exact += settle.Revenue(e.Meant[i], price)
		}
	}

	e.Estimated = exact.MicroPounds(settle.HalfAway)
	_, err = tx.AddFlexEvent(ctx, e)

	return err
}

// FlexEvents returns the site's flex events, oldest first, and the sources of their prices.
func (s *Service) FlexEvents(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
) ([]store.FlexEvent, map[flex.FlexEventID][]EventPrice, error) {
	var events []store.FlexEvent
	var prices map[flex.FlexEventID][]EventPrice
	var err error
	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
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

// finalAt returns when an event's settlement becomes final: at the end of the month after its own.
func finalAt(d flex.Day) time.Time {
	return flex.Day{
		Year:  d.Year,
		Month: d.Month + 2,
		Dom:   1,
	}.Start()
}
