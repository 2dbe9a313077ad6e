package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// keepCalled has a car that is plugged in anew leave out the time of the instructions that called its charger to draw less before: they
// call an asset once, and no other may call it meanwhile. What the car before it left out later, so as not to come back with others, is
// no matter of this one.
func keepCalled(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	e *store.PlanInputs,
) error {
	windows, err := tx.CalledWindows(ctx, asset)
	if err != nil {
		return fmt.Errorf("read what calls the asset: %w", err)
	}

	e.Closed = instruct.Union(nil, windows)

	return nil
}

// releaseTries is how often released cars are planned again whose schedules others have replaced meanwhile.
const releaseTries = 5

// releaseCars is ReleaseWithin of cars. On PostgreSQL an event, or new prices, may put another schedule of a car in force after it was
// read here. That one still leaves out the time of the call: the car is planned once more.
func (s *Service) releaseCars(
	ctx context.Context,
	tx *store.Tx,
	assets []flex.AssetID,
) error {
	for range releaseTries {
		next, err := s.planReleased(ctx, tx, assets)
		if err != nil || len(next) == 0 {
			return err
		}

		assets, err = s.replaceReleased(ctx, tx, next)
		if err != nil || len(assets) == 0 {
			return err
		}
	}

	return nil
}

// planReleased plans cars without what they left out for instructions that call them no more.
func (s *Service) planReleased(
	ctx context.Context,
	tx *store.Tx,
	assets []flex.AssetID,
) ([]store.Replacement, error) {
	found, err := tx.ClosedAssets(ctx, assets)
	if err != nil {
		return nil, err
	}

	held, err := tx.ClosedFor(ctx, assets)
	if err != nil {
		return nil, err
	}

	ps, err := prices(ctx, tx, tx.Now())
	if err != nil {
		return nil, err
	}

	from := tx.Now().Truncate(time.Second)
	var solver charge.Solver
	var next []store.Replacement
	for i := range found {
		p := &found[i]
		if !p.Current.From.ReadyBy.After(from) {
			continue
		}

		e := inputsReleased(p, from, held[p.Current.AssetID])
		problem := problemOf(e, from, ps)
		plan := solver.Solve(&problem)
		r, ok := s.replacement(ctx, tx.Now(), p, e, &problem, &plan)
		if ok {
			next = append(next, r)
		}
	}

	return next, nil
}

// inputsReleased are a car's inputs from an instant on without what it left out for instructions that call it no more; some still do.
func inputsReleased(
	p *store.ScheduledAsset,
	from time.Time,
	held []flex.Span,
) store.PlanInputs {
	e := inputsAt(p, from)
	e.Closed = instruct.Common(e.Closed, instruct.Union(nil, held))
	e.Ramp = continuedRamp(e.Ramp, true) // many cars come back at once

	return e
}

// replaceReleased puts the schedules of released cars in force, and returns the cars that have another one since they were planned.
func (s *Service) replaceReleased(
	ctx context.Context,
	tx *store.Tx,
	next []store.Replacement,
) ([]flex.AssetID, error) {
	if err := s.replaceInParts(ctx, tx, next); err != nil {
		return nil, err
	}

	cars := make([]flex.AssetID, len(next))
	for i := range next {
		cars[i] = next[i].Current.AssetID
	}

	inForce, err := tx.JustCalled(ctx, cars)

	return slices.DeleteFunc(cars, func(id flex.AssetID) bool { return inForce[id] }), err
}
