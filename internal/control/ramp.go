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

// DefaultRamp is how much planned power may move in a minute: 50 MW in total, 10 MW in each
// GSP group and each constraint group. A smaller fleet or group has no ramp.
var DefaultRamp = flex.Ramp{All: 50_000_000, Group: 10_000_000}

// spreads are the times over which starts are spread.
type spreads struct {
	all    time.Duration
	groups map[store.RampGroup]time.Duration // of groups that need a longer one
}

// computeSpreads computes the times over which starts are spread, and returns the groups whose
// ramp cannot be observed even with the longest one.
func computeSpreads(
	fleets map[store.RampGroup]ramp.Fleet,
	most flex.Ramp,
) (spreads, []store.RampGroup) {
	var tooLarge []store.RampGroup
	whole := store.RampGroup{}
	all, observed := ramp.Spread(fleets[whole], most.All)
	if !observed {
		tooLarge = append(tooLarge, whole)
	}

	s := spreads{all: all, groups: map[store.RampGroup]time.Duration{}}
	for g, f := range fleets {
		if g == whole {
			continue
		}

		spread, observed := ramp.Spread(f, most.Group)
		if !observed {
			tooLarge = append(tooLarge, g)
		}
		if spread > all {
			s.groups[g] = spread
		}
	}

	return s, tooLarge
}

// equal reports whether starts are spread as before; before is nil if they were not spread.
func (s *spreads) equal(before *spreads) bool {
	if before == nil || before.all != s.all {
		return false
	}
	return maps.Equal(before.groups, s.groups)
}

// spreadOf returns the time over which the starts of an asset in some groups are spread: the
// longest of theirs.
func (s *spreads) spreadOf(groups []store.RampGroup) time.Duration {
	spread := s.all
	for _, g := range groups {
		spread = max(spread, s.groups[g])
	}

	return spread
}

// SetRamp measures the fleet that may start at once, of all organisations and of each group,
// and sets the times over which starts are spread. They apply to cars that are plugged in from
// then on.
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
	now, tooLarge := computeSpreads(fleets, s.Ramp)
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

// warnTooLarge logs the groups whose ramp cannot be observed; the whole fleet has no name.
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

// rampOf returns the ramp of an asset's plan. It is fixed when the session begins, so that no
// plan changes because the fleet grew. A change without an event takes effect at the asset's
// own half-hour; under caps only if the fleet is planned as one, which reserves headroom for
// it.
func (s *Service) rampOf(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	trigger Trigger,
	capped bool,
) (*store.Ramp, error) {
	if c.Open() && c.Current.Generation > 0 {
		return rampContinuing(c.Current.From.Ramp, trigger != ByEvent && !capped), nil
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

// planInputs returns the present inputs of an asset's plan within some limits, and the known
// prices.
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

	err = s.setLimitsAndRamp(ctx, tx, &e, c, why.trigger, u)

	return e, ps, err
}

// setLimitsAndRamp sets whether a plan has its learned power as its limit, and its ramp. A
// plan behind a main fuse has no ramp, as the fuse is shared to the second.
func (s *Service) setLimitsAndRamp(
	ctx context.Context,
	tx *store.Tx,
	e *store.PlanInputs,
	c *store.PlanningState,
	trigger Trigger,
	u *limits,
) error {
	limitToLearned(e, u.headroom != nil || u.site != nil)
	if u.site != nil {
		raiseToMinPower(e)
		return nil
	}
	if u.headroom != nil && u.headroom.fuse {
		return nil
	}

	var err error
	e.Ramp, err = s.rampOf(ctx, tx, c, trigger, u.headroom != nil)

	return err
}

// rampContinuing returns a ramp with or without the property that the asset continues what it
// does until its own next half-hour.
func rampContinuing(r *store.Ramp, continues bool) *store.Ramp {
	if r == nil {
		return nil
	}
	return &store.Ramp{
		Offset: r.Offset,
		Spread: r.Spread,
		Kept:   continues,
	}
}

// rampUntilClosed returns the ramp of an asset's plan, limited so that the asset continues
// what it does at most until an instruction closes its time: the continuing charge itself
// would not be closed.
func rampUntilClosed(e *store.PlanInputs, from time.Time) *store.Ramp {
	closed := closedAfter(e.Closed, from)
	if e.Ramp == nil || len(closed) == 0 {
		return e.Ramp
	}

	r := *e.Ramp
	r.Until = sooner(r.Until, flex.Later(closed[0].From, from))

	return &r
}

// applyRamp applies a ramp to a problem.
func applyRamp(p charge.Problem, r *store.Ramp) charge.Problem {
	if r == nil {
		return p
	}

	p = ramp.Apply(p, r.Offset, r.Spread)
	if r.Kept {
		p = ramp.Keep(p, r.Offset, r.Until)
	}

	return p
}

// withLimits applies the caps that a schedule was made under to its problem. Without caps the
// time that a ramp leaves to others stays closed.
func withLimits(
	p charge.Problem,
	e *store.PlanInputs,
	caps []flex.Step,
) charge.Problem {
	if len(caps) > 0 || e.Ramp == nil {
		p.Limits = caps
	}
	return p
}

// addRampReasons sets the reasons of periods that a ramp decided, in an explanation.
func (x *Explanation) addRampReasons() {
	if x.From.Ramp == nil {
		return
	}

	for i := range x.Plan.Periods {
		q := &x.Plan.Periods[i]
		if q.Reason == charge.CapClosed && !x.isCapped(q.Span) && len(x.From.Closed) == 0 {
			q.Reason = charge.LeftToOthers
		} else if q.Reason == charge.Now && x.From.ChargeNow.Empty() {
			q.Reason = charge.GoesOn
		}
	}
}

// isCapped reports whether a cap limits the asset in a span.
func (x *Explanation) isCapped(s flex.Span) bool {
	return slices.ContainsFunc(x.Caps, func(c BindingCap) bool {
		return !c.Meet(s).Empty()
	})
}

// spreadSentence describes the effect of a ramp on a schedule; empty without one.
func spreadSentence(r *store.Ramp) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("Its half-hours begin %s later than the market's, so that the fleet does not begin and end in one second: each car has its own time within %d minutes. ",
		r.Offset, int(r.Spread.Minutes()))
}

// rampInputs returns the inputs of a plan that explain its ramp.
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
