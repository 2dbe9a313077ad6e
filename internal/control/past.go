package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/tariff"
)

// Limits of what is read about an asset's past: days, events and pushes.
const (
	PastDaysMax = 62
	pastEvents  = 2000
	pastPushes  = 2000
)

// PastQuery is a query for what happened to an asset, and why.
type PastQuery struct {
	Org   flex.OrgID // the organisation of the asset; zero for any
	Asset flex.AssetID

	// Show is the requested time: day, week, month or dates; anything else is that of the last
	// session.
	Show     string
	From, To flex.Day // first and last day, if Show is dates

	// whether to read the prices that each schedule of the last session was made with
	Curves bool
	// whether a schedule of the last session is to be explained
	Explain bool
	// the schedule to explain; the newest if none has this id
	Chosen flex.EventID

	Suppose *Question        // a what-if question about an asset that charges; nil for none
	Battery *BatteryQuestion // a what-if question about a battery; nil for none
}

// Past is what is known of an asset in a span of time, read at one instant.
type Past struct {
	Org      flex.Org
	Now      time.Time
	Asset    flex.Asset
	Site     flex.Site
	Charging store.PlanningState
	Accepted int64 // the newest generation that the client has accepted

	Span      flex.Span
	Sessions  []store.Session
	Schedules []PastSchedule
	Events    []PastEvent
	Callbacks []flex.Callback
	Prices    []flex.PricedPeriod // as they are known now
	// prices as they were known, by the Curve of a schedule; nil if not requested
	Curves map[string][]flex.PricedPeriod
	// by the present tariff; nil if none is known
	OffPeak  []flex.Span
	Readings []flex.Reading // of its power or energy, and of its level

	Chosen int // index in Generations of the schedule that Why explains
	// nil without any schedule, and if it was not requested
	Why *Explanation
	// the past deadlines in the span of an asset that charges, in order; only with Explain
	Deadlines []Deadline

	Rate    *AssetRate  // of an asset that charges, with Explain
	Compare *Comparison // the answer to Suppose

	Battery     *BatteryWhy // the plan of a battery
	BatteryAs   *BatteryWhy // the answer to the question of a battery
	BatteryNote string      // why there is no plan of a battery
	Tank        string      // what the plan of a heater does, or why there is none
	Known       *AssetHeat  // the learned model of a tank or a heat pump

	// of a tank or a heat pump: its power by plan, the plan's number, and when it was made
	Heat     []Draw
	HeatPlan int64
	HeatMade time.Time

	Dispatches []PastDispatch // the dispatches of a battery in the span
	Sent       []PastPush     // the pushes in the span to an asset that is not plugged in
	Level      Level
	Freed      bool // control ended while a car was plugged in, and no plug-out was reported
}

// PastEvent is an event that a client sent about an asset.
type PastEvent struct{ store.PastEvent }

// PastDispatch is a dispatch of a battery.
type PastDispatch struct {
	IssuedAt time.Time
	flex.Span
	Power       flex.Watts // positive draws from the grid
	NotFollowed bool       // it was refused, reported as not followed, or did not reach the client
}

// PastPush is a push to an asset that is not plugged in, with its result.
type PastPush struct {
	ID         flex.EventID
	OfDispatch bool  // else of a schedule
	Generation int64 // of the schedule
	State      flex.DeliveryState
	At         time.Time // of the latest attempt, or when it was queued
}

// PastSchedule is a schedule with the result of its push.
type PastSchedule struct {
	store.Schedule
	Push *store.Delivery // nil if none is known
}

// Past reads what is requested about an asset in one transaction. With a zero Org it may be
// any organisation's.
func (s *Service) Past(ctx context.Context, q PastQuery) (*Past, error) {
	var p *Past
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		tx, err := all.ForAsset(ctx, q.Org, q.Asset)
		if err != nil {
			return err
		}

		p = &Past{Now: tx.Now()}
		if err := p.readAsset(ctx, tx, q.Asset); err != nil {
			return err
		}

		p.Span = q.span(p.Now, &p.Charging)
		if err := p.readSpan(ctx, tx); err != nil {
			return err
		}
		if err := p.readSchedules(ctx, tx); err != nil {
			return err
		}

		return s.explain(ctx, tx, p, q)
	})

	return p, err
}

