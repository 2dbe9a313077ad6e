package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"flexd/internal/cell"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// watchCellMoves fails if an organisation's move to another cell takes longer than usual. The
// process that moves it has probably ended: then the organisation's writes are refused, and
// nothing is planned for it, until somebody continues the move.
func (a *App) watchCellMoves(ctx context.Context) (worker.Report, error) {
	var late []string
	err := a.DB.ReadAll(ctx, func(all *store.All) error {
		late = nil

		moves, err := all.CellMoves(ctx)
		for _, m := range moves {
			if all.Now().Sub(m.At) > cell.Late {
				late = append(late, fmt.Sprintf(
					"%s is %s since %s, and the other cell is %s",
					m.Org,
					m.State,
					m.At.Format(time.RFC3339),
					m.Other,
				))
			}
		}

		return err
	})

	if err == nil && len(late) > 0 {
		err = fmt.Errorf(
			"a move to another cell is not at its end; if it was stopped, run flexd cell move again: %s",
			strings.Join(late, "; "),
		)
	}

	return worker.Report{}, err
}
