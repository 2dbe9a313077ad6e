package control

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/rate"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

const (
	// rateHistory is how far back the readings of an open session are used.
	rateHistory = 24 * time.Hour
	// rateDueMax is the number of sessions that are evaluated in one transaction.
	rateDueMax = 200
	// minLost is the shortest time without draw, while the asset was allowed to draw, for
	// which a plan makes an allowance.
	minLost = time.Minute
	// usualDelay is the longest delay of a usual start. Time lost beyond it is taken for a
	// lower power.
	usualDelay = 15 * time.Minute
	// lateStartsMax is how often a plan is made again to allow for its own late starts.
	lateStartsMax = 3
)

// The origins of a power that is not the nominal one.
const (
	fromReadings = "readings"
	fromOperator = "operator"
)

// sessionSpan is the part of an open session for which its progress is read.
func sessionSpan(c *store.PlanningState, now time.Time) flex.Span {
	from := flex.Later(c.Session.PluggedInAt, now.Add(-rateHistory))
	if count := c.Current.From.CountFrom; count.Before(from) {
		from = count
	}

	return flex.Span{From: from, To: now}
}

// applyLearnedRate sets the power that the asset was measured to draw in the inputs of its
// plan. If nothing is known but its nominal power, the inputs do not change.
func applyLearnedRate(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	e *store.PlanInputs,
	g *progress,
	now time.Time,
) error {
	if c.RatePin > 0 {
		setPower(e, min(e.Power, c.RatePin), fromOperator, &store.Learned{
			Nominal: e.Power,
			Pinned:  true,
		})

		return nil
	}

	past, err := tx.RateSessions(ctx, c.Asset.ID)
	if err != nil {
		return err
	}

	known := rateWithin(past, c, g, now)
	power := steadyPower(known, c, e.Power)
	if power == e.Power && known.Delay == 0 && known.Tail == 0 {
		return learnFromOpenSession(ctx, tx, c, e, known, halfHoursSinceReset(c, g, now))
	}

	setPower(e, power, fromReadings, &store.Learned{
		Nominal:   e.Power,
		Delay:     known.Delay,
		Tail:      known.Tail,
		Minimum:   known.Minimum,
		HalfHours: known.HalfHours,
		Sessions:  known.Sessions,
		Since:     known.Since,
		Certainty: known.Certainty,
	})

	return nil
}

// learnFromOpenSession is for an asset without past sessions to learn from. It sets what the
// half-hours of the present session show: the least power that the asset may have, and the
// time in which it drew nothing although it was allowed to.
func learnFromOpenSession(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	e *store.PlanInputs,
	known rate.Rate,
	metered []rate.HalfHour,
) error {
	if hasFullHalfHour(metered) {
		return nil
	}

	power, delay := lostTime(metered)
	if delay < minLost || known.HalfHours > 0 {
		return markUnknown(ctx, tx, c, e, known)
	}

	setPower(e, min(e.Power, power), originsOf(e.Origins).power, &store.Learned{
		Nominal:   e.Power,
		Delay:     delay,
		Since:     c.Session.PluggedInAt,
		Certainty: rate.None,
	})

	return nil
}

// lostTime evaluates the newest half-hour in which an asset was allowed to draw. It returns
// the power that the asset drew, and for how long it drew nothing. After a short need the
// half-hour shows no more than that. Without an allowance for it, the asset would be planned
// for the same few minutes again and again, in which one that starts late or is slow draws
// next to nothing.
//
// Up to usualDelay, lost time counts as a late start at nominal power; beyond that, as a lower
// power. An asset that drew no more than a charger's own consumption had not started. No car
// draws less than 6 A: if one seems to, it started later than usual.
func lostTime(hs []rate.HalfHour) (flex.Watts, time.Duration) {
	for _, h := range slices.Backward(hs) {
		if h.Open <= 0 {
			continue
		}

		lost := h.Open - chargingTime(h.Energy, h.Nominal)
		if lost <= usualDelay || h.Idle() || h.Open <= usualDelay {
			return h.Nominal, min(rate.DelayMax, lost)
		}

		open := (h.Open - usualDelay) / time.Second
		power := flex.Watts(int64(h.Energy) * 3600 / int64(open))

		return max(power, flex.PhasePower), usualDelay
	}

	return 0, 0
}

