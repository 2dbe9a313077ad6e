package control

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Service applies the events of cars and chargers, and plans all assets.
type Service struct {
	DB  *store.DB
	Log *slog.Logger // nil means the default logger

	// how long records that are no longer needed are stored; zero means Retention
	Retain time.Duration

	// Ramp is how much planned power may move in a minute; zero lets it move at once.
	Ramp flex.Ramp

	// the number of marked sessions planned in one transaction; zero means dueMax. Tests set
	// it.
	dueAtOnce int

	// times over which starts are spread, set by SetRamp; nil before that ran
	spreads          atomic.Pointer[spreads]
	planned, changed atomic.Int64 // by background jobs, since the process began
	refused          atomic.Int64 // plans of sites, by guarded, since the process began

	followers followers
}

func (s *Service) log() *slog.Logger {
	if s.Log != nil {
		return s.Log
	}
	return slog.Default()
}

// planHorizon is how far ahead market prices are read.
const planHorizon = 48 * time.Hour

// prices returns the market's prices from the running half-hour on, up to the last known one.
func prices(
	ctx context.Context,
	tx *store.Tx,
	from time.Time,
) ([]flex.PricedPeriod, error) {
	ps, err := tx.Prices(ctx, flex.Span{From: from, To: from.Add(planHorizon)})
	for len(ps) > 0 && !ps[len(ps)-1].Known {
		ps = ps[:len(ps)-1]
	}

	return ps, err
}

// replanReason says why an asset is planned again, and what follows from it.
type replanReason struct {
	cause store.Cause
	must  bool // send a schedule even if it equals the one in force
	// the user has changed the intent: energy delivered before does not count towards it
	intent  bool
	trigger Trigger
}

// replan plans an asset that is plugged in again, and commits the new schedule if it replaces
// the one in force. The asset must be locked by LockToPlan.
func (s *Service) replan(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	why replanReason,
) error {
	inForce, ok, err := tx.LockCaps(ctx)
	if err != nil {
		return fmt.Errorf("lock the caps: %w", err)
	}

	if !ok && (c.Fuse > 0 || c.Battery) {
		if done, err := s.replanSite(ctx, tx, why, c); err != nil || done {
			return err
		}
	}

	if dischargeable(c) { // cars of a site share its export limit
		if err := tx.LockSite(ctx, c.Asset.SiteID); err != nil {
			return fmt.Errorf("lock the site: %w", err)
		}
	}

	under := &limits{}
	if ok {
		under, err = limitsOf(ctx, tx, inForce, c)
	}
	if err != nil {
		return err
	}

	schedule, ps, err := s.draft(ctx, tx, c, why, under)
	if err != nil {
		return err
	}
	if schedule == nil {
		if under.again.IsZero() {
			return nil
		}
		return tx.MarkAt(ctx, under.again, c.Asset.ID)
	}

	if err := s.putGuarded(ctx, tx, c, schedule, ps, under); err != nil {
		return err
	}

	return s.planAround(ctx, tx, c)
}

// limitsOf returns the limits of an asset that is planned on its own: its headroom under caps,
// and its site's main fuse.
func limitsOf(
	ctx context.Context,
	tx *store.Tx,
	inForce store.CapsInForce,
	c *store.PlanningState,
) (*limits, error) {
	u := &limits{}

	var err error
	u.headroom, err = headroomFor(
		ctx,
		tx,
		inForce,
		c,
		tx.Now().Truncate(time.Second),
	)
	if err != nil {
		return nil, err
	}
	u.site, err = siteAround(ctx, tx, c)

	return u, err
}

// putGuarded is putInForce for a schedule that was planned for one asset alone. It checks the
// schedule against the main fuse first; one that breaks the fuse is cut down, and the asset is
// planned again after MarketInterval.
func (s *Service) putGuarded(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	schedule *store.Schedule,
	ps []flex.PricedPeriod,
	under *limits,
) error {
	var refused []flex.AssetID
	if under.site != nil {
		refused = s.checkFuse(ctx, under.site, map[flex.AssetID]*store.Schedule{
			c.Asset.ID: schedule,
		})
	}

	if err := putInForce(ctx, tx, c, schedule, ps, under); err != nil {
		return err
	}

	return tx.MarkAt(ctx, tx.Now().Add(MarketInterval), refused...)
}

// putInForce commits the schedule of an asset that is plugged in, the prices that it was
// planned on, the effect of caps on it, and its push.
func putInForce(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	s *store.Schedule,
	ps []flex.PricedPeriod,
	under *limits,
) error {
	var err error
	s.Curve, err = tx.AddCurve(ctx, ps)
	if err != nil {
		return fmt.Errorf("store the prices: %w", err)
	}
	if err := tx.AddSchedule(ctx, &c.Session, s); err != nil {
		return fmt.Errorf("store the schedule: %w", err)
	}

	c.Current = *s

	if err := under.save(ctx, tx, s); err != nil {
		return fmt.Errorf("store the effect of caps: %w", err)
	}

	return tx.Enqueue(ctx, store.Push{
		AssetID: s.AssetID, EventID: s.EventID, Kind: store.SchedulePush,
		Generation: s.Generation, Value: s.Value, ExpiresAt: s.End(),
	})
}

