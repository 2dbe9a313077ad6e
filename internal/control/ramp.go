package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/ramp"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// DefaultRamp is how much planned power may move in a minute: 50 MW of all that one flexd steers, 10 MW of each GSP
// group and each constraint group. A fleet or a group that is not larger is left as it is.
var DefaultRamp = flex.Ramp{All: 50_000_000, Group: 10_000_000}

// spreads are the times that starts are spread over.
type spreads struct {
	all    time.Duration
	groups map[store.RampGroup]time.Duration // where they are longer
}

// spreadsOf finds how long starts are spread over, and the parts of the fleet whose ramp cannot be kept.
func spreadsOf(
	fleets map[store.RampGroup]ramp.Fleet,
	most flex.Ramp,
) (spreads, []store.RampGroup) {
	var tooLarge []store.RampGroup
	whole := store.RampGroup{}
	all, kept := ramp.Spread(fleets[whole], most.All)
	if !kept {
		tooLarge = append(tooLarge, whole)
	}

	s := spreads{all: all, groups: map[store.RampGroup]time.Duration{}}
	for g, f := range fleets {
		if g == whole {
			continue
		}

		spread, kept := ramp.Spread(f, most.Group)
		if !kept {
			tooLarge = append(tooLarge, g)
		}
		if spread > all {
			s.groups[g] = spread
		}
	}

	return s, tooLarge
}

// equal reports whether starts are spread as before, which is nil for not at all.
func (s *spreads) equal(before *spreads) bool {
	if before == nil || before.all != s.all {
		return false
	}
	return maps.Equal(before.groups, s.groups)
}

// spreadOf is the time that the starts of what is of some groups are spread over: the longest of theirs.
func (s *spreads) spreadOf(groups []store.RampGroup) time.Duration {
	spread := s.all
	for _, g := range groups {
		spread = max(spread, s.groups[g])
	}

	return spread
}

// SetRamp looks how large the fleet is that may start at once, all organisations' and of each group, and sets the
// time that starts are spread over. Cars that are plugged in from then on are planned with it.
func (s *Service) SetRamp(ctx context.Context) (worker.Report, error) {
	if s.Ramp == (flex.Ramp{}) {
		return worker.Report{}, nil
	}

	var fleets map[store.RampGroup]ramp.Fleet
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		fleets, err = all.SteeredFleets(ctx)
		return err
	})
	if err != nil {
		return worker.Report{}, err
	}

	f := fleets[store.RampGroup{}]
	now, tooLarge := spreadsOf(fleets, s.Ramp)
	before := s.spreads.Swap(&now)
	note := ""
	if now.all > 0 || len(now.groups) > 0 {
		note = fmt.Sprintf(
			"%s kW of %d assets, spread over %v; %d groups over longer",
			kw(f.Power),
			f.Cars,
			now.all,
			len(now.groups),
		)
	}

	if len(tooLarge) > 0 && !now.equal(before) {
		s.warnTooLarge(ctx, fleets, tooLarge)
	}

	return worker.Report{Note: note}, nil
}

// warnTooLarge logs parts of the fleet whose ramp cannot be kept, the whole without a name.
func (s *Service) warnTooLarge(
	ctx context.Context,
	fleets map[store.RampGroup]ramp.Fleet,
	tooLarge []store.RampGroup,
) {
	for _, g := range tooLarge {
		most := s.Ramp.Group
		if g.Name == "" {
			most = s.Ramp.All
		}

		s.log().WarnContext(
			ctx,
			"the ramp cannot be kept: it is less than a thirtieth of the fleet a minute",
			"group",
			g.Name,
			"ramp_kw",
			kw(most),
			"fleet_kw",
			kw(fleets[g].Power),
		)
	}
}

// rampOf is how an asset's plan is spread: as its session began, so that no plan of it changes because the fleet
// grew. What changes without an event of its own changes at its own half-hour; under caps only when the fleet is
// planned together, which keeps headroom for it.
func (s *Service) rampOf(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	trigger Trigger,
	capped bool,
) (*store.Ramp, error) {
	if c.Open() && c.Current.Generation > 0 {
		return continuedRamp(c.Current.From.Ramp, trigger != ByEvent && !capped), nil
	}

	spreads := s.spreads.Load()
	if spreads == nil {
		return nil, nil
	}

	spread := spreads.all
	if len(spreads.groups) > 0 {
		groups, err := tx.RampGroups(ctx, c.Asset.SiteID)
		if err != nil {
			return nil, fmt.Errorf("read the groups of the site: %w", err)
		}

		spread = spreads.spreadOf(groups)
	}

	if spread <= 0 {
		return nil, nil
	}

	return &store.Ramp{
		Offset: ramp.Offset(c.Asset.ID, spread),
		Spread: spread,
	}, nil
}

