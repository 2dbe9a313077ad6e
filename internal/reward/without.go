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

// Without the market the cars of a site would have kept its main fuse too. So where they can exceed it together, their plans without
// the market are made together: all of them again whenever a user changed one, or a car left, and one after the other, each within
// what those before it leave of the fuse.

// connectedMost is how far before a session those are looked for with which it is connected, as each overlaps the next.
const connectedMost = 3 * 24 * time.Hour

// togetherMost is how many assets are planned together. The work grows with the square of their number and with each change, so that where
// more share a fuse, as in a depot, each is planned within an equal share of it.
const togetherMost = 20

// notTheUsers are the causes of schedules that were made without a change by the user.
var notTheUsers = []store.Cause{
	store.CauseMarket,
	store.CauseInputs,
	store.CauseCaps,
	store.CauseCalled,
}

// plannedStay is a session, with what would have been planned in it without the market.
type plannedStay struct {
	flex.Span
	session   flex.SessionID
	asset     flex.AssetID
	schedules []store.Schedule // that were made in it, oldest first
	without   []settle.Dispatch
	nominated []settle.Dispatch
}

// plansWithout plans a session again without the market's prices.
func plansWithout(
	ctx context.Context,
	tx *store.Tx,
	r *store.SessionSettlement,
	schedules []store.Schedule,
) (*plannedStay, error) {
	own := &plannedStay{
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
	stays := []*plannedStay{own}
	if least := leastFuse(supply, flex.Span{To: r.To}); least < flex.Unbounded {
		found, err := connected(ctx, tx, r.SiteID, own)
		if err != nil {
			return own, err
		}

		if n := numAssets(found); n > togetherMost {
			supply = shareOf(supply, n)
		} else {
			stays, err = sessionsPlanned(ctx, tx, own, found)
			if err != nil {
				return own, err
			}
		}
	}

	planTogether(stays, supply, r.To)

	return own, nil
}

// numAssets is how many assets sessions are of.
func numAssets(sessions []store.Session) int {
	assets := map[flex.AssetID]bool{}
	for i := range sessions {
		assets[sessions[i].AssetID] = true
	}

	return len(assets)
}

// shareOf is an equal share of a main fuse, and no less than a charger of one phase takes.
func shareOf(
	fuse flex.History[flex.Supply],
	assets int,
) flex.History[flex.Supply] {
	share := slices.Clone(fuse)
	for i := range share {
		if whole := share[i].Is.Import; share[i].Is.Set {
			share[i].Is.Import = min(whole, max(whole/flex.Watts(assets), flex.LeastPower(1)))
		}
	}

	return share
}

// connected are the sessions of a site that overlap one, or overlap one of these, until its end, with itself.
func connected(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	own *plannedStay,
) ([]store.Session, error) {
	span := own.Span
	earliest := span.From.Add(-connectedMost)

	var found []store.Session
	for again := true; again; {
		var err error
		found, err = tx.PlannedSessions(ctx, site, span)
		if err != nil {
			return nil, err
		}

		again = false
		for i := range found {
			from := flex.Later(found[i].PluggedInAt, earliest)
			if from.Before(span.From) {
				span.From, again = from, true
			}
		}
	}

	return found, nil
}

// sessionsPlanned reads the schedules of sessions that are connected with one.
func sessionsPlanned(
	ctx context.Context,
	tx *store.Tx,
	own *plannedStay,
	found []store.Session,
) ([]*plannedStay, error) {
	stays := []*plannedStay{own}
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

		stays = append(stays, &plannedStay{
			Span:      flex.Span{From: s.PluggedInAt, To: end},
			session:   s.ID,
			asset:     s.AssetID,
			schedules: schedules,
		})
	}

	return stays, nil
}

