package reward

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/ramp"
	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// The plan without the market ("counterfactual") must respect the site's main fuse as well.
// Where a site's cars can exceed the fuse together, their plans without the market are made
// together: all of them again whenever a user changed one or a car left, one after the other,
// each within what the cars before it leave of the fuse.

// connectedReach is how far back sessions are searched that overlap a session directly or
// through others.
const connectedReach = 3 * 24 * time.Hour

// maxPlannedTogether is how many assets are planned together. The work grows with the square
// of their number and with each change. Where more share a fuse, as in a depot, each is
// planned within an equal share of it.
const maxPlannedTogether = 20

// automaticCauses are the causes of schedules that were made without a change by the user.
var automaticCauses = []store.Cause{
	store.CauseMarket,
	store.CauseInputs,
	store.CauseCaps,
	store.CauseCalled,
}

// replannedSession is a session, with what would have been planned in it without the market.
type replannedSession struct {
	flex.Span
	session   flex.SessionID
	asset     flex.AssetID
	schedules []store.Schedule // that were made in it, oldest first
	without   []settle.Dispatch
	nominated []settle.Dispatch
}

// plansWithout plans a session again without the market's prices, as it would have been
// planned at the time.
func plansWithout(
	ctx context.Context,
	tx *store.Tx,
	r *store.SessionSettlement,
	schedules []store.Schedule,
) (*replannedSession, error) {
	own := &replannedSession{
		Span:      r.Span,
		session:   r.SessionID,
		asset:     r.AssetID,
		schedules: schedules,
	}

	fuse, err := tx.SupplyOf(ctx, []flex.SiteID{r.SiteID}, time.Time{})
	if err != nil || len(schedules) == 0 {
		return own, err
	}

	supply := fuse[r.SiteID]
	sessions := []*replannedSession{own}
	if least := leastFuse(supply, flex.Span{To: r.To}); least < flex.Unbounded {
		found, err := connected(ctx, tx, r.SiteID, own)
		if err != nil {
			return own, err
		}

		if n := numAssets(found); n > maxPlannedTogether {
			supply = shareOf(supply, n)
		} else {
			sessions, err = sessionsPlanned(ctx, tx, own, found)
			if err != nil {
				return own, err
			}
		}
	}

	planTogether(sessions, supply, r.To)

	return own, nil
}

// numAssets returns the number of different assets of sessions.
func numAssets(sessions []store.Session) int {
	assets := map[flex.AssetID]bool{}
	for i := range sessions {
		assets[sessions[i].AssetID] = true
	}

	return len(assets)
}

// shareOf returns an equal share of a main fuse, but no less than a single-phase charger
// needs.
func shareOf(
	fuse flex.History[flex.Supply],
	assets int,
) flex.History[flex.Supply] {
	share := slices.Clone(fuse)
	for i := range share {
		if capacity := share[i].Is.Import; share[i].Is.Set {
			share[i].Is.Import = min(capacity, max(capacity/flex.Watts(assets), flex.LeastPower(1)))
		}
	}

	return share
}

// connected returns the sessions of a site that overlap a session, directly or through other
// sessions, until that session's end. The session itself is among them.
func connected(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	own *replannedSession,
) ([]store.Session, error) {
	span := own.Span
	earliest := span.From.Add(-connectedReach)

	var found []store.Session
	for changed := true; changed; {
		var err error
		found, err = tx.PlannedSessions(ctx, site, span)
		if err != nil {
			return nil, err
		}

		changed = false
		for i := range found {
			from := flex.Later(found[i].PluggedInAt, earliest)
			if from.Before(span.From) {
				span.From, changed = from, true
			}
		}
	}

	return found, nil
}

// sessionsPlanned returns a session and those that are connected with it, with their
// schedules.
func sessionsPlanned(
	ctx context.Context,
	tx *store.Tx,
	own *replannedSession,
	found []store.Session,
) ([]*replannedSession, error) {
	sessions := []*replannedSession{own}
	for i := range found {
		s := &found[i]
		if s.ID == own.session {
			continue
		}

		schedules, err := tx.SchedulesOf(ctx, s.ID)
		if err != nil {
			return nil, err
		}

		end := own.To
		if !s.PluggedOutAt.IsZero() {
			end = flex.Earlier(end, s.PluggedOutAt)
		}

		sessions = append(sessions, &replannedSession{
			Span:      flex.Span{From: s.PluggedInAt, To: end},
			session:   s.ID,
			asset:     s.AssetID,
			schedules: schedules,
		})
	}

	return sessions, nil
}

// planTogether plans sessions without the market until an instant, within the main fuse if
// together they can exceed it.
func planTogether(
	sessions []*replannedSession,
	fuse flex.History[flex.Supply],
	until time.Time,
) {
	if !canExceed(sessions, fuse, until) {
		for _, s := range sessions {
			s.planAlone()
		}
		return
	}

	for _, at := range replanTimes(sessions, until) {
		order := planningOrder(sessions, at)
		if len(order) == 0 {
			continue
		}

		without := fuseFrom(fuse, at, order)
		nominated := without
		for _, s := range order {
			without, nominated = s.planWithin(at, without, nominated)
		}
	}
}

