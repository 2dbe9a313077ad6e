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

// unplannedDispatches returns what operators' dispatches have batteries draw that flexd does
// not plan. Batteries that it plans are counted with their plans. One whose record cannot be
// read counts with all that it can draw.
func unplannedDispatches(
	ctx context.Context,
	tx *store.Tx,
	batteries []flex.AssetID,
) ([]loadBound, error) {
	ahead := periodsTo(flex.PeriodAt(tx.Now()), lastPlanned(tx).End())
	var all []loadBound
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

		requested, err := dispatchesOf(ctx, tx, id, &b.Plan, ahead)
		if err != nil {
			return nil, err
		}

		power := dispatchPower(&b, requested)
		if draw, _ := stepsOf(requested, ahead, power); len(draw) > 0 {
			all = append(all, loadBound{lists: [][]flex.Step{draw}, power: power, wiring: b.Wiring()})
		}
	}

	return all, nil
}

// dispatchPower returns the greatest power of a battery under dispatches: its own if that is
// known, and else the most that they request.
func dispatchPower(b *store.Battery, orders []dispatchedPeriod) flex.Watts {
	power := b.Power()
	for _, o := range orders {
		if b.Power() <= 0 {
			power = max(power, o.most)
		}
	}

	return power
}