// Between requests the days from one to another in London, or one day if the other is nil. It
// returns Malformed for days in the wrong order or too many.
func (q *PastQuery) Between(from, to *flex.Day) error {
	if from == nil && to == nil {
		return nil
	}

	q.Show = "dates"
	q.From, q.To = *cmp.Or(from, to), *cmp.Or(to, from)
	// Days are counted, not hours: one of them may have 25.
	latest := q.From.Add(PastDaysMax)
	if q.To.Start().Before(q.From.Start()) ||
		q.To.Start().After(latest.Start()) {
		return flex.Fail(
			flex.Malformed,
			"the last day comes no earlier than the first, and at most %d days after it",
			PastDaysMax,
		)
	}

	return nil
}

// span is the requested time. That of the last session is widened to show what came before and
// after.
func (q *PastQuery) span(now time.Time, c *store.PlanningState) flex.Span {
	today := flex.DayAt(now)
	switch q.Show {
	case "dates":
		return flex.Span{
			From: q.From.Start(),
			To:   q.To.Add(1).Start(),
		}

	case "day":
		return flex.Span{
			From: today.Start(),
			To:   today.Add(2).Start(),
		}

	case "week":
		return flex.Span{
			From: today.Add(-6).Start(),
			To:   today.Add(2).Start(),
		}

	case "month":
		return flex.Span{
			From: today.Add(-30).Start(),
			To:   today.Add(2).Start(),
		}
	}

	s := c.Session
	if s.Number == 0 {
		return flex.Span{
			From: today.Start(),
			To:   today.Add(2).Start(),
		}
	}

	end := s.PluggedOutAt
	if end.IsZero() {
		end = slices.MaxFunc(
			[]time.Time{now, s.ReadyBy, c.ChargeNow.To},
			time.Time.Compare,
		)
	}

	return widened(s.PluggedInAt, end)
}

// widened widens a time to show what came before and after.
func widened(from, to time.Time) flex.Span {
	first, last := flex.PeriodAt(from.Add(-time.Hour)), flex.PeriodAt(to.Add(90*time.Minute))
	if last.Sub(first) > PastDaysMax*48 {
		first = last.Add(-PastDaysMax * 48)
	}

	return flex.Span{From: first.Start(), To: last.Start()}
}

// readAsset reads the present state of the asset.
func (p *Past) readAsset(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) error {
	var err error
	p.Org, err = tx.OrgRecord(ctx)
	if err != nil {
		return err
	}

	p.Asset, err = tx.Asset(ctx, id)
	if err != nil {
		return err
	}

	p.Site, err = tx.Site(ctx, p.Asset.SiteID)
	if err != nil {
		return err
	}

	p.Charging, err = tx.PlanningState(ctx, id)
	if err != nil {
		return err
	}

	p.Accepted, err = tx.Accepted(ctx, id)
	if err != nil || p.Charging.Open() {
		return err
	}

	p.Freed, err = endedByControl(ctx, tx, id, p.Charging.Session)

	return err
}

// readSpan reads the sessions, events, prices and readings of the span.
func (p *Past) readSpan(ctx context.Context, tx *store.Tx) error {
	var err error
	p.Sessions, err = tx.SessionsWithin(ctx, p.Asset.ID, p.Span)
	if err != nil {
		return err
	}

	events, err := tx.PastEvents(ctx, p.Asset.ID, p.Span, pastEvents)
	if err != nil {
		return err
	}

	for _, e := range events {
		p.Events = append(p.Events, PastEvent{e})
	}

	p.Prices, err = tx.Prices(ctx, p.Span)
	if err != nil {
		return err
	}

	p.Readings, err = tx.Readings(ctx, store.ReadingQuery{
		Assets: []flex.AssetID{p.Asset.ID},
		Labels: slices.Concat(powerLabels, levelLabels(p.Asset.Type)),
		Days:   daysOf(p.Span),
	})
	if err != nil {
		return err
	}

	slices.SortFunc(p.Readings, func(a, b flex.Reading) int {
		return a.From.Compare(b.From)
	})

	return nil
}

