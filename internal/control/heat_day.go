package control

import (
	"context"
	"fmt"
	"math"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// keepHalfHour keeps what a heater is to draw in the running half-hour: with the first plan of
// it, and with each that is sent.
func (t *heatedTank) keepHalfHour(
	ctx context.Context,
	tx *store.Tx,
	sent bool,
) error {
	now := flex.PeriodAt(t.from)
	if !sent && t.noted == now {
		return nil
	}

	accepted, err := tx.Accepted(ctx, t.asset.ID)
	if err != nil {
		return fmt.Errorf("read which of a heater's plans was accepted: %w", err)
	}

	may := t.plan.May
	if accepted >= t.plan.Generation {
		may = t.plan.Steps
	}

	most := draws{
		lists: [][]flex.Step{may},
		power: t.plan.Power,
		free:  true,
	}

	half := store.HeatHalfHour{
		Expected: t.expectedIn(now),
		Most:     flex.WattHours(most.mostIn(now.Span()) / 2),
	}

	if t.noted != now {
		half.Moves = t.movable()
	}

	return tx.AddHeatHalfHour(
		ctx,
		t.asset.ID,
		now,
		half,
	)
}

// movesAhead is how many half-hours ahead the comfort is looked at that a heater is to keep,
// where it is kept what it could move: twelve hours.
const movesAhead = 24

// movable is by how much the heater could draw less, and more, than without instructions from
// now on; nil where nothing is in force. An instruction that calls it does not take away what
// it could have moved: that is what was offered.
func (t *heatedTank) movable() *store.HeatMoves {
	planned, may, ok := t.withoutCalls().canDo(movesAhead)
	if !ok {
		return nil
	}

	may.Bound()
	moves := &store.HeatMoves{}
	sum := 0.0
	for i, can := range may.Windows(0, store.HeatMovesLongest) {
		sum += t.uncalledDraw(t.slots[i], planned[i])
		less := math.Round(max(0, sum-can.Least))
		more := math.Round(max(0, can.Most-sum))
		moves.Less = append(moves.Less, flex.WattHours(less))
		moves.More = append(moves.More, flex.WattHours(more))
	}

	return moves
}

// withoutCalls is the heater with its plan in force, as if no instruction bound it from now
// on.
func (t *heatedTank) withoutCalls() toCall {
	free := *t
	free.called, free.returns = nil, nil
	if t.pump == nil {
		return &free
	}

	pump := *t.pump
	pump.heatedTank = &free

	return &pump
}

// uncalledDraw is what the heater would draw in a half-hour, or what is left of it, without
// the instructions that bind it then: so many Wh if none does.
func (t *heatedTank) uncalledDraw(
	span flex.Span,
	planned float64,
) float64 {
	asks := t.keepsIn(span)
	if len(asks) == 0 {
		return planned
	}

	return asks[0].Planned
}

// expectedIn is what the plan in force has the heater draw in a half-hour. A tank's thermostat
// ends what its window would allow; in what has passed of the half-hour it drew by its window.
func (t *heatedTank) expectedIn(p flex.Period) flex.WattHours {
	if t.plan.Room == nil {
		passed := flex.Span{From: p.Start(), To: t.plan.StoredAt}
		drawn := draws{
			lists: [][]flex.Step{stepsWithin(t.plan.Steps, passed), t.plan.Expected},
			power: t.plan.Power,
		}

		return energyIn([]draws{drawn}, p)
	}

	for _, c := range t.plan.Room.Course {
		if c.To == p.End().Unix() {
			return flex.WattHours(c.Energy)
		}
	}

	return 0
}