// planTogether plans stays without the market until an instant, within a main fuse where they can exceed it.
func planTogether(
	stays []*plannedStay,
	fuse flex.History[flex.Supply],
	until time.Time,
) {
	if !canExceed(stays, fuse, until) {
		for _, s := range stays {
			s.planAlone()
		}
		return
	}

	for _, at := range changes(stays, until) {
		order := inOrder(stays, at)
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

// planWithin plans a stay from an instant on within limits, and returns what it leaves of them: for what would have been dispatched,
// and for what is nominated.
func (s *plannedStay) planWithin(
	at time.Time,
	without, nominated []flex.Step,
) (withoutLeft, nominatedLeft []flex.Step) {
	made := s.newest(at)
	from := at.Truncate(time.Second)
	problem := made.From.Problem(from, chargedUnder(made, s.without, at))
	least := min(problem.Power, leastPower(problem.Power))

	problem.Limits = atLeast(without, least)
	dispatched := spreadWithin(made, problem)
	s.without = append(s.without, settle.Dispatch{At: at, Steps: dispatched})

	problem = made.From.Problem(from, chargedUnder(made, s.nominated, at))
	problem.Limits = atLeast(nominated, least)
	planned := charge.Counterfactual(problem).Steps
	s.nominated = append(s.nominated, settle.Dispatch{At: at, Steps: planned})

	return leave(without, dispatched, problem.Power), leave(nominated, planned, problem.Power)
}

// canExceed reports whether the assets of stays can together draw more than the fuse carries.
func canExceed(
	stays []*plannedStay,
	fuse flex.History[flex.Supply],
	until time.Time,
) bool {
	most := map[flex.AssetID]flex.Watts{}
	span := flex.Span{From: until, To: until}
	for _, s := range stays {
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

// leastFuse is the least that a main fuse carried at any time of a span; unbounded where none was set.
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

// planAlone plans a stay that no fuse bounds.
func (s *plannedStay) planAlone() {
	for i := range s.schedules {
		made := &s.schedules[i]
		if !s.byUser(i) {
			continue
		}

		from := made.Steps[0].From
		problem := made.From.Problem(from, chargedUnder(made, s.without, made.MadeAt))
		s.without = append(s.without, settle.Dispatch{
			At:    made.MadeAt,
			Steps: charge.Solve(asSpread(made, problem)).Steps,
		})

		problem = made.From.Problem(from, chargedUnder(made, s.nominated, made.MadeAt))
		s.nominated = append(s.nominated, settle.Dispatch{
			At:    made.MadeAt,
			Steps: charge.Counterfactual(problem).Steps,
		})
	}
}

// byUser reports whether the i-th schedule would have been made without the market, too: only the user's own changes
// would have had another plan made.
func (s *plannedStay) byUser(i int) bool {
	return i == 0 || !slices.Contains(notTheUsers, s.schedules[i].Cause)
}

// newest is the schedule that would have been in force without the market, as it was made; nil for none yet.
func (s *plannedStay) newest(at time.Time) *store.Schedule {
	for i := range slices.Backward(s.schedules) {
		if s.byUser(i) && !s.schedules[i].MadeAt.After(at) {
			return &s.schedules[i]
		}
	}

	return nil
}

// chargedUnder is what plans would have charged of what a schedule is to bring, until an instant. With a ramp the plans without the market
// begin later than those that are nominated, so each has its own.
func chargedUnder(
	made *store.Schedule,
	plans []settle.Dispatch,
	at time.Time,
) flex.WattHours {
	return settle.Drawn(
		settle.InForce(plans, at),
		made.From.Power,
		flex.Span{From: made.From.CountFrom, To: at},
	)
}

// asSpread has a plan begin as much later without the market as it did with it.
func asSpread(made *store.Schedule, p charge.Problem) charge.Problem {
	if r := made.From.Ramp; r != nil {
		return ramp.Apply(p, r.Offset, r.Spread)
	}

	return p
}

// spreadWithin is a plan within its limits that begins as much later without the market as it did with it, if no more of the need
// is missed so.
func spreadWithin(made *store.Schedule, p charge.Problem) []flex.Step {
	plan := charge.Solve(p)
	if made.From.Ramp == nil {
		return plan.Steps
	}

	spread := asSpread(made, p)
	if made.From.Ramp.Spread > 0 { // the ramp has dropped the limits
		spread.Limits = closedIn(p.Limits, spread.Limits)
	}

	later := charge.Solve(spread)
	if later.Shortfall > plan.Shortfall {
		return plan.Steps
	}

	return later.Steps
}

// closedIn are limits, and in closed time nothing.
func closedIn(limits, closed []flex.Step) []flex.Step {
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

// changes are the instants at which stays are planned again, in order: those of what their users changed, and of the end of each.
func changes(stays []*plannedStay, until time.Time) []time.Time {
	var at []time.Time
	for _, s := range stays {
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

// inOrder are the stays at an instant in which something was planned, in the order in which they are planned: a charge-now first,
// then the earliest ready-by, then the earliest plug-in.
func inOrder(stays []*plannedStay, at time.Time) []*plannedStay {
	due := map[flex.SessionID]time.Time{}
	var order []*plannedStay
	for _, s := range stays {
		made := s.newest(at)
		if made == nil || !s.Contains(at) {
			continue
		}

		due[s.session] = made.From.ReadyBy
		if made.From.ChargeNow.Contains(at) {
			due[s.session] = at
		}

		order = append(order, s)
	}

	slices.SortFunc(order, func(a, b *plannedStay) int {
		return cmp.Or(
			due[a.session].Compare(due[b.session]),
			a.From.Compare(b.From),
			bytes.Compare(a.session[:], b.session[:]),
		)
	})

	return order
}

// fuseFrom is what a main fuse carries from an instant until the last of the stays is to be done; nothing bounds the time in which
// none was set.
func fuseFrom(
	fuse flex.History[flex.Supply],
	at time.Time,
	stays []*plannedStay,
) []flex.Step {
	from := at.Truncate(time.Second)
	end := from
	for _, s := range stays {
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

// leave is what is left of limits beside a plan of an asset of some power.
func leave(limits, plan []flex.Step, power flex.Watts) []flex.Step {
	var left []flex.Step
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
				left = append(left, flex.Step{Span: before, Limit: l.Limit})
			}

			left = append(left, flex.Step{Span: span, Limit: max(0, l.Limit-drawn)})
			at = span.To
		}

		if rest := (flex.Span{From: at, To: l.To}); !rest.Empty() {
			left = append(left, flex.Step{Span: rest, Limit: l.Limit})
		}
	}

	return left
}

// atLeast are limits of which those that an asset cannot charge with are none.
func atLeast(limits []flex.Step, least flex.Watts) []flex.Step {
	limits = slices.Clone(limits)
	for i := range limits {
		if limits[i].Limit < least {
			limits[i].Limit = 0
		}
	}

	return limits
}

// leastPower is the least that an asset of some power charges with.
func leastPower(power flex.Watts) flex.Watts {
	return flex.LeastPower(flex.PhasesOf(0, &power))
}
