package reward

import (
	"context"
	"errors"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// detection is the result of one search for flex events.
type detection struct {
	did  int
	more bool // as many were over as one search takes
}

// detect looks for the flex events of what is over: of all together or, where that fails, of one after the other.
func (s *Service) detect(
	ctx context.Context,
	org flex.OrgID,
	report *worker.Report,
) error {
	due, err := s.DB.Due(ctx, org, (*store.Tx).NextDetection)
	if err != nil || !due {
		return err
	}

	found, err := detectTogether(ctx, s.DB, org)
	if err != nil && !endsRun(ctx, err) {
		found, err = detectApart(ctx, s.DB, org)
	}

	report.Did += found.did
	report.More = report.More || found.more

	return err
}

// detectTogether looks for the flex events of what is over in one transaction.
func detectTogether(
	ctx context.Context,
	db *store.DB,
	org flex.OrgID,
) (found detection, err error) {
	defer flex.Recover(&err)

	err = db.Write(ctx, org, func(tx *store.Tx) error {
		sessions, err := detectEach(
			ctx,
			tx,
			tx.DueDetections,
			detectSession,
		)
		if err != nil {
			return err
		}

		pauses, err := detectEach(ctx, tx, tx.TakePauses, detectPause)
		if err != nil {
			return err
		}

		dispatches, err := detectEach(
			ctx,
			tx,
			tx.DueDispatches,
			detectDispatch,
		)
		if err != nil {
			return err
		}

		found.did = sessions + pauses + dispatches
		found.more = max(sessions, pauses, dispatches) == sessionsMax

		return nil
	})
	if err != nil {
		found = detection{}
	}

	return found, err
}

// detectEach looks for the flex events of sessions, pauses or dispatches that are over. It
// returns how many of these it looked at.
func detectEach[T any](ctx context.Context, tx *store.Tx, find func(context.Context, int) ([]T, error),
	detect func(context.Context, *store.Tx, T) error) (int, error) {
	over, err := find(ctx, sessionsMax)
	if err != nil {
		return 0, err
	}

	for _, one := range over {
		if err := detect(ctx, tx, one); err != nil {
			return 0, err
		}
	}

	return len(over), nil
}

// detectApart looks for the flex events of sessions and dispatches one by one, each in a transaction of its own. Pauses are marked as
// they are read, and are looked at together.
func detectApart(
	ctx context.Context,
	db *store.DB,
	org flex.OrgID,
) (detection, error) {
	sessions, failedSessions := endedSessions.detectOneByOne(ctx, db, org)
	pauses, failedPauses := detectPauses(ctx, db, org)
	dispatches, failedDispatches := endedDispatches.detectOneByOne(ctx, db, org)

	found := detection{did: sessions + pauses + dispatches}
	found.more = max(sessions, dispatches) == dueMax || pauses == sessionsMax

	return found, errors.Join(
		failedSessions,
		failedPauses,
		failedDispatches,
	)
}

// detectPauses looks for the flex events of pauses that are over.
func detectPauses(
	ctx context.Context,
	db *store.DB,
	org flex.OrgID,
) (did int, err error) {
	defer flex.Recover(&err)

	err = db.Write(ctx, org, func(tx *store.Tx) error {
		var err error
		did, err = detectEach(ctx, tx, tx.TakePauses, detectPause)
		return err
	})
	if err != nil {
		did = 0
	}

	return did, err
}

// ended is one kind of what is over.
type ended[T any, ID comparable] struct {
	find   func(tx *store.Tx, ctx context.Context, limit int) ([]T, error)
	id     func(one T) ID
	detect func(ctx context.Context, tx *store.Tx, one T) error
}

var endedSessions = ended[store.SessionSettlement, flex.SessionID]{
	find:   (*store.Tx).DueDetections,
	id:     func(r store.SessionSettlement) flex.SessionID { return r.SessionID },
	detect: detectSession,
}

// dispatchedPart names an asset's part in a dispatch.
type dispatchedPart struct {
	event flex.EventID
	asset flex.AssetID
}

var endedDispatches = ended[store.EndedDispatch, dispatchedPart]{
	find:   (*store.Tx).DueDispatches,
	id:     func(p store.EndedDispatch) dispatchedPart { return dispatchedPart{p.ID, p.AssetID} },
	detect: detectDispatch,
}

// triedMost is how many of one kind may fail in a run before those behind them are left for a later one.
const triedMost = 100

// detectOneByOne looks for the flex events of one after the other, and returns of how many it did.
func (e ended[T, ID]) detectOneByOne(
	ctx context.Context,
	db *store.DB,
	org flex.OrgID,
) (int, error) {
	var did int
	var failed failures
	tried := map[ID]bool{}
	for did < dueMax && len(tried) < triedMost {
		id, found, err := e.detectNext(ctx, db, org, tried)
		failed.add(err)
		if !found || endsRun(ctx, err) {
			break
		}

		if err != nil {
			tried[id] = true
			continue
		}
		did++
	}

	return did, failed.err()
}

// detectNext looks for the flex events of the first that is over and was not tried, and reports whether there was one.
func (e ended[T, ID]) detectNext(
	ctx context.Context,
	db *store.DB,
	org flex.OrgID,
	tried map[ID]bool,
) (id ID, found bool, err error) {
	defer flex.Recover(&err)

	err = db.Write(ctx, org, func(tx *store.Tx) error {
		found = false
		over, err := e.find(tx, ctx, len(tried)+1)
		if err != nil {
			return err
		}

		i := slices.IndexFunc(over, func(one T) bool { return !tried[e.id(one)] })
		if i < 0 {
			return nil
		}

		id, found = e.id(over[i]), true

		return e.detect(ctx, tx, over[i])
	})

	return id, found, err
}
