package control

import (
	"context"
	"fmt"

	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/store"
)

// DeviceMoves returns, for each home battery, tank and heat pump that an instruction may call,
// the energy that it would move in the window, in kWh, and its cost compared with the plan in
// force, in pounds. It changes nothing. Of the instruction's change only the sign is used.
func (s *Service) DeviceMoves(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
) ([]forecast.Moved, error) {
	sc := scopeAssets{now: tx.Now()}
	if err := sc.readDevices(ctx, tx, in); err != nil {
		return nil, err
	}

	var err error
	sc.spentSites, err = tx.SpentSites(ctx, in.ID, in.From)
	if err != nil {
		return nil, fmt.Errorf("read which sites have had the calls they agreed to: %w", err)
	}

	p := &Preview{Instruction: *in, At: sc.now}
	all, err := s.offerDevices(
		ctx,
		tx,
		p,
		&sc,
		orderFrom(in, sc.now),
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
