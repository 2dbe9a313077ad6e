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
// of its own. It looks at what the others that the instruction calls are expected to draw more
// than by the plans that they had, in the day after, and draws more itself only as far as that
// leaves of what is allowed, as long as its comfort lets it. So the first come back first, and
// the last when there is room.

// returnedAfter is how long after an instruction the return of heaters is spread. Later their
// plans are as if there had been none.
const returnedAfter = store.HeatersReturn

// readReturns reads how others come back that instructions call with the heater.
func (t *heatedTank) readReturns(
	ctx context.Context,
	tx *store.Tx,
) error {
	t.returns = make([]*instruct.Rebound, len(t.called))
	for i := range t.called {
		c := &t.called[i]
		if c.Up || !t.from.Before(c.Window.To.Add(returnedAfter)) {
			continue
		}

		back, err := othersBack(
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

// othersBack is how the heaters come back that an instruction calls, but for one. Its cars are
// spread among themselves, and are not read: there may be many, and each heater would read
// them all.
func othersBack(
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

// returnsIn is what bounds how the heater comes back in a half-hour, or what is left of it.
func (t *heatedTank) returnsIn(span flex.Span) []instruct.HeatAsk {
	var asks []instruct.HeatAsk
	for i, back := range t.returns {
		if back == nil {
			continue
		}

		c := &t.called[i]
		known := len(c.Baseline) > 0 && !span.To.After(c.Baseline[len(c.Baseline)-1].To)
		free, share, bound := back.FreePower(span, t.power)
		if !bound || !known || span.To.After(c.Window.To.Add(returnedAfter)) {
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

// promisedIn is what the heater is expected to draw at most in a half-hour of an instruction:
// it does not draw more in it so that it need not come back. Of a half-hour after all that was
// planned when it was called nothing is known, and nothing was promised.
func (t *heatedTank) promisedIn(span flex.Span) []instruct.HeatAsk {
	var asks []instruct.HeatAsk
	for i, back := range t.returns {
		c := &t.called[i]
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
