package control

import (
	"context"
	"fmt"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// The return of heaters.
//
// Heaters that were called to draw less need the heat later. Each is planned in a transaction
// of its own. It reads how much more than before the call the other heaters of the instruction
// are expected to draw in the day after it. It then draws more itself only within the
// remaining part of the permitted rebound, as far as its comfort permits. So the first heaters
// return first, and the last when there is room.

// returnPeriod is for how long after an instruction the return of heaters is spread. Later
// the instruction has no effect on their plans.
const returnPeriod = store.HeatersReturn

// readReturns reads the expected return of the other heaters that are called together with
// this one.
func (t *heatedTank) readReturns(
	ctx context.Context,
	tx *store.Tx,
) error {
	t.returns = make([]*instruct.Rebound, len(t.calls))
	for i := range t.calls {
		c := &t.calls[i]
		if c.Up || !t.from.Before(c.Window.To.Add(returnPeriod)) {
			continue
		}

		back, err := otherHeatersReturn(
			ctx,
			tx,
			c.Instruction,
			t.asset.ID,
		)

		if err != nil {
			return fmt.Errorf("read how others come back: %w", err)
		}

		t.returns[i] = back
	}

	return nil
}

// otherHeatersReturn returns the rebound of the heaters that an instruction calls, except for
// one. Its cars are spread among themselves and are not read: there may be many, and each
// heater would read them all.
func otherHeatersReturn(
	ctx context.Context,
	tx *store.Tx,
	id flex.InstructionID,
	but flex.AssetID,
) (*instruct.Rebound, error) {
	in, err := tx.Instruction(ctx, id)
	if err != nil {
		return nil, err
	}

	var target []charge.Joules
	for _, e := range in.Target {
		target = append(target, charge.Joules(e))
	}

	back := reboundOf(
		&in,
		instruct.Slots(in.Span),
		target,
	)

	called, err := tx.HeatersCalledWith(ctx, id, but)
	for i := range called {
		c := &called[i]
		back.AddPowers(
			c.Expected,
			c.Baseline,
			c.Power,
		)
	}

	return back, err
}

// returnLimitsIn returns the limits of the heater's return in a half-hour or the rest of it.
func (t *heatedTank) returnLimitsIn(span flex.Span) []instruct.HeatAsk {
	var asks []instruct.HeatAsk
	for i, back := range t.returns {
		if back == nil {
			continue
		}

		c := &t.calls[i]
		known := len(c.Baseline) > 0 && !span.To.After(c.Baseline[len(c.Baseline)-1].To)
		free, share, bound := back.FreePower(span, t.power)
		if !bound || !known || span.To.After(c.Window.To.Add(returnPeriod)) {
			continue
		}

		planned := float64(drawnOf(&c.Called, c.Baseline, span)) / 3600
		asks = append(asks, instruct.HeatAsk{
			Planned: planned + float64(free)*span.Len().Hours(),
			Return:  true,
			Fuller:  share,
		})
	}

	return asks
}

// expectedLimitsIn returns the expected energy of the heater in a half-hour of an instruction
// as a limit: it must not draw more within the instruction so that it need not return later.
// For half-hours after those that were planned when it was called nothing is expected.
func (t *heatedTank) expectedLimitsIn(span flex.Span) []instruct.HeatAsk {
	var asks []instruct.HeatAsk
	for i, back := range t.returns {
		c := &t.calls[i]
		within := !span.From.Before(c.Window.From) && !span.To.After(c.Window.To)
		known := len(c.Expected) > 0 && !span.To.After(c.Expected[len(c.Expected)-1].To)
		if back == nil || !within || !known {
			continue
		}

		expected := drawnOf(&c.Called, c.Expected, span)
		asks = append(asks, instruct.HeatAsk{
			Planned: float64(expected) / 3600,
		})
	}

	return asks
}