// planInputs is what an asset is planned on now, and the prices that are known, under what binds it.
func (s *Service) planInputs(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	why replanReason,
	u *limits,
) (store.PlanInputs, []flex.PricedPeriod, error) {
	from := tx.Now().Truncate(time.Second)
	e, ps, err := inputsAndPrices(ctx, tx, c, from, why.intent)
	if err != nil {
		return e, nil, err
	}

	err = s.shape(ctx, tx, &e, c, why.trigger, u)

	return e, ps, err
}

// shape sets what power a plan is limited to, and how it is spread: but for what shares a main fuse, which is
// shared to the second.
func (s *Service) shape(
	ctx context.Context,
	tx *store.Tx,
	e *store.PlanInputs,
	c *store.PlanningState,
	trigger Trigger,
	u *limits,
) error {
	limitByRate(e, u.headroom != nil || u.site != nil)
	if u.site != nil {
		nameable(e)
		return nil
	}
	if u.headroom != nil && u.headroom.fuse {
		return nil
	}

	var err error
	e.Ramp, err = s.rampOf(ctx, tx, c, trigger, u.headroom != nil)

	return err
}

// continuedRamp is a ramp under which what an asset does continues until its own next half-hour, or not.
func continuedRamp(r *store.Ramp, goesOn bool) *store.Ramp {
	if r == nil {
		return nil
	}
	return &store.Ramp{
		Offset: r.Offset,
		Spread: r.Spread,
		Kept:   goesOn,
	}
}

// untilClosed is the ramp of an asset's plan, under which what it does goes on no longer than until an instruction has it leave
// time out: what goes on is not closed.
func untilClosed(e *store.PlanInputs, from time.Time) *store.Ramp {
	closed := closedAhead(e.Closed, from)
	if e.Ramp == nil || len(closed) == 0 {
		return e.Ramp
	}

	r := *e.Ramp
	r.Until = sooner(r.Until, flex.Later(closed[0].From, from))

	return &r
}

// spreadOut is a problem under a ramp.
func spreadOut(p charge.Problem, r *store.Ramp) charge.Problem {
	if r == nil {
		return p
	}

	p = ramp.Apply(p, r.Offset, r.Spread)
	if r.Kept {
		p = ramp.Keep(p, r.Offset, r.Until)
	}

	return p
}

// limited is a problem under the caps that a schedule was made under. Without any it keeps the time that a ramp
// leaves to others.
func limited(
	p charge.Problem,
	e *store.PlanInputs,
	caps []flex.Step,
) charge.Problem {
	if len(caps) > 0 || e.Ramp == nil {
		p.Limits = caps
	}
	return p
}

// sayRamp gives the periods that a ramp decided that reason, in an explanation of the schedule's plan.
func (x *Explanation) sayRamp() {
	if x.From.Ramp == nil {
		return
	}

	for i := range x.Plan.Periods {
		q := &x.Plan.Periods[i]
		if q.Reason == charge.CapClosed && !x.cappedIn(q.Span) && len(x.From.Closed) == 0 {
			q.Reason = charge.LeftToOthers
		} else if q.Reason == charge.Now && x.From.ChargeNow.Empty() {
			q.Reason = charge.GoesOn
		}
	}
}

// cappedIn reports whether a cap limits the asset back in a span.
func (x *Explanation) cappedIn(s flex.Span) bool {
	return slices.ContainsFunc(x.Caps, func(c BindingCap) bool {
		return !c.Meet(s).Empty()
	})
}

// spreadSentence says what a ramp does to a schedule; nothing if there is none.
func spreadSentence(r *store.Ramp) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("Its half-hours begin %s later than the market's, so that the fleet does not begin and end in one second: each car has its own time within %d minutes. ",
		r.Offset, int(r.Spread.Minutes()))
}

// rampInputs lists how a plan is spread.
func rampInputs(e *store.PlanInputs) []Input {
	if e.Ramp == nil {
		return nil
	}
	return []Input{{
		Name:   "begins_later_s",
		Value:  strconv.Itoa(int(e.Ramp.Offset.Seconds())),
		Origin: "operator",
	}}
}
