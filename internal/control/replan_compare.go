package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// planChange is the result of comparing an asset's new plan with its schedule in force.
type planChange struct {
	next store.Replacement // its ScheduledAsset is nil if the schedule in force does not change
	// when to compare again; zero for not before the next cause
	again time.Time
}

// market is the instant at which assets are compared, and the prices known then.
type market struct {
	now    time.Time
	prices []flex.PricedPeriod
	// the sites whose main fuse can limit their cars, by car; set only to forecast what prices
	// would change
	sites map[flex.AssetID]*sitePlan
}

// snapshot reads assets on a snapshot of the store. If there are any, it also reads the prices
// that they are to be compared on.
func (s *Service) snapshot(
	ctx context.Context,
	org flex.OrgID,
	read func(*store.Tx) (any bool, err error),
) (market, error) {
	var m market
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		m.now = tx.Now()

		any, err := read(tx)
		if err != nil || !any {
			return err
		}

		m.prices, err = prices(ctx, tx, m.now)
		return err
	})

	return m, err
}

// needsSitePlan reports whether a schedule cannot be planned from its own inputs alone. That
// is so if it was planned together with other assets of its site (for the main fuse or
// batteries), if its car may discharge, or if the charger reported it as failed and followed
// it later.
func needsSitePlan(p *store.ScheduledAsset) bool {
	if p.Current.HasTail() || plannedAsOne(&p.Current.From) {
		return true
	}
	return !p.MendedAt.IsZero() || p.Current.From.Discharge != nil
}

// replanFused plans the assets that needsSitePlan reports, each in its own transaction. It
// returns the other assets, and the ids of those that could not be planned.
func (s *Service) replanFused(
	ctx context.Context,
	org flex.OrgID,
	found []store.ScheduledAsset,
	t *runCounts,
) ([]store.ScheduledAsset, []flex.AssetID) {
	if !slices.ContainsFunc(found, func(p store.ScheduledAsset) bool {
		return needsSitePlan(&p)
	}) {
		return found, nil
	}

	var (
		rest   []store.ScheduledAsset
		failed []flex.AssetID
	)

	for i := range found {
		if !needsSitePlan(&found[i]) {
			rest = append(rest, found[i])
			continue
		}

		asset := found[i].Current.AssetID
		if err := s.refresh(ctx, org, byMarket, t, asset); err != nil {
			failed = append(failed, asset)
		}
	}

	return rest, failed
}

// readable returns the assets whose schedule can be read, and the ids of the others.
func readable(
	found []store.ScheduledAsset,
) ([]store.ScheduledAsset, []flex.AssetID) {
	unread := func(p store.ScheduledAsset) bool { return p.Unread != nil }
	if !slices.ContainsFunc(found, unread) {
		return found, nil
	}

	var (
		read []store.ScheduledAsset
		not  []flex.AssetID
	)

	for i := range found {
		if unread(found[i]) {
			not = append(not, found[i].Current.AssetID)
		} else {
			read = append(read, found[i])
		}
	}

	return read, not
}

// replaceAll commits replacements that were planned on the same prices, as far as the main
// fuses of their sites allow, and returns how many. If a site with a fuse cannot be read, its
// cars are marked instead.
func (s *Service) replaceAll(
	ctx context.Context,
	tx *store.Tx,
	prices []flex.PricedPeriod,
	next []store.Replacement,
) (int, error) {
	if len(next) == 0 {
		return 0, nil
	}

	fused, err := s.fitToFuses(ctx, tx, prices, next)
	if err != nil {
		return 0, fmt.Errorf("check new schedules against main fuses: %w", err)
	}

	next = fused.dropSkipped(next)
	n, err := replaceChecked(ctx, tx, prices, next)
	if err != nil {
		return 0, err
	}

	if err := tx.PutBindings(ctx, bindingsOf(next, fused.bindings)...); err != nil {
		return 0, err
	}

	return n, fused.follow(ctx, tx, s)
}

// replaceChecked is replaceAll for schedules that were checked against the main fuses.
func replaceChecked(
	ctx context.Context,
	tx *store.Tx,
	prices []flex.PricedPeriod,
	next []store.Replacement,
) (int, error) {
	if len(next) == 0 {
		return 0, nil
	}

	curve, err := tx.AddCurve(ctx, prices)
	if err != nil {
		return 0, fmt.Errorf("store the prices: %w", err)
	}

	for i := range next {
		next[i].Next.Curve = curve
	}

	return tx.Replace(ctx, next)
}

// errCapped says that nothing was committed because caps were set meanwhile. The fleet must
// then be planned as one problem.
var errCapped = errors.New("caps were set meanwhile")