// draft plans an asset that is plugged in, within its headroom under caps and behind its
// site's main fuse, and records their effect in u. It returns the schedule that replaces the
// one in force, with the prices it was planned on; nil if the one in force stays.
func (s *Service) draft(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	why replanReason,
	u *limits,
) (*store.Schedule, []flex.PricedPeriod, error) {
	from := tx.Now().Truncate(time.Second)
	e, ps, err := s.planInputs(ctx, tx, c, why, u)
	if err != nil {
		return nil, nil, err
	}

	problem := problemOf(e, from, ps)
	answer, car := u.solve(&problem, c, e)

	candidate := why.candidate(c, &e, &problem, &answer)
	candidate.Now, candidate.Exceeds = tx.Now(), u.site.mustReplace(car, c)
	replaces, err := s.replaces(ctx, tx, c, &e, u, &candidate)
	if err != nil || !replaces {
		return nil, nil, err
	}

	schedule := &store.Schedule{Cause: why.cause, From: e, Value: store.Urgent}
	schedule.Steps = u.site.withStepsAfterEnd(car, candidate.newSteps(), u.binding)

	return schedule, ps, nil
}

// replaces reports whether a plan replaces the asset's schedule in force; the planned
// discharge of a car is part of the comparison. If it does not, u.again is when to compare
// again.
func (s *Service) replaces(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	e *store.PlanInputs,
	u *limits,
	candidate *Candidate,
) (bool, error) {
	discharging, err := s.planDischarge(ctx, tx, c, e, candidate, u)
	if err != nil {
		return false, err
	}

	candidate.Discharging = discharging
	candidate.Exceeds = candidate.Exceeds || u.dischargeExceedsCaps(c, candidate)
	decision := s.decide(ctx, c.Asset.ID, candidate)
	u.again = decision.Again

	return decision.Replace, nil
}

// solve plans an asset within its caps and its site's main fuse. The asset is added to the
// cars of the site if it is not among them.
func (u *limits) solve(
	p *charge.Problem,
	c *store.PlanningState,
	e store.PlanInputs,
) (charge.Plan, *siteCar) {
	p.Exact = p.Exact || u.site != nil

	var plan charge.Plan
	*p, plan, u.binding = u.headroom.charge(*p)
	car := u.site.addPlannedCar(c, e)
	u.binding = u.site.fitToFuse(car, p, &plan, u.binding)

	return plan, car
}

// candidate returns the comparison of an asset's new plan with its schedule in force, for
// Decide.
func (why replanReason) candidate(
	c *store.PlanningState,
	e *store.PlanInputs,
	p *charge.Problem,
	plan *charge.Plan,
) Candidate {
	return Candidate{
		Trigger:    why.trigger,
		Required:   why.must || c.Current.Generation == 0 || rephased(e, &c.Current),
		Measured:   e.Learned != nil,
		MarketAt:   c.Session.MarketAt,
		Current:    c.Current.Charging(),
		Power:      c.Current.From.Power,
		Discharges: dischargeSteps(&c.Current, p.From),
		Problem:    p,
		Plan:       plan,
	}
}

// rephased reports whether the schedule in force was sent for other phases than its asset has
// now. It is then sent again, even with the same limits.
func rephased(e *store.PlanInputs, current *store.Schedule) bool {
	return current.Generation > 0 && e.ProfilePhases != current.From.ProfilePhases
}

// inputsAndPrices returns what a plan from an instant on is made from. Energy that was already
// delivered towards the same deadline counts; with a new intent, only energy from that instant
// on.
func inputsAndPrices(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	from time.Time,
	intent bool,
) (store.PlanInputs, []flex.PricedPeriod, error) {
	e, err := inputs(ctx, tx, c, from, intent)
	if err != nil {
		return e, nil, err
	}

	ps, err := prices(ctx, tx, from)
	if err != nil {
		return e, nil, fmt.Errorf("read prices: %w", err)
	}

	return e, ps, nil
}

// inputs is inputsAndPrices without the prices.
func inputs(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	from time.Time,
	intent bool,
) (store.PlanInputs, error) {
	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return store.PlanInputs{}, err
	}

	e := effective(c, org.Settings, from)
	s := &c.Current
	planned := c.Open() && s.Generation > 0
	if c.Open() && !planned {
		if err := closeForEarlierCalls(ctx, tx, c.Asset.ID, &e); err != nil {
			return e, err
		}
	}

	var g progress

	if planned {
		g, err = progressOf(ctx, tx, s, sessionSpan(c, from))
		if err != nil {
			return e, fmt.Errorf("read how the session went: %w", err)
		}
	}

	sameDeadline := !intent && s.From.ReadyBy.After(from)
	if sameDeadline && planned {
		countDelivered(&e, s, &g, from)
	}

	if err := applyLearnedRate(ctx, tx, c, &e, &g, from); err != nil {
		return e, fmt.Errorf("read what the asset really draws: %w", err)
	}

	err = readDischarge(ctx, tx, c, &e, &g, from, sameDeadline && planned)

	return e, err
}

// countDelivered counts the energy that was charged towards the same deadline under a
// schedule.
func countDelivered(
	e *store.PlanInputs,
	s *store.Schedule,
	g *progress,
	from time.Time,
) {
	e.CountFrom, e.Running = s.From.CountFrom, chargesAt(s.Steps, from)
	e.Delivered = g.delivered(flex.Span{From: e.CountFrom, To: from})
}

// chargesAt reports whether a schedule's steps let an asset charge at an instant.
func chargesAt(steps []flex.Step, at time.Time) bool {
	i := slices.IndexFunc(steps, func(s flex.Step) bool {
		return s.Contains(at)
	})
	return i >= 0 && steps[i].Limit > 0
}