// planWithin plans a stay from an instant on within limits. It returns the limits that remain
// for the next sessions: of the plans without the market, and of the nominated plans.
func (s *replannedSession) planWithin(
	at time.Time,
	without, nominated []flex.Step,
) (withoutLeft, nominatedLeft []flex.Step) {
	schedule := s.newest(at)
	from := at.Truncate(time.Second)
	problem := schedule.From.Problem(from, chargedUnder(schedule, s.without, at))
	least := min(problem.Power, leastPower(problem.Power))

	problem.Limits = dropUnusable(without, least)
	dispatched := rampedWithin(schedule, problem)
	s.without = append(s.without, settle.Dispatch{At: at, Steps: dispatched})

	problem = schedule.From.Problem(from, chargedUnder(schedule, s.nominated, at))
	problem.Limits = dropUnusable(nominated, least)
	planned := charge.Counterfactual(problem).Steps
	s.nominated = append(s.nominated, settle.Dispatch{At: at, Steps: planned})

	return remainingLimits(without, dispatched, problem.Power), remainingLimits(nominated, planned, problem.Power)
}

// canExceed reports whether the assets of sessions can together draw more than the fuse carries.
func canExceed(
	sessions []*replannedSession,
	fuse flex.History[flex.Supply],
	until time.Time,
) bool {
	most := map[flex.AssetID]flex.Watts{}
	span := flex.Span{From: until, To: until}
	for _, s := range sessions {
		span.From = flex.Earlier(span.From, s.From)
		for i := range s.schedules {
			most[s.asset] = max(most[s.asset], s.schedules[i].From.Power)
		}
	}

	var sum flex.Watts
	for _, w := range most {
		sum += w
	}

	return sum > leastFuse(fuse, span)
}

// leastFuse is the least that a main fuse carried at any time of a span; unbounded where none
// was set.
func leastFuse(
	fuse flex.History[flex.Supply],
	in flex.Span,
) flex.Watts {
	least := flex.Unbounded
	for i, f := range fuse {
		replaced := i+1 < len(fuse) && !fuse[i+1].At.After(in.From)
		if f.Is.Set && !replaced && f.At.Before(in.To) {
			least = min(least, f.Is.Import)
		}
	}

	return least
}

// planAlone plans a stay that is not bounded by a fuse.
func (s *replannedSession) planAlone() {
	for i := range s.schedules {
		schedule := &s.schedules[i]
		if !s.byUser(i) {
			continue
		}

		from := schedule.Steps[0].From
		problem := schedule.From.Problem(from, chargedUnder(schedule, s.without, schedule.MadeAt))
		s.without = append(s.without, settle.Dispatch{
			At:    schedule.MadeAt,
			Steps: charge.Solve(withRamp(schedule, problem)).Steps,
		})

		problem = schedule.From.Problem(from, chargedUnder(schedule, s.nominated, schedule.MadeAt))
		s.nominated = append(s.nominated, settle.Dispatch{
			At:    schedule.MadeAt,
			Steps: charge.Counterfactual(problem).Steps,
		})
	}
}

// byUser reports whether the i-th schedule would have been made without the market too, as is
// true of the first one and of those that a user's change caused.
func (s *replannedSession) byUser(i int) bool {
	return i == 0 || !slices.Contains(automaticCauses, s.schedules[i].Cause)
}

// newest returns the schedule from whose inputs the plan without the market was made at an
// instant; nil if there was none yet.
func (s *replannedSession) newest(at time.Time) *store.Schedule {
	for i := range slices.Backward(s.schedules) {
		if s.byUser(i) && !s.schedules[i].MadeAt.After(at) {
			return &s.schedules[i]
		}
	}

	return nil
}

// chargedUnder returns the energy that the plans would have charged since the schedule's
// energy is counted, until an instant. A ramp delays the plans without the market and not the
// nominated ones, so that each has its own energy.
func chargedUnder(
	schedule *store.Schedule,
	plans []settle.Dispatch,
	at time.Time,
) flex.WattHours {
	return settle.Drawn(
		settle.InForce(plans, at),
		schedule.From.Power,
		flex.Span{From: schedule.From.CountFrom, To: at},
	)
}

// withRamp delays a problem by the ramp of the schedule that was made, so that the plan
// without the market begins as much later as the one with it.
func withRamp(schedule *store.Schedule, p charge.Problem) charge.Problem {
	if r := schedule.From.Ramp; r != nil {
		return ramp.Apply(p, r.Offset, r.Spread)
	}

	return p
}

// rampedWithin returns a plan within the problem's limits that is delayed by the schedule's
// ramp, unless the delay would leave more of the need uncharged.
func rampedWithin(schedule *store.Schedule, p charge.Problem) []flex.Step {
	plan := charge.Solve(p)
	if schedule.From.Ramp == nil {
		return plan.Steps
	}

	spread := withRamp(schedule, p)
	if schedule.From.Ramp.Spread > 0 { // Apply with a spread discards the limits, which are applied again here
		spread.Limits = outsideClosed(p.Limits, spread.Limits)
	}

	later := charge.Solve(spread)
	if later.Shortfall > plan.Shortfall {
		return plan.Steps
	}

	return later.Steps
}

