package reward

import (
	"context"
	"errors"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Sessions, pauses and dispatches that are over are searched for flex events by three queues.
// Sessions come first, because a half-hour is settled once.
var (
	endedSessions = store.Queue[flex.SessionID]{
		Kind:  store.PutOffSessionEvents,
		Batch: sessionsMax,
		Most:  dueMax,
		After: worker.PutOffFor,
		Due:   (*store.Tx).DueDetections,
		Do:    detectEach((*store.Tx).EndedSessions, detectSession),
		Item:  store.OneID[flex.SessionID],
	}
	endedPauses = store.Queue[store.PauseID]{
		Kind:  store.PutOffPause,
		Batch: sessionsMax,
		Most:  dueMax,
		After: worker.PutOffFor,
		Due:   (*store.Tx).DuePauses,
		Do:    detectEach((*store.Tx).TakePauses, detectPause),
		Item:  store.OneID[store.PauseID],
	}
	endedDispatches = store.Queue[store.DispatchPart]{
		Kind:  store.PutOffDispatch,
		Batch: sessionsMax,
		Most:  dueMax,
		After: worker.PutOffFor,
		Due:   (*store.Tx).DueDispatches,
		Do:    detectEach((*store.Tx).EndedDispatches, detectDispatch),
		Item: func(p store.DispatchPart) store.PutOffItem {
			return store.PutOffItem{ID: p.Event, Part: p.Asset}
		},
	}
)

// detect searches for the flex events of sessions, pauses and dispatches that are over.
func (s *Service) detect(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	pending, err := s.hasPendingDetection(ctx, org)
	if err != nil || !pending {
		return worker.Report{}, err
	}

	var report worker.Report
	var errs error

	for _, run := range []func(
		context.Context,
		*store.DB,
		flex.OrgID,
	) (worker.Report, error){
		endedSessions.Run,
		endedPauses.Run,
		endedDispatches.Run,
	} {
		r, err := run(ctx, s.DB, org)

		report.Count += r.Count
		report.More = report.More || r.More
		errs = errors.Join(errs, err)
		if worker.EndsRun(ctx, err) {
			break
		}
	}

	return report, errs
}

// hasPendingDetection reports whether anything that has ended was not searched yet, or was put off.
func (s *Service) hasPendingDetection(
	ctx context.Context,
	org flex.OrgID,
) (bool, error) {
	due, err := s.DB.Due(ctx, org, (*store.Tx).NextDetection)
	if err != nil || due {
		return due, err
	}

	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		due, err = tx.AnyPutOff(
			ctx,
			store.PutOffSessionEvents,
			store.PutOffPause,
			store.PutOffDispatch,
		)

		return err
	})

	return due, err
}

// detectEach returns a function that searches the items of one queue for flex events and returns
// their number.
func detectEach[ID, T any](
	read func(tx *store.Tx, ctx context.Context, ids []ID) ([]T, error),
	detect func(ctx context.Context, tx *store.Tx, item T) error,
) func(context.Context, *store.Tx, []ID) (int, error) {
	return func(ctx context.Context, tx *store.Tx, ids []ID) (int, error) {
		ended, err := read(tx, ctx, ids)
		if err != nil {
			return 0, err
		}

		for _, item := range ended {
			if err := detect(ctx, tx, item); err != nil {
				return 0, err
			}
		}

		return len(ended), nil
	}
}
