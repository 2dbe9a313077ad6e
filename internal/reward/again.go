package reward

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// Resettlement selects the events that Resettle settles.
type Resettlement struct {
	Site    flex.SiteID // zero: all sites
	From    flex.Day    // events that begin from this day
	To      flex.Day    // to this one, both included
	KnownAt time.Time   // on what was known then; zero: now
}

// ResettleDaysMax is the most days that are settled again at once: as many as a statement covers,
// so that their prices fit into memory.
const ResettleDaysMax = StatementDaysMax

// check refuses a span of more than ResettleDaysMax days, whose prices would not fit into memory.
func (a Resettlement) check() error {
	const day = 24 * 60 * 60
	// Half a day is added because a day has 23 or 25 hours where clocks change.
	switch days := (a.To.Start().Unix()-a.From.Start().Unix()+day/2)/day + 1; {
	case a.To.Start().Before(a.From.Start()):
		return flex.Fail(
			flex.Invalid,
			"the last day %s is before the first, %s",
			a.To,
			a.From,
		)

	case days > ResettleDaysMax:
		return flex.Fail(
			flex.Invalid,
			"%s to %s is %d days: at most %d are settled again at once, and nothing was",
			a.From,
			a.To,
			days,
			ResettleDaysMax,
		)
	}

	return nil
}

// resettleSites is the number of sites whose events are read and settled at a time.
const resettleSites = 64

// Resettle settles events once more and stores the results as a run of its own. It posts nothing:
// the run can be compared with others. Events without consent are left out.
// The sites are divided among as many workers as there are processors.
func (s *Service) Resettle(
	ctx context.Context,
	org flex.OrgID,
	a Resettlement,
) (store.Run, error) {
	if err := a.check(); err != nil {
		return store.Run{}, err
	}

	w := resettleRun{
		service: s,
		org:     org,
		span: flex.Span{
			From: a.From.Start(),
			To:   a.To.Add(1).Start(),
		},
	}

	sites, err := w.begin(ctx, a)
	if err != nil {
		return w.run, err
	}

	if err := w.settleSites(ctx, sites); err != nil {
		return w.run, err
	}

	w.run.Events, w.run.Hash = len(w.inputs), settle.RunHash(w.inputs)

	return w.run, s.DB.Write(ctx, org, func(tx *store.Tx) error {
		return tx.FinishRun(ctx, w.run)
	})
}

// settleSites settles the sites in chunks, by as many workers as there are processors.
func (w *resettleRun) settleSites(ctx context.Context, sites []flex.SiteID) error {
	chunks := make(chan []flex.SiteID)
	failed, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var workers sync.WaitGroup

	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for chunk := range chunks {
				if err := w.settleChunk(failed, chunk); err != nil {
					stop(err)
				}
			}
		})
	}

	for chunk := range slices.Chunk(sites, resettleSites) {
		if failed.Err() == nil {
			chunks <- chunk
		}
	}

	close(chunks)
	workers.Wait()

	return context.Cause(failed)
}

// settleChunk calls settle for some sites. A panic becomes an error, so that settleSites does not
// wait for this worker for ever.
func (w *resettleRun) settleChunk(
	ctx context.Context,
	sites []flex.SiteID,
) (err error) {
	defer flex.Recover(&err)
	return w.settle(ctx, sites)
}

// begin reads what all sites share, which may take a while, and only then records the run, so
// that other writers do not wait for the reading. It returns the sites that have events.
func (w *resettleRun) begin(
	ctx context.Context,
	a Resettlement,
) ([]flex.SiteID, error) {
	var sites []flex.SiteID
	err := w.service.DB.Read(ctx, w.org, func(tx *store.Tx) error {
		w.run = store.Run{
			Kind:      store.AgainRun,
			KnownAt:   a.KnownAt,
			StartedAt: tx.Now(),
		}

		if w.run.KnownAt.IsZero() {
			w.run.KnownAt = tx.Now()
		}

		var err error
		sites, err = tx.SitesWithEvents(ctx, a.Site, w.span)
		if err != nil {
			return err
		}

		w.basis, err = basisOf(ctx, tx, []flex.Span{w.span}, w.run.KnownAt)
		return err
	})
	if err != nil {
		return nil, err
	}

	return sites, w.service.DB.Write(ctx, w.org, func(tx *store.Tx) error {
		w.run.ID = tx.NewRunID()
		return tx.AddRun(ctx, w.run)
	})
}

// resettleRun is the state of a run in progress.
type resettleRun struct {
	service *Service
	org     flex.OrgID
	span    flex.Span
	run     store.Run
	basis   *basis

	mu     sync.Mutex
	inputs []settle.Inputs
}

// settle settles the sites' events and stores the settlements. One that equals the event's
// newest settlement is stored as its hash alone.
func (w *resettleRun) settle(ctx context.Context, sites []flex.SiteID) error {
	var settlements []store.Settlement
	err := w.service.DB.Read(ctx, w.org, func(tx *store.Tx) error {
		events, err := tx.FlexEventsAt(ctx, sites, w.span, w.run.KnownAt)
		if err != nil {
			return err
		}

		events, err = consentedEvents(ctx, tx, w.basis, sites, events)
		if err != nil {
			return err
		}

		outcomes, err := settleEvents(ctx, tx, w.basis, events, true)
		settlements = nil

		for i, o := range outcomes {
			if !events[i].AssetLeft { // such an event has its part in the deviation, and is credited nothing
				settlements = append(settlements, o.Settlement)
			}
		}

		return err
	})

	if err != nil || len(settlements) == 0 {
		return err
	}

	w.mu.Lock()

	for _, s := range settlements {
		w.inputs = append(w.inputs, settle.Inputs{Event: s.Event, Hash: s.Hash})
	}

	w.mu.Unlock()

	return w.service.DB.Write(ctx, w.org, func(tx *store.Tx) error {
		return tx.AddSettlements(ctx, w.run.ID, settlements)
	})
}

// Compare lists the events of which two runs have different results.
func (s *Service) Compare(
	ctx context.Context,
	org flex.OrgID,
	before, after flex.RunID,
) ([]settle.Change, error) {
	var changes []settle.Change
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var results [2][]*settle.Result
		for i, id := range []flex.RunID{before, after} {
			if _, err := tx.Run(ctx, id); err != nil {
				return err
			}

			settlements, err := tx.SettlementsIn(ctx, id)
			if err != nil {
				return err
			}

			for _, settlement := range settlements {
				results[i] = append(results[i], settlement.Result)
			}
		}

		changes = settle.Diff(results[0], results[1])
		return nil
	})

	return changes, err
}

// Runs returns the organisation's newest settlement runs, newest first.
func (s *Service) Runs(
	ctx context.Context,
	org flex.OrgID,
	limit int,
) ([]store.Run, error) {
	var runs []store.Run
	var err error
	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		runs, err = tx.Runs(ctx, limit)
		return err
	})

	return runs, err
}