// setPower sets the power of a plan, and its origin.
func setPower(
	e *store.PlanInputs,
	power flex.Watts,
	origin string,
	l *store.Learned,
) {
	o := originsOf(e.Origins)
	o.power = origin
	e.Power = power
	e.Origins = o.String()
	e.Learned = l
}

// steadyPower returns the power to plan with: that of the schedule in force, unless another
// one has been learned since.
func steadyPower(
	known rate.Rate,
	c *store.PlanningState,
	nominal flex.Watts,
) flex.Watts {
	power, less := known.Planned(nominal)
	inForce := &c.Current.From
	planned := c.Open() && c.Current.Generation > 0
	learned := inForce.Learned != nil && !inForce.Learned.Unknown
	if !planned || !less && !learned {
		return power
	}

	return min(nominal, rate.Steady(inForce.Power, power))
}

// rateWithin returns the rate that was learned from past sessions and the open one.
func rateWithin(
	past []store.RateSession,
	c *store.PlanningState,
	g *progress,
	now time.Time,
) rate.Rate {
	return rate.Within(
		knownRate(past, c.Session.VehicleRate),
		halfHoursSinceReset(c, g, now),
	)
}

// halfHoursSinceReset returns the metered half-hours of the open session since the learned
// rate was last reset.
func halfHoursSinceReset(
	c *store.PlanningState,
	g *progress,
	now time.Time,
) []rate.HalfHour {
	return g.halfHours(flex.Span{
		From: flex.Later(c.Session.PluggedInAt, c.RateSince),
		To:   now,
	})
}

// knownRate returns the rate that was learned from sessions with one vehicle rate.
func knownRate(past []store.RateSession, vehicle flex.Watts) rate.Rate {
	var list []rate.Session
	for i := range past {
		if past[i].Vehicle == vehicle {
			list = append(list, past[i].Session)
		}
	}

	return rate.Learn(list)
}

// halfHours returns the whole half-hours of a span that were metered, and in which it is known
// what the asset was allowed to draw.
func (g *progress) halfHours(in flex.Span) []rate.HalfHour {
	if len(g.metered) == 0 || len(g.followed) == 0 {
		return nil
	}

	nominal := nominalOf(&g.followed[0].schedule.From)

	var hs []rate.HalfHour
	for p := flex.PeriodAt(in.From); !p.End().After(in.To); p = p.Add(1) {
		energy, metered := g.metered[p]
		if !metered || p.Start().Before(in.From) { // the half-hour in which the span begins is not whole
			continue
		}

		allowed, open, known := g.allowed(p.Span(), nominal)
		if !known {
			continue
		}

		before, _, known := g.allowed(
			flex.Span{
				From: p.Start().Add(-time.Second),
				To:   p.Start(),
			},
			nominal,
		)

		hs = append(hs, rate.HalfHour{
			Period:  p,
			Energy:  energy,
			Allowed: allowed,
			Open:    open,
			Nominal: nominal,
			Began:   !known || before == 0,
		})
	}

	return hs
}

// allowed returns the least power that the asset was allowed in a span, for how long it was
// allowed nominal power, and whether the schedules cover the whole span. After its last step a
// schedule limits nothing.
func (g *progress) allowed(
	in flex.Span,
	nominal flex.Watts,
) (flex.Watts, time.Duration, bool) {
	least := flex.Unbounded
	covered := time.Duration(0)

	var open time.Duration
	for _, f := range g.followed {
		part := in.Meet(f.Span)
		if part.Empty() {
			continue
		}

		covered += part.Len()
		open += part.Len()

		for _, s := range f.schedule.Steps {
			within := s.Meet(part)
			if within.Empty() {
				continue
			}

			least = min(least, s.Limit)

			if s.Limit < nominal {
				open -= within.Len()
			}
		}
	}

	return least, open, covered == in.Len()
}

