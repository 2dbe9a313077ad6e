package control

import (
	"context"
	"fmt"

	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/store"
)

// BatteryMoves returns, for each home battery, tank and heat pump that an instruction may
// call, the energy that it would move in the window and its cost against the plan in force. It
// changes nothing. Of the instruction's change only the sign is used.
func (s *Service) BatteryMoves(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
) ([]forecast.Moved, error) {
	sc := scoped{now: tx.Now()}
	if err := sc.readDevices(ctx, tx, in); err != nil {
		return nil, err
	}

	var err error
	sc.spent, err = tx.SpentSites(ctx, in.ID, in.From)
	if err != nil {
		return nil, fmt.Errorf("read which sites have had the calls they agreed to: %w", err)
	}

	p := &Preview{Instruction: *in, At: sc.now}
	all, err := s.offerDevices(
		ctx,
		tx,
		p,
		&sc,
		orderOf(in, sc.now),
	)
	if err != nil {
		return nil, err
	}

	moves := make([]forecast.Moved, len(all))
	for i := range all {
		o := &all[i].offer
		moves[i].Cost = float64(o.Cost) / 1e6

		for _, change := range o.Change {
			moves[i].KWh += float64(change) / 3.6e6
		}
	}

	return moves, nil
}