// readSchedules reads the schedules of the span, their pushes, and the reports about them.
func (p *Past) readSchedules(ctx context.Context, tx *store.Tx) error {
	schedules, err := tx.SchedulesWithin(ctx, p.Asset.ID, p.Span)
	if err != nil {
		return err
	}

	found, err := tx.Deliveries(ctx, store.DeliveryQuery{
		AssetID: p.Asset.ID,
		Limit:   pastPushes,
	})
	if err != nil {
		return err
	}

	if !p.Asset.Type.Charges() {
		return p.readSent(ctx, tx, found)
	}

	pushes := make(map[flex.EventID]*store.Delivery, len(found))
	for i := range found {
		pushes[found[i].ID] = &found[i]
	}

	var ids []flex.EventID
	for _, s := range schedules {
		p.Schedules = append(p.Schedules, PastSchedule{s, pushes[s.EventID]})
		ids = append(ids, s.EventID)
	}

	p.Callbacks, err = tx.CallbacksOf(ctx, ids)

	return err
}

// readCurves reads the prices that the schedules of the last session were made with.
func (p *Past) readCurves(ctx context.Context, tx *store.Tx) error {
	p.Curves = map[string][]flex.PricedPeriod{}
	for _, s := range p.Generations() {
		name := s.Curve.String()
		if _, known := p.Curves[name]; known || s.Curve.IsZero() {
			continue
		}

		prices, err := tx.Curve(ctx, s.Curve)
		if err != nil {
			return err
		}
		p.Curves[name] = prices
	}

	return nil
}

// offPeak is the off-peak time of the span.
func (p *Past) offPeak() []flex.Span {
	t := p.Charging.Current.From.Tariff
	if p.Charging.Tariff != nil {
		t = *p.Charging.Tariff
	}

	w, err := tariff.Parse(t.OffPeak, t.Zone, t.Type)
	if err != nil {
		return nil
	}

	return w.Spans(p.Span)
}

// explain adds the requested explanations, and the answers to what-if questions.
func (s *Service) explain(
	ctx context.Context,
	tx *store.Tx,
	p *Past,
	q PastQuery,
) error {
	p.OffPeak = p.offPeak()
	if q.Curves {
		if err := p.readCurves(ctx, tx); err != nil {
			return err
		}
	}

	if q.Explain {
		if err := p.explainChosen(ctx, tx, q.Chosen); err != nil {
			return err
		}
	}

	var err error
	switch {
	case p.Asset.Type == flex.Battery:
		err = s.explainBattery(ctx, tx, p, q.Battery)
	case p.Asset.Type.Heats():
		err = p.explainTank(ctx, tx)
	case p.Asset.Type.Charges():
		err = s.explainCar(ctx, tx, p, q)
	}
	if err != nil {
		return err
	}

	p.explainLevel()

	return nil
}

// explainCar adds the expected levels of a car, the power that it is planned with, its past
// deadlines, and the answer to a what-if question.
func (s *Service) explainCar(
	ctx context.Context,
	tx *store.Tx,
	p *Past,
	q PastQuery,
) error {
	var err error
	p.Level.Expected, err = carLevels(ctx, tx, &p.Charging)
	if err != nil {
		return err
	}

	if q.Explain {
		known, err := rateOf(ctx, tx, &p.Charging)
		if err != nil {
			return err
		}
		p.Rate = &known

		err = p.explainDeadlines(ctx, tx)
		if err != nil {
			return err
		}
	}

	if q.Suppose == nil {
		return nil
	}

	answers, err := s.whatIf(
		ctx,
		tx,
		[]flex.AssetID{p.Asset.ID},
		*q.Suppose,
	)
	if err == nil {
		p.Compare = &answers[0]
	}

	return err
}