// nominalOf returns the power that a plan would have had if nothing had been learned.
func nominalOf(e *store.PlanInputs) flex.Watts {
	if e.Learned != nil {
		return e.Learned.Nominal
	}
	return e.Power
}

// limitToLearned sets whether the learned power is the limit of a schedule. It is under caps,
// where the headroom of others is computed from that power.
func limitToLearned(e *store.PlanInputs, capped bool) {
	if e.Learned == nil || e.Learned.Limited == capped {
		return
	}
	if e.Learned.Unknown { // no headroom is reserved for a probe, as others may need it
		e.Learned = nil
		return
	}

	l := *e.Learned
	l.Limited = capped
	e.Learned = &l
	if capped {
		raiseToMinPower(e)
	}
}

// raiseToMinPower raises a power that is a schedule's limit to the least that the charger can
// give. A charger treats a limit below its least power on all of its phases as a pause, even
// if the car charges on one phase or is nearly full and would draw less. Others leave headroom
// for the limit.
func raiseToMinPower(e *store.PlanInputs) {
	least := flex.LeastPower(e.Phases)
	if e.Phases <= 1 { // an asset on one phase may be rated less
		least = min(least, nominalOf(e))
	}

	e.Power = max(e.Power, least)
}

// mayExceedCounted reports whether a schedule allows an asset to draw more than is counted for
// it.
func mayExceedCounted(e *store.PlanInputs) bool {
	return e.Learned != nil && !e.Learned.Limited && e.Power < e.Learned.Nominal
}

// allowance returns the energy that a plan provides beyond the need, because the asset was
// measured to start late or to slow down, and because no meter is exact. It never uses peak
// time.
func allowance(e *store.PlanInputs, p *charge.Problem) flex.WattHours {
	l := e.Learned
	if !isMeasured(l) {
		return 0
	}

	more := rate.Rate{Delay: l.Delay, Tail: l.Tail}.Allowance(
		p.Need,
		e.Need,
		p.Power,
		stateOf(e, p),
	)

	return spareOffPeak(p, p.Need, more)
}

// spareOffPeak returns the part of an allowance for which there is off-peak time beyond a
// need; all of it if peak time is not permitted. Time that a ramp leaves to others does not
// count.
func spareOffPeak(
	p *charge.Problem,
	need flex.WattHours,
	more flex.WattHours,
) flex.WattHours {
	if p.AllOffPeak || !p.MayChargePeak {
		return more
	}

	var offPeak time.Duration
	for _, s := range p.OffPeak {
		ahead := s.Meet(flex.Span{From: p.From, To: p.ReadyBy})
		offPeak += ahead.Len()

		for _, l := range p.Limits {
			offPeak -= l.Meet(ahead).Len()
		}
	}

	return max(0, min(more, p.Power.For(offPeak)-need))
}

// isMeasured reports whether a plan uses the measured power of its asset.
func isMeasured(l *store.Learned) bool { return l != nil && !l.Pinned && !l.Unknown }

// lateStarts adds the delay of an asset that starts late to its need, for each start of its
// plan that the allowance does not cover: for all but the first, and for the first too if that
// is over. Without it a pause between two cheap periods would cost more energy than is planned
// in the shorter one.
func lateStarts(e *store.PlanInputs, p charge.Problem) charge.Problem {
	l := e.Learned
	if !isMeasured(l) || p.Need <= 0 {
		return p
	}

	// The allowance covers one start: the next one, or one in which the asset has not begun to
	// draw.
	begun := stateOf(e, &p) == rate.Running
	allowed := 1
	if begun {
		allowed = 0
	}

	need := p.Need

	p.Late = p.Power.For(max(l.Delay, rate.RestartDelay))
	for range lateStartsMax {
		starts := startsOf(charge.Solve(p).Steps, begun) - allowed
		more := need + spareOffPeak(&p, need, p.Late*flex.WattHours(max(0, starts)))
		if more <= p.Need {
			break
		}

		p.Need = more
	}

	return p
}

