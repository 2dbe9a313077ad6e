package reading

import (
	"cmp"
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Retention is the least retention of readings: the time in which they may arrive and be
// settled, and the longest look-back of a baseline before that.
const Retention = MaxAge + 62*24*time.Hour

// refusalRetention is for how far ahead storage for readings is prepared.
const refusalRetention = 7 * 24 * time.Hour

// dropMax is the most readings that one transaction deletes, and of each other kind of record.
const dropMax = 5000

// Purge deletes readings, and records of refused ones, after their retention by the true
// clock. A sandbox clock that was advanced does not delete them sooner.
func (s *Service) Purge(ctx context.Context) (worker.Report, error) {
	retain := cmp.Or(s.Retain, Retention)
	var dropped, held, refused int64
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		dropped, err = all.DropReadings(ctx, all.Now().Add(-retain), dropMax)
		if err != nil {
			return err
		}

		if err := all.MakePartitions(ctx, flex.Span{
			From: all.Now(),
			To:   all.Now().Add(refusalRetention),
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
		Count: int(dropped + held + refused),
		More:  max(dropped, held, refused) >= dropMax,
	}, err
}