// explainBattery explains a battery's plan. If there is none, BatteryNote has the reason.
func (s *Service) explainBattery(
	ctx context.Context,
	tx *store.Tx,
	p *Past,
	q *BatteryQuestion,
) error {
	current, supposed, err := s.whyBattery(ctx, tx, p.Asset.ID, q)
	switch flex.KindOf(err) {
	case flex.Forbidden, flex.NotFound:
		p.BatteryNote = err.Error()
		return nil
	}

	p.Battery, p.BatteryAs = &current, supposed

	return err
}

// Generations returns the schedules of the last session in the span.
func (p *Past) Generations() []PastSchedule {
	if len(p.Schedules) == 0 {
		return nil
	}
	last := p.Schedules[len(p.Schedules)-1].SessionID
	first := slices.IndexFunc(p.Schedules, func(s PastSchedule) bool {
		return s.SessionID == last
	})

	return p.Schedules[first:]
}

// Draw is a constant power during a time, in kilowatts.
type Draw struct {
	flex.Span
	KW float64
}

// Planned returns what the schedules allowed, each while it was in force.
func (p *Past) Planned() []Draw {
	return p.drawsInForce((*PastSchedule).Draws)
}

// Moves is Planned with the discharge of the schedules, as negative power.
func (p *Past) Moves() []Draw {
	return p.drawsInForce((*PastSchedule).Moves)
}

// drawsInForce returns what each schedule planned while it was in force.
func (p *Past) drawsInForce(of func(s *PastSchedule, within flex.Span) []Draw) []Draw {
	ends := map[flex.SessionID]time.Time{}
	for _, s := range p.Sessions {
		ends[s.ID] = s.PluggedOutAt
	}

	var draws []Draw
	for i, s := range p.Schedules {
		force := s.Whole()
		if i+1 < len(p.Schedules) && p.Schedules[i+1].SessionID == s.SessionID {
			force.To = p.Schedules[i+1].Steps[0].From
		}

		if end := ends[s.SessionID]; !end.IsZero() && end.Before(force.To) {
			force.To = end
		}

		draws = append(draws, of(&p.Schedules[i], force.Meet(p.Span))...)
	}

	return draws
}

// Whole is the time from the schedule's first step to its end.
func (s *PastSchedule) Whole() flex.Span {
	return flex.Span{From: s.Steps[0].From, To: s.End()}
}

// Draws returns what the schedule allows within a span.
func (s *PastSchedule) Draws(within flex.Span) []Draw {
	return DrawsOf(s.Charging(), s.From.Power, within)
}

// Moves is Draws with the discharge of the schedule, as negative power. A car does not charge
// while it discharges.
func (s *PastSchedule) Moves(within flex.Span) []Draw {
	var moves []Draw
	for _, d := range s.Draws(within) {
		for _, g := range s.Discharges {
			part := g.Meet(d.Span)
			if part.Empty() {
				continue
			}

			if before := (flex.Span{From: d.From, To: part.From}); !before.Empty() {
				moves = append(moves, Draw{before, d.KW})
			}

			moves = append(moves, Draw{part, d.KW - g.Limit.KW()})
			d.From = part.To
		}

		if !d.Empty() {
			moves = append(moves, d)
		}
	}

	return moves
}

// DrawsOf returns the power that steps allow within a span, at most that of the asset.
func DrawsOf(
	steps []flex.Step,
	power flex.Watts,
	within flex.Span,
) []Draw {
	var draws []Draw
	for _, step := range steps {
		if part := step.Meet(within); !part.Empty() {
			draws = append(draws, Draw{part, min(step.Limit, power).KW()})
		}
	}

	return draws
}

// Ahead returns what the schedule in force allows from now on.
func (p *Past) Ahead() []Draw {
	s := PastSchedule{Schedule: p.Charging.Current}
	return s.Draws(flex.Span{From: p.Now, To: s.End()})
}