// extraStartEnergy returns the energy, in watt-seconds, that a plan needs in addition to the
// schedule in force because it starts more often. That is no shortfall of the schedule in
// force.
func extraStartEnergy(p *charge.Problem, current, next []flex.Step) int64 {
	if p.Late <= 0 {
		return 0
	}

	ahead := flex.Span{From: p.From, To: p.ReadyBy}
	more := startsOf(stepsWithin(next, ahead), p.Running) - startsOf(stepsWithin(current, ahead), p.Running)

	return int64(p.Late) * 3600 * int64(max(0, more))
}

// startsOf returns how often an asset starts in some steps.
func startsOf(steps []flex.Step, running bool) int {
	n := 0
	for _, s := range steps {
		if s.Limit > 0 && !running {
			n++
		}

		running = s.Limit > 0
	}

	return n
}

// stateOf returns the state of a charge. It has not begun until more energy was delivered than
// a start takes.
func stateOf(e *store.PlanInputs, p *charge.Problem) rate.State {
	begun := e.Delivered > p.Power.For(e.Learned.Delay)

	if p.Running && begun {
		return rate.Running
	}
	if !p.Running && e.Delivered > 0 {
		return rate.Stopped
	}

	return rate.Waiting
}

// rateInputs returns the inputs of a plan that explain its power.
func rateInputs(e store.PlanInputs, o origins, power Input) []Input {
	l := e.Learned
	if l == nil {
		return []Input{power}
	}

	list := []Input{
		power,
		{Name: "nominal_power_kw", Value: kw(l.Nominal), Origin: fromAsset},
	}

	if l.Pinned {
		list[0].Detail = "set by an operator"
		return list
	}

	if l.Unknown {
		list[0].Detail = "nothing is known yet of what it draws; its first half-hour shows it"
		return list
	}

	list[0].Detail = LearnedFrom(l.HalfHours, l.Since, string(l.Certainty))
	if l.HalfHours == 0 {
		list[0].Detail = "nothing is known yet of what it draws, but that it took less than this in the minutes that it was allowed"
	}
	if l.Delay > 0 {
		list = append(list, Input{
			Name:   "start_delay_minutes",
			Value:  strconv.FormatFloat(l.Delay.Minutes(), 'f', 1, 64),
			Origin: o.power,
		})
	}

	if l.Tail > 0 {
		list = append(list, Input{
			Name:   "tail_kwh",
			Value:  kwh(l.Tail),
			Origin: o.power,
		})
	}

	return list
}

// Source describes where an input came from.
func (in Input) Source() string {
	if in.Detail == "" {
		return in.Origin
	}
	return in.Origin + ": " + in.Detail
}

func kw(p flex.Watts) string { return strconv.FormatFloat(p.KW(), 'f', -1, 64) }

// LearnRates stores what was learned from sessions that ended half an hour ago; once more a
// day after their end if readings were missing. It is safe to run twice, and on several
// machines at once.
func (s *Service) LearnRates(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(ctx, s.DB.OrgsBy((*store.All).OrgIDs), s.LearnRatesOf)
}

// LearnRatesOf is LearnRates for one organisation.
func (s *Service) LearnRatesOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	n, err := s.learnRates(ctx, org)
	return worker.Report{Count: n, More: n == rateDueMax}, err
}

// sessionRate is the rate that was learned from a session, and when it is to be evaluated
// again.
type sessionRate struct {
	store.RateSession
	againAt time.Time
}

