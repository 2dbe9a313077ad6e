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

// closeForEarlierCalls closes the windows of instructions for a car that is plugged in at a
// charger which they called to draw less. An instruction calls an asset once, and no other may
// call it meanwhile. Time after the window, which was closed so that the previous car did not
// return together with others, stays open.
func closeForEarlierCalls(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	e *store.PlanInputs,
) error {
	windows, err := tx.CalledWindows(ctx, asset)
	if err != nil {
		return fmt.Errorf("read the instructions that call the asset: %w", err)
	}

	e.Closed = instruct.Union(nil, windows)

	return nil
}

// releaseTries is how often released cars are planned again if other schedules of theirs came
// in force meanwhile.
const releaseTries = 5

// releaseCars is ReleaseWithin for cars. On PostgreSQL an event or new prices may put another
// schedule of a car in force after it was read here, in which the time of the call is still
// closed. Such a car is planned once more.
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

// planReleased plans cars without the time that was closed for instructions which no longer
// call them.
func (s *Service) planReleased(
	ctx context.Context,
	tx *store.Tx,
	assets []flex.AssetID,
) ([]store.Replacement, error) {
	found, err := tx.ClosedAssets(ctx, assets)
	if err != nil {
		return nil, err
	}

	stillClosed, err := tx.ClosedFor(ctx, assets)
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

		e := releasedInputs(p, from, stillClosed[p.Current.AssetID])
		problem := problemOf(e, from, ps)
		plan := solver.Solve(&problem)
		r, ok := s.replacementFor(ctx, tx.Now(), p, e, &problem, &plan)
		if ok {
			next = append(next, r)
		}
	}

	return next, nil
}

// releasedInputs returns a car's inputs from an instant on, without the time that was closed
// for instructions which no longer call it; held is the time of those that still do.
func releasedInputs(
	p *store.ScheduledAsset,
	from time.Time,
	stillClosed []flex.Span,
) store.PlanInputs {
	e := inputsAt(p, from)
	e.Closed = instruct.Common(e.Closed, instruct.Union(nil, stillClosed))
	e.Ramp = rampContinuing(e.Ramp, true) // many cars return at once

	return e
}

// replaceReleased puts the schedules of released cars in force, and returns the cars for which
// another schedule came in force since they were planned.
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