// replanAll plans assets that were read on a snapshot, and commits the changes. If an event
// has changed an asset meanwhile, the event's schedule is not replaced. An asset that cannot
// be read or planned is marked, to be tried again. If the assets are a part of a wave, the
// part ends in the same transaction. Under caps nothing is committed, and errCapped is
// returned.
func (s *Service) replanAll(
	ctx context.Context,
	org flex.OrgID,
	m market,
	found []store.ScheduledAsset,
	t *runCounts,
	part *store.WavePart,
) error {
	found, failed := readable(found)
	found, refused := s.replanFused(ctx, org, found, t)
	failed = append(failed, refused...)

	next, later := s.compareAll(ctx, found, m, part != nil, &failed)
	changed := 0
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		changed = 0

		_, capped, err := tx.LockCaps(ctx)
		if err == nil && capped {
			err = errCapped
		}
		if err != nil {
			return err
		}

		if part != nil {
			leased, err := tx.EndWavePart(ctx, *part)
			if err != nil || !leased {
				return err
			}
		}

		// A copy: main fuses may change the schedules, and the transaction may run again.
		changed, err = s.replaceAll(ctx, tx, m.prices, slices.Clone(next))
		if err != nil {
			return err
		}

		if err := tx.MarkDue(ctx, failed...); err != nil {
			return err
		}

		return replanAt(ctx, tx, later)
	})

	t.planned += len(found)
	t.changed += changed

	return err
}

// compareAll plans assets on one snapshot. It returns the replacements, and the sessions of
// the other assets by the time at which they are to be compared again. An asset of a wave that
// has no such time is left out. If planning an asset panics, its id is added to failed, and
// the others are planned nevertheless.
func (s *Service) compareAll(
	ctx context.Context,
	found []store.ScheduledAsset,
	m market,
	wave bool,
	failed *[]flex.AssetID,
) ([]store.Replacement, map[time.Time][]flex.SessionID) {
	var solver charge.Solver
	next := make([]store.Replacement, 0, len(found))
	later := map[time.Time][]flex.SessionID{}

	for i := range found {
		v, err := s.tryToCompare(ctx, &found[i], m, &solver)
		if err != nil {
			*failed = append(*failed, found[i].Current.AssetID)
			solver = charge.Solver{} // the panic may have left it inconsistent
			continue
		}

		if v.next.ScheduledAsset != nil {
			next = append(next, v.next)
		} else if !v.again.IsZero() || !wave {
			later[v.again] = append(later[v.again], found[i].Session)
		}
	}

	return next, later
}

// tryToCompare is compareOne with a panic returned as an error.
func (s *Service) tryToCompare(
	ctx context.Context,
	p *store.ScheduledAsset,
	m market,
	solver *charge.Solver,
) (v planChange, err error) {
	defer flex.Recover(&err)

	v = s.compareOne(ctx, p, m, solver)

	return v, nil
}

// replanAt marks sessions to be compared with the market again, each at its instant.
func replanAt(
	ctx context.Context,
	tx *store.Tx,
	later map[time.Time][]flex.SessionID,
) error {
	for at, sessions := range later {
		if err := tx.CompareAgain(ctx, at, sessions...); err != nil {
			return err
		}
	}

	return nil
}

// compareOne plans one asset on a snapshot, and decides whether the plan replaces the schedule
// in force.
func (s *Service) compareOne(
	ctx context.Context,
	p *store.ScheduledAsset,
	m market,
	solver *charge.Solver,
) planChange {
	from := m.now.Truncate(time.Second)
	if !p.Current.From.ReadyBy.After(from) {
		return planChange{} // after ready-by the charger is unlimited
	}

	e := inputsAt(p, from)
	e.Ramp = rampContinuing(e.Ramp, true)
	problem := problemOf(e, from, m.prices)
	answer := solver.Solve(&problem)

	decision := s.decide(ctx, p.Current.AssetID, &Candidate{
		Trigger:  ByMarket,
		Now:      m.now,
		MarketAt: p.MarketAt,
		Current:  p.Current.Steps,
		Problem:  &problem,
		Plan:     &answer,
	})
	if !decision.Replace {
		return planChange{again: decision.Again}
	}

	var v planChange
	v.next = store.Replacement{
		ScheduledAsset: p,
		Next: store.Schedule{
			Cause: store.CauseMarket,
			From:  e,
			Value: decision.Value,
		},
	}

	v.next.Next.Steps = answer.Steps

	return v
}

// deliveredBy returns the energy that an asset has drawn by its schedule in force until an
// instant. If the schedule failed and was followed later, only the time from that later report
// counts.
func deliveredBy(p *store.ScheduledAsset, to time.Time) flex.WattHours {
	if p.Taken {
		return planned(&p.Current, to)
	}
	if !p.Followed() {
		return 0
	}

	since := flex.Span{From: p.MendedAt.Truncate(time.Second), To: to}

	return flex.WattHours(scheduledEnergy(&p.Current, since) / 3600)
}

// inputsAt returns the inputs of an asset's schedule, updated to an instant.
func inputsAt(p *store.ScheduledAsset, from time.Time) store.PlanInputs {
	e := p.Current.From
	e.Delivered += deliveredBy(p, from)
	e.ProfilePhases = p.ProfilePhases
	if p.Followed() {
		e.Running = chargesAt(p.Current.Steps, from)
	}

	if !e.ChargeNow.To.After(from) {
		e.ChargeNow = flex.Span{}
	}

	dropDischarge(&e, p, from)
	e.Closed = closedAfter(e.Closed, from)
	e.Origins = withoutRefused(e.Origins)
	e.Ramp = rampContinuing(e.Ramp, false)
	limitToLearned(&e, false)

	return e
}