// learnRates evaluates some sessions of an organisation, and returns how many. A session that
// cannot be read does not delay the others.
func (s *Service) learnRates(
	ctx context.Context,
	org flex.OrgID,
) (int, error) {
	var list []sessionRate
	var failed []notPlanned
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		list, failed, err = learnDue(ctx, tx)
		return err
	})

	tried := failedAssets{assets: map[flex.AssetID]bool{}}
	tried.add(failed)
	if err != nil || len(list) == 0 {
		return 0, errors.Join(tried.err(), err)
	}

	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		for _, t := range list {
			if err := tx.PutRateSession(ctx, t.RateSession, t.againAt); err != nil {
				return err
			}
		}

		return nil
	})

	return len(list), errors.Join(tried.err(), err)
}

// learnDue evaluates sessions that are due. It also returns the assets of those that cannot be
// read.
func learnDue(
	ctx context.Context,
	tx *store.Tx,
) ([]sessionRate, []notPlanned, error) {
	due, err := tx.RateDue(ctx, rateDueMax)
	if err != nil {
		return nil, nil, err
	}

	queries := make([]store.ReadingQuery, len(due))
	for i := range due {
		queries[i] = meteredQuery(due[i].AssetID, sessionTime(&due[i]))
	}

	readings, err := tx.ReadingsEach(ctx, queries)

	var list []sessionRate
	var failed []notPlanned
	for i := 0; i < len(due) && err == nil; i++ {
		var t sessionRate
		t, err = learnFrom(ctx, tx, &due[i], energyByPeriod(readings[i]))
		if errors.Is(err, store.ErrUnreadable) { // tried again in the next run
			failed = append(failed, notPlanned{due[i].AssetID, err})
			err = nil
			continue
		}

		list = append(list, t)
	}

	return list, failed, err
}

// sessionTime returns the time of a session that ended.
func sessionTime(s *store.Session) flex.Span {
	return flex.Span{From: s.PluggedInAt, To: s.PluggedOutAt}
}

// learnFrom evaluates a session that ended, by its metered half-hours.
func learnFrom(
	ctx context.Context,
	tx *store.Tx,
	s *store.Session,
	metered map[flex.Period]flex.WattHours,
) (sessionRate, error) {
	var t sessionRate
	t.RateSession = store.RateSession{
		ID:      s.ID,
		AssetID: s.AssetID,
		Number:  s.Number,
		Vehicle: s.VehicleRate,
	}

	span := sessionTime(s)
	g := progress{metered: metered}
	last := s.PluggedOutAt.Add(store.RateLookAgain)
	if tx.Now().Before(last) && !g.isComplete(span) {
		t.againAt = last
	}

	// Most chargers have no meter that is read: then nothing else needs to be read.
	if len(g.metered) == 0 {
		return t, nil
	}

	c, err := tx.PlanningState(ctx, s.AssetID)
	if flex.KindOf(err) == flex.NotFound && err != nil { // deleted since
		t.againAt = time.Time{}
		return t, nil
	}
	if err != nil {
		return t, err
	}

	span.From = flex.Later(span.From, c.RateSince)
	t.Session, err = summaryOf(ctx, tx, s, span, &g)

	return t, err
}

// summaryOf returns what the metered half-hours of a session in a span show, by the schedules
// that were followed then.
func summaryOf(
	ctx context.Context,
	tx *store.Tx,
	s *store.Session,
	span flex.Span,
	g *progress,
) (rate.Session, error) {
	newest, err := tx.Schedule(ctx, s.EventID)
	if err != nil {
		return rate.Session{}, err
	}

	g.followed, err = followedSchedules(ctx, tx, &newest, span)
	if err != nil {
		return rate.Session{}, err
	}

	return rate.Summarise(g.halfHours(span)), nil
}

// isComplete reports whether every whole half-hour of a span was metered.
func (g *progress) isComplete(span flex.Span) bool {
	for p := flex.PeriodAt(span.From).Add(1); !p.End().After(span.To); p = p.Add(1) {
		if _, metered := g.metered[p]; !metered {
			return false
		}
	}

	return true
}
