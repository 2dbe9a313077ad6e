package control

import (
	"context"
	"fmt"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// keepHalfHour keeps what a heater is to draw in the running half-hour: with the first plan of it, and with each that is sent.
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

	return tx.AddHeatHalfHour(ctx, t.asset.ID, now, store.HeatHalfHour{
		Expected: t.expectedIn(now),
		Most:     flex.WattHours(most.mostIn(now.Span()) / 2),
	})
}

// expectedIn is what the plan in force has the heater draw in a half-hour.
func (t *heatedTank) expectedIn(p flex.Period) flex.WattHours {
	if t.plan.Room == nil {
		on := draws{
			lists: [][]flex.Step{t.plan.Steps},
			power: t.plan.Power,
		}

		return energyIn([]draws{on}, p)
	}

	for _, c := range t.plan.Room.Course {
		if c.To == p.End().Unix() {
			return flex.WattHours(c.Energy)
		}
	}

	return 0
}
