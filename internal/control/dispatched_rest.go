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

// addDispatchInstruction stores a dispatch as an instruction with its batteries, and sets the
// instruction's id.
func addDispatchInstruction(
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

// replaceDispatched releases batteries from earlier dispatches during the time of a new one,
// and returns those that are dispatched in its half-hours. Nothing is withdrawn, as the newest
// dispatch applies. The parts of an earlier dispatch before and after the new one still apply,
// and become instructions of their own, so that they can be stopped like others.
func replaceDispatched(
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
			continue // they share a half-hour, but no minute
		}

		if by[m.Instruction] == nil {
			ids = append(ids, m.Instruction)
		}
		by[m.Instruction] = append(by[m.Instruction], m.AssetID)
	}

	for _, id := range ids {
		if err := replaceInDispatch(ctx, tx, id, by[id], order.Span); err != nil {
			return nil, err
		}
	}

	return replaced, nil
}

// replaceInDispatch releases batteries from an earlier dispatch, and stores what a newer one
// in a span leaves of it.
func replaceInDispatch(
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

	released := map[flex.AssetID]bool{}
	for _, asset := range assets {
		released[asset] = true
	}
	called = slices.DeleteFunc(called, func(c store.Called) bool { return !released[c.AssetID] })

	if err := tx.ReleaseCalled(ctx, id, assets); err != nil {
		return err
	}

	ahead := in.Span
	ahead.From = flex.Later(ahead.From, tx.Now().Truncate(time.Minute))
	for _, rest := range instruct.Without([]flex.Span{ahead}, []flex.Span{span}) {
		if err := addRemainder(ctx, tx, &in, called, rest); err != nil {
			return err
		}
	}

	return nil
}

// addRemainder stores one part of an earlier dispatch that a newer one leaves.
func addRemainder(
	ctx context.Context,
	tx *store.Tx,
	of *flex.Instruction,
	called []store.Called,
	part flex.Span,
) error {
	some := clippedTo(called, part)
	if err := restoreRequests(ctx, tx, some, part); err != nil {
		return err
	}

	order := store.Dispatch{Market: of.Service, Span: part}
	rest := instructionFor(&order, some)
	rest.Reason = fmt.Sprintf("what a newer dispatch left of instruction %v", of.ID)

	if err := limitExpected(ctx, tx, some); err != nil {
		return err
	}

	return addDispatchInstruction(ctx, tx, &rest, some)
}

// clippedTo returns the batteries of a dispatch with their steps in a part of its time.
func clippedTo(
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
