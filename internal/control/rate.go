package control

import (
	"context"
	"errors"
	"fmt"
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
	// rateBack is how far back a session under way is looked at for what the asset draws.
	rateBack = 24 * time.Hour
	// rateDueMax is how many sessions are looked at in one transaction.
	rateDueMax = 200
	// lostLeast is the least time without draw, though the asset was allowed to draw, for which a plan makes an allowance.
	lostLeast = time.Minute
	// lateUsual is the longest delay of a usual start: time lost beyond it is put down to a lower power.
	lateUsual = 15 * time.Minute
	// lateStartsMax is how often a plan is made again for its own late starts.
	lateStartsMax = 3
)

// The origins of a power that is not nominal.
const (
	fromReadings = "readings"
	fromOperator = "operator"
)

// sessionSpan is the time of an open session that its progress is read for.
func sessionSpan(c *store.PlanningState, now time.Time) flex.Span {
	from := flex.Later(c.Session.PluggedInAt, now.Add(-rateBack))
	if count := c.Current.From.CountFrom; count.Before(from) {
		from = count
	}

	return flex.Span{From: from, To: now}
}

// applyLearnedRate puts what the asset really draws into the inputs of its plan. Where nothing is known
// but its nominal power, they stay as they are.
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
		return learnFirst(ctx, tx, c, e, known, sinceChange(c, g, now))
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

// learnFirst is for an asset of which nothing was learned yet. It notes what the half-hours of its stay show and a plan at nominal power
// leaves out: what the asset may turn out to draw, and how much less it drew than it was allowed.
func learnFirst(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	e *store.PlanInputs,
	known rate.Rate,
	shown []rate.HalfHour,
) error {
	if wasOpen(shown) {
		return nil
	}

	power, delay := lostTime(shown)
	if delay < lostLeast || known.HalfHours > 0 {
		return unknownYet(ctx, tx, c, e, known)
	}

	setPower(e, min(e.Power, power), originsOf(e.Origins).power, &store.Learned{
		Nominal:   e.Power,
		Delay:     delay,
		Since:     c.Session.PluggedInAt,
		Certainty: rate.None,
	})

	return nil
}

// lostTime looks at the newest half-hour in which an asset was allowed to draw. It returns the power then, and for how long the asset drew
// nothing. A need of less than a half-hour shows no more: it would be planned for as few minutes again and again, in which an asset that starts late, or
// is slow, draws next to nothing. Up to lateUsual of lost time is taken for a late start at nominal power, more for a lower power. One
// that drew no more than a charger does by itself had not begun, and less than 6 A no car draws: one that seems to began later than usual.
func lostTime(hs []rate.HalfHour) (flex.Watts, time.Duration) {
	for _, h := range slices.Backward(hs) {
		if h.Open <= 0 {
			continue
		}

		lost := h.Open - chargingTime(h.Energy, h.Nominal)
		if lost <= lateUsual || h.Idle() || h.Open <= lateUsual {
			return h.Nominal, min(rate.DelayMax, lost)
		}

		open := (h.Open - lateUsual) / time.Second
		power := flex.Watts(int64(h.Energy) * 3600 / int64(open))

		return max(power, flex.PhasePower), lateUsual
	}

	return 0, 0
}

// setPower has a plan made with a power, and says where it comes from.
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

// steadyPower is the power to plan with: the one of the schedule in force, unless another has
// been learned since.
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

// rateWithin is what was learned from past sessions, and the one under way.
func rateWithin(
	past []store.RateSession,
	c *store.PlanningState,
	g *progress,
	now time.Time,
) rate.Rate {
	return rate.Within(
		knownRate(past, c.Session.VehicleRate),
		sinceChange(c, g, now),
	)
}

// sinceChange lists the metered half-hours of the session under way since what was learned was last forgotten.
func sinceChange(
	c *store.PlanningState,
	g *progress,
	now time.Time,
) []rate.HalfHour {
	return g.halfHours(flex.Span{
		From: flex.Later(c.Session.PluggedInAt, c.RateSince),
		To:   now,
	})
}

// knownRate is what was learned from sessions with a vehicle's rate.
func knownRate(past []store.RateSession, vehicle flex.Watts) rate.Rate {
	var list []rate.Session
	for i := range past {
		if past[i].Vehicle == vehicle {
			list = append(list, past[i].Session)
		}
	}

	return rate.Learn(list)
}

