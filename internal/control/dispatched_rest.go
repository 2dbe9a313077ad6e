package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// keepNamed keeps an instruction that a dispatch is, with the batteries that it names. Its id
// is set here.
func keepNamed(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
	called []store.Called,
) error {
	if err := tx.AddInstruction(ctx, in); err != nil {
		return fmt.Errorf("keep the dispatch as an instruction: %w", err)
	}

	return tx.AddCalled(ctx, in.ID, called)
}

// replaceNamed lets batteries go that earlier dispatches named for a time that a new one is
// for, and returns which are dispatched in its half-hours. Nothing is taken back: the newer
// one is what counts while it lasts. What is left of an earlier one before and after counts
// still, and is an instruction of its own, so that it is stopped as any other.
func replaceNamed(
	ctx context.Context,
	tx *store.Tx,
	order *store.Dispatch,
) (map[flex.AssetID]bool, error) {
	meeting, err := tx.MeetingCalls(ctx, idsOf(order), order.Span)
	if err != nil {
		return nil, fmt.Errorf("read which dispatches it takes the place of: %w", err)
	}

	replaced := map[flex.AssetID]bool{}
	by := map[flex.InstructionID][]flex.AssetID{}
	var ids []flex.InstructionID // in the order in which they were found
	for _, m := range meeting {
		replaced[m.AssetID] = true
		if m.Meet(order.Span).Empty() {
			continue // they have a half-hour in common, and no minute of it
		}

		if by[m.Instruction] == nil {
			ids = append(ids, m.Instruction)
		}
		by[m.Instruction] = append(by[m.Instruction], m.AssetID)
	}

	for _, id := range ids {
		if err := replaceIn(ctx, tx, id, by[id], order.Span); err != nil {
			return nil, err
		}
	}

	return replaced, nil
}

// replaceIn has an earlier dispatch let batteries go, and keeps what a newer one in a span
// leaves of it.
func replaceIn(
	ctx context.Context,
	tx *store.Tx,
	id flex.InstructionID,
	assets []flex.AssetID,
	span flex.Span,
) error {
	in, err := tx.Instruction(ctx, id)
	if err != nil {
		return err
	}

	called, err := tx.CalledBy(ctx, id)
	if err != nil {
		return err
	}

	let := map[flex.AssetID]bool{}
	for _, asset := range assets {
		let[asset] = true
	}
	called = slices.DeleteFunc(called, func(c store.Called) bool { return !let[c.AssetID] })

	if err := tx.ReleaseCalled(ctx, id, assets); err != nil {
		return err
	}

	ahead := in.Span
	ahead.From = flex.Later(ahead.From, tx.Now().Truncate(time.Minute))
	for _, left := range instruct.Without([]flex.Span{ahead}, []flex.Span{span}) {
		if err := keepRest(ctx, tx, &in, called, left); err != nil {
			return err
		}
	}

	return nil
}

// keepRest keeps what a newer dispatch leaves of an earlier one in a part of its time.
func keepRest(
	ctx context.Context,
	tx *store.Tx,
	of *flex.Instruction,
	called []store.Called,
	left flex.Span,
) error {
	some := partOfNamed(called, left)
	if err := askAgain(ctx, tx, some, left); err != nil {
		return err
	}

	order := store.Dispatch{Market: of.Service, Span: left}
	rest := dispatchedBy(&order, some)
	rest.Reason = fmt.Sprintf("what a newer dispatch left of instruction %v", of.ID)

	if err := boundAll(ctx, tx, some); err != nil {
		return err
	}

	return keepNamed(ctx, tx, &rest, some)
}

// partOfNamed are batteries that a dispatch named, as in a part of its time.
func partOfNamed(
	called []store.Called,
	part flex.Span,
) []store.Called {
	some := slices.Clone(called)
	for i := range some {
		c := &some[i]
		c.Baseline = stepsWithin(c.Baseline, part)
		c.Expected = stepsWithin(c.Expected, part)
	}

	return some
}
