package control

import (
	"context"
	"errors"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// isPlanned reports whether flexd plans a battery: it is controlled, and its power and
// capacity are known.
func isPlanned(b *store.Battery) bool {
	return b.Controlled && b.Power() > 0 && b.Capacity() > 0
}

// ordersUnplanned returns what dispatches have batteries draw that are not planned. Batteries
// that are planned are counted with their plans. One whose record cannot be read counts with all
// that it can draw.
func ordersUnplanned(
	ctx context.Context,
	tx *store.Tx,
	batteries []flex.AssetID,
) ([]draws, error) {
	ahead := periodsTo(flex.PeriodAt(tx.Now()), lastPlanned(tx).End())
	var all []draws
	for _, id := range batteries {
		b, err := tx.Battery(ctx, id)
		if errors.Is(err, store.ErrUnreadable) {
			always, err := movesAlways(ctx, tx, id)
			if err != nil {
				return nil, err
			}

			all = append(all, always)
			continue
		}
		if err != nil {
			return nil, err
		}

		if isPlanned(&b) {
			continue
		}

		asked, err := ordersOf(ctx, tx, id, &b.Plan, ahead)
		if err != nil {
			return nil, err
		}

		power := orderedPower(&b, asked)
		if draw, _ := stepsOf(asked, ahead, power); len(draw) > 0 {
			all = append(all, draws{lists: [][]flex.Step{draw}, power: power, wired: b.Wiring()})
		}
	}

	return all, nil
}

// orderedPower returns the most power of a battery under dispatches: its own power if that is
// known, else the most that they ask for.
func orderedPower(b *store.Battery, orders []order) flex.Watts {
	power := b.Power()
	for _, o := range orders {
		if b.Power() <= 0 {
			power = max(power, o.most)
		}
	}

	return power
}