// halfHours lists the whole half-hours of a span that were metered, and in which it is known
// what the asset was allowed.
func (g *progress) halfHours(in flex.Span) []rate.HalfHour {
	if len(g.metered) == 0 || len(g.followed) == 0 {
		return nil
	}

	nominal := nominalOf(&g.followed[0].schedule.From)

	var hs []rate.HalfHour
	for p := flex.PeriodAt(in.From); !p.End().After(in.To); p = p.Add(1) {
		energy, metered := g.metered[p]
		if !metered || p.Start().Before(in.From) { // a stay may last for months, but only a day of it was read
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

// allowed returns the least power that the asset was allowed in a span, for how long it was allowed
// nominal power, and whether the schedules cover all of the span. After its end a schedule limits
// nothing.
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

// nominalOf is the power that a plan would have been made with had nothing been learned.
func nominalOf(e *store.PlanInputs) flex.Watts {
	if e.Learned != nil {
		return e.Learned.Nominal
	}
	return e.Power
}

// limitByRate sets whether a schedule names a learned power as its limit. Under caps it does:
// what others may draw is worked out from that power.
func limitByRate(e *store.PlanInputs, capped bool) {
	if e.Learned == nil || e.Learned.Limited == capped {
		return
	}
	if e.Learned.Unknown { // no headroom that others may need is kept for it
		e.Learned = nil
		return
	}

	l := *e.Learned
	l.Limited = capped
	e.Learned = &l
	if capped {
		nameable(e)
	}
}

// nameable raises a power that a schedule names as its limit to one that the charger can give. Less than its least on all
// of its phases it would take for a pause, though a car on one of them, or one that is nearly full, draws less. Others
// leave headroom for the limit.
func nameable(e *store.PlanInputs) {
	least := flex.LeastPower(e.Phases)
	if e.Phases <= 1 { // an asset on one phase may be rated less
		least = min(least, nominalOf(e))
	}

	e.Power = max(e.Power, least)
}

// mayDrawMore reports whether a schedule leaves an asset free to draw more than is counted.
func mayDrawMore(e *store.PlanInputs) bool {
	return e.Learned != nil && !e.Learned.Limited && e.Power < e.Learned.Nominal
}

// allowance is the energy that a plan is to allow beyond the need: because the asset was measured to
// start late or to slow down, and because no meter is exact. Peak time is never used for it.
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

// spareOffPeak is as much of an allowance as off-peak time has room for beyond a need, or all of it where peak time is not permitted. What a
// ramp leaves to others is no room.
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

// isMeasured reports whether a plan rests on what its asset was seen to draw.
func isMeasured(l *store.Learned) bool { return l != nil && !l.Pinned && !l.Unknown }

// lateStarts adds the delay of an asset that starts late for each start of its plan that the allowance does not cover: for all but the
// first, and for that too if it is already over. Without it a pause between two cheap periods costs more energy than is planned in the shorter.
func lateStarts(e *store.PlanInputs, p charge.Problem) charge.Problem {
	l := e.Learned
	if !isMeasured(l) || p.Need <= 0 {
		return p
	}

	// A start that goes on, and in which it has not begun yet, is the one that the allowance has.
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

// lateMore is what a plan takes more than the schedule in force, in watt-seconds, for starting more often: as each start costs that, the
// schedule does not lack it.
func lateMore(p *charge.Problem, current, next []flex.Step) int64 {
	if p.Late <= 0 {
		return 0
	}

	ahead := flex.Span{From: p.From, To: p.ReadyBy}
	more := startsOf(stepsWithin(next, ahead), p.Running) - startsOf(stepsWithin(current, ahead), p.Running)

	return int64(p.Late) * 3600 * int64(max(0, more))
}

// startsOf is how often an asset starts in some steps.
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

// stateOf says how far a charge has come. Until more was delivered than a start takes, it has not begun.
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

// rateInputs are the inputs of a plan that say with what power it was made.
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

// LearnedFrom says in words what a rate is known from.
func LearnedFrom(halfHours int, since time.Time, certainty string) string {
	noun := "half-hours"
	if halfHours == 1 {
		noun = "half-hour"
	}

	return fmt.Sprintf(
		"learned from %d %s since %s, certainty %s",
		halfHours,
		noun,
		since.In(flex.London).Format("2 January 2006"),
		certainty,
	)
}

// Source says in words where an input came from.
func (in Input) Source() string {
	if in.Detail == "" {
		return in.Origin
	}
	return in.Origin + ": " + in.Detail
}

func kw(p flex.Watts) string { return strconv.FormatFloat(p.KW(), 'f', -1, 64) }

// LearnRates keeps what was learned from sessions that ended half an hour ago, and once more a day after
// their end if readings were missing. It is safe to run twice and on several machines at once.
func (s *Service) LearnRates(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(ctx, s.DB.OrgsBy((*store.All).OrgIDs), s.LearnRatesOf)
}

// LearnRatesOf is LearnRates for one organisation.
func (s *Service) LearnRatesOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	n, err := s.learnRates(ctx, org)
	return worker.Report{Did: n, More: n == rateDueMax}, err
}

// learned is what was learned from a session, and when it is to be looked at again.
type learned struct {
	store.RateSession
	again time.Time
}

// learnRates works on some sessions of an organisation and returns how many. A session that cannot be read does not hold up others.
func (s *Service) learnRates(
	ctx context.Context,
	org flex.OrgID,
) (int, error) {
	var list []learned
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
			if err := tx.PutRateSession(ctx, t.RateSession, t.again); err != nil {
				return err
			}
		}

		return nil
	})

	return len(list), errors.Join(tried.err(), err)
}

