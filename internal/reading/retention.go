package reading

import (
	"cmp"
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// KeptFor is how long readings are kept at least: as long as they may come in and a settlement may
// ask for them, and the longest look-back before that.
const KeptFor = MaxAge + 62*24*time.Hour

// aheadFor is how far ahead room is made for readings.
const aheadFor = 7 * 24 * time.Hour

// dropMax is the number of readings that one transaction deletes, and of each else that is dropped with them.
const dropMax = 5000

// Purge deletes readings, and what was refused, whose time is over, by the true clock. A
// sandbox clock that has been turned forward does not make it forget sooner.
func (s *Service) Purge(ctx context.Context) (worker.Report, error) {
	retain := cmp.Or(s.Retain, KeptFor)
	var dropped, held, refused int64
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		dropped, err = all.DropReadings(ctx, all.Now().Add(-retain), dropMax)
		if err != nil {
			return err
		}

		if err := all.MakePartitions(ctx, flex.Span{
			From: all.Now(),
			To:   all.Now().Add(aheadFor),
		}); err != nil {
			return err
		}

		held, err = all.DropHeld(ctx, all.Now().Add(-retain), dropMax)
		if err != nil {
			return err
		}

		refused, err = all.DropRefused(ctx, flex.DayAt(all.Now()).Add(-refusedDays), dropMax)

		return err
	})

	return worker.Report{
		Did:  int(dropped + held + refused),
		More: max(dropped, held, refused) >= dropMax,
	}, err
}
