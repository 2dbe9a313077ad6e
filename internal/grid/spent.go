package grid

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// spentDay is a London day on which no instruction may call some assets, as their sites have
// had the calls they agreed to.
type spentDay struct {
	secondSpan
	assets map[flex.AssetID]bool
}

// readSpent reads which assets may not be called on the days of the half-hours.
func (g *gathering) readSpent(
	ctx context.Context,
	tx *store.Tx,
) error {
	for day := flex.DayAt(g.now()); day.Start().Unix() < g.end(); day = day.Add(1) {
		assets, err := tx.SpentAssets(ctx, day.Start())
		if err != nil {
			return err
		}

		of := day.Span()
		if len(assets) > 0 {
			g.spent = append(g.spent, spentDay{secondSpan{of.From.Unix(), of.To.Unix()}, assets})
		}
	}

	return nil
}

// fixedTimes returns when an asset draws as planned whatever is asked: by charge-now, and on
// days on which it may not be called. They are in order and do not overlap.
func (g *gathering) fixedTimes(p *store.Plugged) []secondSpan {
	var all []secondSpan
	asked := secondSpan{p.ChargeNow.From.Unix(), p.ChargeNow.To.Unix()}
	if asked.length() > 0 {
		all = append(all, asked)
	}

	for _, day := range g.spent {
		if day.assets[p.AssetID] {
			all = append(all, day.secondSpan)
		}
	}

	return inOrder(all)
}

// within returns how many seconds spans that do not overlap share with another one.
func within(
	all []secondSpan,
	w secondSpan,
) int64 {
	var sum int64
	for _, s := range all {
		sum += s.meet(w).length()
	}

	return sum
}