// learnDue works out what is learned from sessions that are to be looked at. It also returns the assets of those that cannot
// be read.
func learnDue(
	ctx context.Context,
	tx *store.Tx,
) ([]learned, []notPlanned, error) {
	due, err := tx.RateDue(ctx, rateDueMax)
	if err != nil {
		return nil, nil, err
	}

	queries := make([]store.ReadingQuery, len(due))
	for i := range due {
		queries[i] = meteredQuery(due[i].AssetID, sessionTime(&due[i]))
	}

	readings, err := tx.ReadingsEach(ctx, queries)

	var list []learned
	var failed []notPlanned
	for i := 0; i < len(due) && err == nil; i++ {
		var t learned
		t, err = learnFrom(ctx, tx, &due[i], energyByPeriod(readings[i]))
		if errors.Is(err, store.ErrUnreadable) { // it is tried again in the next run
			failed = append(failed, notPlanned{due[i].AssetID, err})
			err = nil
			continue
		}

		list = append(list, t)
	}

	return list, failed, err
}

// sessionTime is the time of a session that ended.
func sessionTime(s *store.Session) flex.Span {
	return flex.Span{From: s.PluggedInAt, To: s.PluggedOutAt}
}

// learnFrom works out what is learned from a session that ended, of what was metered in it.
func learnFrom(
	ctx context.Context,
	tx *store.Tx,
	s *store.Session,
	metered map[flex.Period]flex.WattHours,
) (learned, error) {
	var t learned
	t.RateSession = store.RateSession{
		ID:      s.ID,
		AssetID: s.AssetID,
		Number:  s.Number,
		Vehicle: s.VehicleRate,
	}

	span := sessionTime(s)
	g := progress{metered: metered}
	last := s.PluggedOutAt.Add(store.RateLookAgain)
	if tx.Now().Before(last) && !g.readThroughout(span) {
		t.again = last
	}

	// Most chargers have no meter that is read: nothing else is asked for then.
	if len(g.metered) == 0 {
		return t, nil
	}

	c, err := tx.PlanningState(ctx, s.AssetID)
	if flex.KindOf(err) == flex.NotFound && err != nil { // deleted since
		t.again = time.Time{}
		return t, nil
	}
	if err != nil {
		return t, err
	}

	span.From = flex.Later(span.From, c.RateSince)
	t.Session, err = summaryOf(ctx, tx, s, span, &g)

	return t, err
}

// summaryOf is what the metered half-hours of a session in a span show, by the schedules that were followed then.
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

// readThroughout reports whether every whole half-hour of a span was metered.
func (g *progress) readThroughout(span flex.Span) bool {
	for p := flex.PeriodAt(span.From).Add(1); !p.End().After(span.To); p = p.Add(1) {
		if _, metered := g.metered[p]; !metered {
			return false
		}
	}

	return true
}
