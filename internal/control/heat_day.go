package control

import (
	"context"
	"fmt"
	"math"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// recordHalfHour records what a heater is to draw in the running half-hour: when it is first
// planned in that half-hour, and each time that a plan is sent.
func (t *heatedTank) recordHalfHour(
	ctx context.Context,
	tx *store.Tx,
	sent bool,
) error {
	now := flex.PeriodAt(t.from)
	if !sent && t.recordedPeriod == now {
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

	most := loadBound{
		lists:     [][]flex.Step{may},
		power:     t.plan.Power,
		openEnded: true,
	}

	half := store.HeatHalfHour{
		Expected: t.expectedIn(now),
		Most:     flex.WattHours(most.maxIn(now.Span()) / 2),
	}

	if t.recordedPeriod != now {
		half.Moves = t.possibleMoves()
	}

	return tx.AddHeatHalfHour(
		ctx,
		t.asset.ID,
		now,
		half,
	)
}

// comfortHalfHours is for how many half-hours comfort must be kept when the energy that a
// heater could move is computed: twelve hours.
const comfortHalfHours = 24

// possibleMoves is by how much the heater could draw less or more than by its plan without
// instructions, in windows that begin now; nil if no plan is in force. Instructions that call
// it are ignored, because what they use is part of what was offered.
func (t *heatedTank) possibleMoves() *store.HeatMoves {
	planned, may, ok := t.withoutInstructions().possibleDraws(comfortHalfHours)
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

// withoutInstructions returns a copy of the heater with its plan in force that no instruction
// binds.
func (t *heatedTank) withoutInstructions() callableHeater {
	free := *t
	free.calls, free.returns = nil, nil
	if t.pump == nil {
		return &free
	}

	pump := *t.pump
	pump.heatedTank = &free

	return &pump
}

// uncalledDraw is what the heater would draw in a half-hour, or in the rest of it, without the
// instructions that bind it then, in Wh; without any, it is planned.
func (t *heatedTank) uncalledDraw(
	span flex.Span,
	planned float64,
) float64 {
	asks := t.callsIn(span)
	if len(asks) == 0 {
		return planned
	}

	return asks[0].Planned
}

// expectedIn is the energy that the heater is expected to draw in a half-hour by the plan in
// force. A tank's thermostat may end a window early; in the part of the half-hour that has
// passed, the tank is taken to have drawn as its window allowed.
func (t *heatedTank) expectedIn(p flex.Period) flex.WattHours {
	if t.plan.Room == nil {
		passed := flex.Span{From: p.Start(), To: t.plan.StoredAt}
		drawn := loadBound{
			lists: [][]flex.Step{stepsWithin(t.plan.Steps, passed), t.plan.Expected},
			power: t.plan.Power,
		}

		return energyIn([]loadBound{drawn}, p)
	}

	for _, c := range t.plan.Room.Course {
		if c.To == p.End().Unix() {
			return flex.WattHours(c.Energy)
		}
	}

	return 0
}
