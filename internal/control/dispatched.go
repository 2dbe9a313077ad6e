package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// dispatcher is the sender of instructions that are made from dispatches of batteries.
const dispatcher = "flexd dispatch"

// checkCalls returns a Conflict for a dispatch of a battery that an instruction calls at that
// time.
func checkCalls(
	ctx context.Context,
	tx *store.Tx,
	order *store.Dispatch,
) error {
	if err := LockInstructions(ctx, tx); err != nil {
		return err
	}

	meeting, err := tx.MeetingCalls(ctx, idsOf(order), order.Span)
	if err != nil {
		return fmt.Errorf("read the instructions that call the batteries: %w", err)
	}

	for _, m := range meeting {
		if !m.Dispatched {
			return flex.Fail(
				flex.Conflict,
				"instruction %v calls asset %v in this time: stop it (flexd instruct stop), or dispatch it at another time",
				m.Instruction,
				m.AssetID,
			)
		}
	}

	return nil
}

// idsOf returns the assets of a dispatch.
func idsOf(order *store.Dispatch) []flex.AssetID {
	ids := make([]flex.AssetID, len(order.Assets))
	for i, a := range order.Assets {
		ids[i] = a.ID
	}

	return ids
}

// NoteDispatch stores a dispatch of batteries as an instruction, so that it is listed,
// reported and stopped like others. While it lasts it replaces earlier dispatches of the same
// batteries. Cars of the dispatch are not part of the instruction. It must run in the
// transaction of the dispatch, after CheckDispatch, and sets the instruction's id on the
// dispatch.
func NoteDispatch(
	ctx context.Context,
	tx *store.Tx,
	order *store.Dispatch,
) error {
	replaced, err := replaceDispatched(ctx, tx, order)
	if err != nil {
		return err
	}

	called, err := dispatchedBatteries(ctx, tx, order, replaced)
	if err != nil || len(called) == 0 {
		return err
	}

	in := instructionFor(order, called)
	if err := limitExpected(ctx, tx, called); err != nil {
		return err
	}

	if err := addDispatchInstruction(ctx, tx, &in, called); err != nil {
		return err
	}

	order.Instruction = in.ID

	return replanCars(ctx, tx, called)
}

// instructionFor returns a dispatch of some batteries as an instruction.
func instructionFor(
	order *store.Dispatch,
	called []store.Called,
) flex.Instruction {
	in := flex.Instruction{
		Span:       order.Span,
		Service:    order.Market,
		Reason:     "dispatch",
		Who:        dispatcher,
		Dispatched: true,
	}
	if !slices.Contains(InstructionServices, in.Service) {
		in.Service = "other"
	}

	in.Change = changeBy(called, order.Span)
	in.Target = targetsOf(called, instruct.Slots(in.Span), in.Change > 0)

	return in
}

// replanCars marks the cars at the sites of batteries to be planned again, so that they leave
// a battery the power of its dispatch.
func replanCars(
	ctx context.Context,
	tx *store.Tx,
	called []store.Called,
) error {
	var cars []flex.AssetID
	done := map[flex.SiteID]bool{}
	for i := range called {
		site := called[i].SiteID
		if done[site] {
			continue
		}

		done[site] = true
		all, err := tx.AssetsOf(ctx, site)
		if err != nil {
			return err
		}

		for k := range all {
			if all[k].Type.Charges() {
				cars = append(cars, all[k].ID)
			}
		}
	}

	return tx.MarkDue(ctx, cars...)
}

// dispatchedBatteries returns the batteries of a dispatch as called assets. Their baseline is
// their plan; for those in replaced, the plan without the earlier dispatch.
func dispatchedBatteries(
	ctx context.Context,
	tx *store.Tx,
	order *store.Dispatch,
	replaced map[flex.AssetID]bool,
) ([]store.Called, error) {
	var called []store.Called
	for _, a := range order.Assets {
		asset, err := tx.Asset(ctx, a.ID)
		if err != nil {
			return nil, err
		}
		if asset.Type != flex.Battery {
			continue
		}

		b, err := tx.Battery(ctx, a.ID)
		if errors.Is(err, store.ErrUnreadable) {
			return nil, flex.Fail(
				flex.Conflict,
				"battery %v cannot be dispatched: %v: leave it out of the dispatch, and report this as a fault in flexd",
				a.ID,
				err,
			)
		}
		if err != nil {
			return nil, err
		}

		powers := b.Plan.Powers
		if replaced[a.ID] {
			powers = b.Plan.Without // the plan is made around the earlier dispatch
		}

		called = append(called, store.Called{
			AssetID:    a.ID,
			SiteID:     asset.SiteID,
			Power:      max(b.Power(), a.Power, -a.Power),
			Baseline:   plannedIn(b.Plan.StoredAt, powers, order.Span),
			Expected:   []flex.Step{{Span: order.Span, Limit: a.Power}},
			Battery:    true,
			Dispatched: true,
		})
	}

	return called, nil
}

// plannedIn returns the powers of half-hours, from first on, as steps in a span; 0 where there
// are none.
func plannedIn(
	first flex.Period,
	powers []flex.Watts,
	span flex.Span,
) []flex.Step {
	var steps []flex.Step
	for _, slot := range instruct.Slots(span) {
		step := flex.Step{Span: slot}
		k := flex.PeriodAt(slot.From).Sub(first)
		if k >= 0 && k < len(powers) {
			step.Limit = powers[k]
		}
		steps = append(steps, step)
	}

	return steps
}

// changeBy returns the mean change of some batteries against their plans, or 1 W instead of 0,
// as an instruction must have a change.
func changeBy(
	called []store.Called,
	span flex.Span,
) flex.Watts {
	var sum charge.Joules
	for i := range called {
		c := &called[i]
		sum += drawnOf(c, c.Expected, span) - drawnOf(c, c.Baseline, span)
	}

	change := flex.Watts(sum / charge.Joules(span.Len()/time.Second))
	if change == 0 {
		return 1
	}

	return change
}

// withdrawDispatched sends a battery of a dispatch 0 kW for the rest of its time. Its stored
// plan stays: until the battery is planned again, others leave it the power that a schedule
// which its client may have read has it use.
func withdrawDispatched(
	ctx context.Context,
	tx *store.Tx,
	plan store.BatteryPlan,
	c *store.Called,
) error {
	rest := spanOf(c.Expected)
	rest.From = flex.Later(rest.From, tx.Now().Truncate(time.Minute))
	if rest.Empty() {
		return nil
	}

	return dispatchZero(ctx, tx, c.AssetID, &plan, rest)
}
