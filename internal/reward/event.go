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

// SettleEventsOf is SettleEvents for one organisation. Whatever cannot be searched or settled
// is put off and delays nothing else.
func (s *Service) SettleEventsOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	found, unfound := s.detect(ctx, org)
	if worker.EndsRun(ctx, unfound) {
		return found, unfound
	}

	settled, err := eventQueue.Run(ctx, s.DB, org)
	settled.Did += found.Did
	settled.More = settled.More || found.More

	return settled, errors.Join(unfound, err)
}

// detectSession compares the schedules that the session's client followed with what would have
// been planned without the market. The user's own changes count in both. For the plan without
// the market, the energy charged so far is that which such plans would have charged. A
// schedule that failed at the charger counts from when it was reported as followed.
func detectSession(
	ctx context.Context,
	tx *store.Tx,
	r store.SessionSettlement,
) error {
	schedules, err := tx.SchedulesOf(ctx, r.SessionID)
	if err != nil {
		return err
	}

	since, err := tx.FollowedSince(ctx, schedules)
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

	s, would := steeringOf(r, plans, since)
	e := store.FlexEvent{
		SiteID: r.SiteID, AssetID: r.AssetID, SessionID: r.SessionID,
		Stay: r.Span, StayPlan: settle.Planned(would, s.Power, r.Span),
	}

	err = addEvents(ctx, tx, e, settle.Detect(s), func(p flex.Period) flex.WattHours {
		return settle.Drawn(would, s.Power, p.Span())
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

// steeringOf returns the schedules that the session's client followed beside those that would
// have been planned without the market, and the power that the asset would have had under
// these.
func steeringOf(
	r store.SessionSettlement,
	plans *plannedStay,
	since map[flex.EventID]time.Time,
) (settle.Steering, []flex.Step) {
	schedules := plans.schedules
	s := settle.Steering{
		Within:         ownTime(&r),
		Dispatched:     followedOf(schedules, since),
		Counterfactual: plans.without,
		Least:          settle.LeastFlexed,
	}

	for i := range schedules {
		made := &schedules[i]
		s.Power = made.From.Power
		now := made.From.ChargeNow.Meet(validity(schedules, i, r.To))
		if !now.Empty() {
			s.Overrides = append(s.Overrides, now)
		}
	}

	return s, settle.InForce(plans.nominated, r.To)
}

// followedOf returns the schedules of a session that were followed, each with the time from
// which it was. A schedule that was reported as followed only after a newer one was followed
// counts nowhere. After the time of the need, a schedule serves the main fuse alone; there the
// plan without the market has no steps either.
func followedOf(
	schedules []store.Schedule,
	since map[flex.EventID]time.Time,
) []settle.Dispatch {
	var newer time.Time
	var followed []settle.Dispatch

	for i := range slices.Backward(schedules) {
		at, known := since[schedules[i].EventID]
		at = at.Truncate(time.Second)
		replaced := !newer.IsZero() && at.After(newer)
		if !known || replaced {
			continue
		}

		newer = at
		followed = append(followed, settle.Dispatch{At: at, Steps: schedules[i].Charging()})
	}

	slices.Reverse(followed)

	return followed
}

// validity is the time in which the i-th schedule of a session was the newest.
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

// ownTime is the part of a session whose half-hours belong to it: a half-hour belongs to the
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

// detectPause adds the event of a pause that was put into a client's own schedule. If its
// asset was removed before the pause ended, the event is credited nothing, but its part of the
// deviation is not credited to others.
func detectPause(
	ctx context.Context,
	tx *store.Tx,
	p store.Pause,
) error {
	if !p.GoneAt.IsZero() && !p.GoneAt.After(p.From) {
		return nil
	}

	power := p.Power.OrDefault()
	free := []flex.Step{{Span: p.Span, Limit: flex.FullLimit(power)}}
	stay := pausedStay(p)
	found := settle.Detect(settle.Steering{
		Within: p.Span, Power: power, Least: settle.LeastFlexed,
		Dispatched:     []settle.Dispatch{{At: p.MadeAt, Steps: []flex.Step{{Span: p.Span}}}},
		Counterfactual: []settle.Dispatch{{At: p.MadeAt, Steps: free}},
	})

	e := store.FlexEvent{
		SiteID:   p.SiteID,
		AssetID:  p.AssetID,
		Stay:     stay,
		StayPlan: settle.Planned(free, power, stay),
	}

	err := addEvents(ctx, tx, e, found, func(p flex.Period) flex.WattHours {
		return settle.Drawn(free, power, p.Span())
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

// pauseStay is how long after its pause a car is assumed to stay plugged in, where the end of the
// client's schedule was not noted.
const pauseStay = 12 * time.Hour

// PauseStayMost is the longest that a car is assumed to stay plugged in after its pause. A
// schedule may end in thousands of years, and the plan of each half-hour is stored.
const PauseStayMost = 7 * 24 * time.Hour

// pausedStay is the time in which the paused car is assumed to be plugged in.
func pausedStay(p store.Pause) flex.Span {
	end := p.To.Add(pauseStay)
	if !p.Until.IsZero() {
		end = flex.Earlier(p.Until, p.To.Add(PauseStayMost))
	}

	return flex.Span{From: p.From, To: end}
}

// detectDispatch adds the events of an asset's part in a dispatch that its client followed. In
// the half-hours of that part all dispatches of the asset count; a newer one replaces an older
// one where both hold.
func detectDispatch(
	ctx context.Context,
	tx *store.Tx,
	p store.EndedDispatch,
) error {
	if p.TakenAt.IsZero() || p.SiteID.IsZero() {
		return tx.DispatchDetected(ctx, p.ID, p.AssetID)
	}

	beside, err := tx.DispatchesBeside(ctx, p)
	if err != nil {
		return err
	}

	var orders settle.Orders
	for _, d := range beside {
		if !d.TakenAt.IsZero() {
			orders = append(orders, settle.Order{
				Span:    d.Span,
				Power:   d.Power,
				Without: d.Without,
				TakenAt: d.TakenAt,
				Rated:   d.Rated.OrDefault(),
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

// addEvents stores the events that were found of an asset, in the half-hours in which it has
// none yet, since a half-hour is settled once. The argument of has the fields that they have
// in common, nominated the energy of a half-hour without the market.
func addEvents(
	ctx context.Context,
	tx *store.Tx,
	of store.FlexEvent,
	found []settle.Event,
	nominated func(flex.Period) flex.WattHours,
) error {
	found, err := notYetFound(ctx, tx, of.AssetID, found)
	if err != nil || len(found) == 0 {
		return err
	}

	// All calls in the time of the events are read at once.
	calls, err := tx.PaidCalls(ctx, of.AssetID, flex.Span{
		From: found[0].Span().From,
		To:   found[len(found)-1].Span().To,
	})
	if err != nil {
		return err
	}

	for _, f := range found {
		e := of
		e.Day, e.Span = f.Day, f.Span()
		e.First, e.Last = f.First, f.Last
		e.Meant = f.Meant
		e.Instructed = instructed(f, calls)

		for n := f.First; n <= f.Last; n++ {
			e.Nominated = append(e.Nominated, nominated(f.Day.Period(n)))
		}

		if err := addEvent(ctx, tx, &e); err != nil {
			return err
		}
	}

	return nil
}

// notYetFound returns the part of a found event that is in half-hours in which no event of the
// asset is stored.
func notYetFound(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	found []settle.Event,
) ([]settle.Event, error) {
	if len(found) == 0 {
		return nil, nil
	}

	taken, err := tx.EventSpans(ctx, asset, flex.Span{
		From: found[0].Span().From,
		To:   found[len(found)-1].Span().To,
	})
	if err != nil || len(taken) == 0 {
		return found, err
	}

	var left []settle.Event
	for _, e := range found {
		left = append(left, e.Without(taken)...)
	}

	return left, nil
}

// instructed applies grid instructions to an event: each half-hour gets the parts in which an
// instruction asked for the direction of the event. An instruction for the opposite direction
// pays nothing; the market's price counts.
func instructed(
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

// addEvent stores an event with a first estimate of its revenue: as if exactly the intended
// energy had been moved, at the prices known now.
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

// FlexEvents returns the site's flex events, oldest first, and where their prices are from.
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

// finalAt is when an event's settlement becomes final: when the month after its own is over.
func finalAt(d flex.Day) time.Time {
	return flex.Day{
		Year:  d.Year,
		Month: d.Month + 2,
		Dom:   1,
	}.Start()
}