// outsideClosed returns the limits with the closed time cut out, and the closed steps.
func outsideClosed(limits, closed []flex.Step) []flex.Step {
	out := slices.Clone(closed)
	for _, l := range limits {
		at := l.From
		for _, c := range closed {
			shut := c.Meet(l.Span)
			if shut.Empty() {
				continue
			}

			if open := (flex.Span{From: at, To: shut.From}); !open.Empty() {
				out = append(out, flex.Step{Span: open, Limit: l.Limit})
			}

			at = flex.Later(at, shut.To)
		}

		if rest := (flex.Span{From: at, To: l.To}); !rest.Empty() {
			out = append(out, flex.Step{Span: rest, Limit: l.Limit})
		}
	}

	slices.SortFunc(out, func(a, b flex.Step) int {
		return a.From.Compare(b.From)
	})

	return out
}

// replanTimes returns the instants at which sessions are planned again, in order: of each user's
// changes, and of the end of each stay.
func replanTimes(sessions []*replannedSession, until time.Time) []time.Time {
	var at []time.Time
	for _, s := range sessions {
		for i := range s.schedules {
			if s.byUser(i) {
				at = append(at, s.schedules[i].MadeAt)
			}
		}
		at = append(at, s.To)
	}

	at = slices.DeleteFunc(at, func(t time.Time) bool {
		return !t.Before(until)
	})
	slices.SortFunc(at, time.Time.Compare)

	return slices.CompactFunc(at, time.Time.Equal)
}

// planningOrder returns the sessions that have a schedule at an instant, in the order in which
// they are planned: charge-now first, then the earliest ready-by, then the earliest plug-in.
func planningOrder(sessions []*replannedSession, at time.Time) []*replannedSession {
	due := map[flex.SessionID]time.Time{}
	var order []*replannedSession
	for _, s := range sessions {
		schedule := s.newest(at)
		if schedule == nil || !s.Contains(at) {
			continue
		}

		due[s.session] = schedule.From.ReadyBy
		if schedule.From.ChargeNow.Contains(at) {
			due[s.session] = at
		}

		order = append(order, s)
	}

	slices.SortFunc(order, func(a, b *replannedSession) int {
		return cmp.Or(
			due[a.session].Compare(due[b.session]),
			a.From.Compare(b.From),
			bytes.Compare(a.session[:], b.session[:]),
		)
	})

	return order
}

// fuseFrom returns the limits of a main fuse from an instant until the latest need of the
// sessions. Where no fuse was set there is no limit.
func fuseFrom(
	fuse flex.History[flex.Supply],
	at time.Time,
	sessions []*replannedSession,
) []flex.Step {
	from := at.Truncate(time.Second)
	end := from
	for _, s := range sessions {
		e := &s.newest(at).From
		end = flex.Later(end, flex.Later(e.ReadyBy, e.ChargeNow.To))
	}

	var steps []flex.Step
	for i, f := range fuse {
		span := flex.Span{From: f.At, To: end}
		if i+1 < len(fuse) {
			span.To = fuse[i+1].At
		}

		span = span.Meet(flex.Span{From: from, To: end})
		if f.Is.Set && !span.Empty() {
			steps = append(steps, flex.Step{Span: span, Limit: f.Is.Import})
		}
	}

	return steps
}

// remainingLimits returns the limits that remain beside the plan of an asset with this power.
func remainingLimits(limits, plan []flex.Step, power flex.Watts) []flex.Step {
	var remaining []flex.Step
	for _, l := range limits {
		at := l.From
		for _, p := range plan {
			drawn := min(p.Limit, power)
			span := p.Meet(l.Span)
			if span.Empty() || drawn <= 0 {
				continue
			}

			before := flex.Span{From: at, To: span.From}
			if !before.Empty() {
				remaining = append(remaining, flex.Step{Span: before, Limit: l.Limit})
			}

			remaining = append(remaining, flex.Step{Span: span, Limit: max(0, l.Limit-drawn)})
			at = span.To
		}

		if rest := (flex.Span{From: at, To: l.To}); !rest.Empty() {
			remaining = append(remaining, flex.Step{Span: rest, Limit: l.Limit})
		}
	}

	return remaining
}

// dropUnusable returns the limits with zero in place of those that are below the least power
// of an asset.
func dropUnusable(limits []flex.Step, least flex.Watts) []flex.Step {
	limits = slices.Clone(limits)
	for i := range limits {
		if limits[i].Limit < least {
			limits[i].Limit = 0
		}
	}

	return limits
}

// leastPower returns the least power at which an asset of this rated power charges.
func leastPower(power flex.Watts) flex.Watts {
	return flex.LeastPower(flex.PhasesOf(0, &power))
}
