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

// planChange is what is to become of an asset's schedule.
type planChange struct {
	next store.Replacement // of nothing if the one in force is kept
	// when to look again; zero for not before the next cause
	again time.Time
}

// market is what assets are compared by: the instant, and the prices known then.
type market struct {
	now    time.Time
	prices []flex.PricedPeriod
	// the sites whose main fuse can bind, by their cars; only where it is foreseen what prices would do
	sites map[flex.AssetID]*behindFuse
}

// snapshot reads assets on a snapshot of the store, and the market that they are to be compared by if there
// are any.
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

// needsSitePlan reports whether a schedule was made with the others of its site, for its main fuse or its batteries, or for a car
// that may discharge, or was followed late: it takes more to plan it than its schedule says.
func needsSitePlan(p *store.ScheduledAsset) bool {
	if p.Current.HasTail() || plannedAsOne(&p.Current.From) {
		return true
	}
	return !p.MendedAt.IsZero() || p.Current.From.Discharge != nil
}

// replanFused plans again those of the assets whose site is planned as one, for its main fuse or its
// batteries, and returns the others. One that cannot be planned holds up no other, and is named.
func (s *Service) replanFused(
	ctx context.Context,
	org flex.OrgID,
	found []store.ScheduledAsset,
	t *tally,
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

// readable parts what can be read from the assets whose schedule cannot.
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

// replaceAll commits replacements that were planned on the same prices, as far as the main fuses of their sites
// bear them, and returns how many. Where a fuse's site cannot be read its cars are marked instead.
func (s *Service) replaceAll(
	ctx context.Context,
	tx *store.Tx,
	prices []flex.PricedPeriod,
	next []store.Replacement,
) (int, error) {
	if len(next) == 0 {
		return 0, nil
	}

	kept, err := s.keepFuses(ctx, tx, prices, next)
	if err != nil {
		return 0, fmt.Errorf("hold what is sent against main fuses: %w", err)
	}

	next = kept.dropKept(next)
	n, err := replaceKept(ctx, tx, prices, next)
	if err != nil {
		return 0, err
	}

	if err := tx.PutBindings(ctx, bindingsOf(next, kept.bindings)...); err != nil {
		return 0, err
	}

	return n, kept.follow(ctx, tx, s)
}

// replaceKept is replaceAll for what keeps every main fuse.
func replaceKept(
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
		return 0, fmt.Errorf("keep prices: %w", err)
	}

	for i := range next {
		next[i].Next.Curve = curve
	}

	return tx.Replace(ctx, next)
}

// errCapped says that nothing was committed because caps were set since: the fleet is planned together.
var errCapped = errors.New("caps were set meanwhile")

// replanAll plans assets again that were looked at before, and commits what is to be changed.
// One that an event has changed since is left as the event left it. One that cannot be read or planned is marked, so
// that it is tried again, and said to have failed, by itself. If they are a part of a wave, it ends with that. Under caps it commits
// nothing, and returns errCapped.
func (s *Service) replanAll(
	ctx context.Context,
	org flex.OrgID,
	m market,
	found []store.ScheduledAsset,
	t *tally,
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
			mine, err := tx.EndWavePart(ctx, *part)
			if err != nil || !mine {
				return err
			}
		}

		// a copy, as this may run again and main fuses change what is sent
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

// compareAll plans assets again. It returns what is to be changed, and of the others when they are to
// be planned again. Those of a wave for which that is not known are left out. An asset at which planning panics is
// added to those that failed, and the others are planned all the same.
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
			solver = charge.Solver{} // it may be left half written
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

// tryToCompare is compareOne with a panic as an error.
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

// replanAt has sessions planned again, at an instant each.
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

// compareOne plans one asset again and says whether the new schedule replaces the one in
// force.
func (s *Service) compareOne(
	ctx context.Context,
	p *store.ScheduledAsset,
	m market,
	solver *charge.Solver,
) planChange {
	from := m.now.Truncate(time.Second)
	if !p.Current.From.ReadyBy.After(from) {
		return planChange{} // past its end, the asset is free
	}

	e := inputsAt(p, from)
	e.Ramp = continuedRamp(e.Ramp, true)
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

// deliveredBy is what an asset has taken by its schedule in force until an instant. One that failed, and was followed later, counts
// from when that was reported.
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

// inputsAt is what an asset's schedule was made from, as it is at an instant.
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

	chargeAlone(&e, p, from)
	e.Closed = closedAhead(e.Closed, from)
	e.Origins = passed(e.Origins)
	e.Ramp = continuedRamp(e.Ramp, false)
	limitByRate(&e, false)

	return e
}
