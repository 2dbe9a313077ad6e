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

// Again says what is to be settled once more.
type Again struct {
	Site    flex.SiteID // zero: all sites
	From    flex.Day    // events that begin from this day
	To      flex.Day    // to this one, both included
	KnownAt time.Time   // on what was known then; zero: now
}

// againSites is the number of sites whose events are read and settled at a time.
const againSites = 64

// SettleAgain settles events once more, keeps what it comes to as a run of its own, and
// posts nothing: the run is there to be compared. Events that have no consent are left out.
// The sites are shared out to as many workers as there are processors.
func (d *Service) SettleAgain(ctx context.Context, org flex.OrgID, a Again) (store.Run, error) {
	w := again{service: d, org: org, span: flex.Span{From: a.From.Start(), To: a.To.Add(1).Start()}}
	var sites []flex.SiteID
	err := d.DB.Write(ctx, org, func(tx *store.Tx) error {
		w.run = store.Run{ID: tx.NewRunID(), Kind: store.AgainRun, KnownAt: a.KnownAt, StartedAt: tx.Now()}
		if w.run.KnownAt.IsZero() {
			w.run.KnownAt = tx.Now()
		}

		var err error
		sites, err = tx.SitesWithEvents(ctx, a.Site, w.span)
		if err != nil {
			return err
		}

		w.basis, err = basisOf(ctx, tx, []flex.Span{w.span}, w.run.KnownAt)
		if err != nil {
			return err
		}

		return tx.AddRun(ctx, w.run)
	})

	if err != nil {
		return w.run, err
	}

	chunks := make(chan []flex.SiteID)
	failed, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var workers sync.WaitGroup

	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for chunk := range chunks {
				if err := w.settle(failed, chunk); err != nil {
					stop(err)
				}
			}
		})
	}

	for chunk := range slices.Chunk(sites, againSites) {
		if failed.Err() == nil {
			chunks <- chunk
		}
	}

	close(chunks)
	workers.Wait()

	if failed.Err() != nil {
		return w.run, context.Cause(failed)
	}

	w.run.Events, w.run.Hash = len(w.inputs), settle.RunHash(w.inputs)
	return w.run, d.DB.Write(ctx, org, func(tx *store.Tx) error { return tx.FinishRun(ctx, w.run) })
}

// again is a run under way.
type again struct {
	service *Service
	org     flex.OrgID
	span    flex.Span
	run     store.Run
	basis   *basis

	mu     sync.Mutex
	inputs []settle.Inputs
}

// settle settles the sites' events and keeps the settlements. What comes to the same as the
// event's newest settlement is kept as its hash alone.
func (w *again) settle(ctx context.Context, sites []flex.SiteID) error {
	var settlements []store.Settlement
	err := w.service.DB.Read(ctx, w.org, func(tx *store.Tx) error {
		events, err := tx.FlexEventsAt(ctx, sites, w.span, w.run.KnownAt)
		if err != nil {
			return err
		}

		events = slices.DeleteFunc(events, func(e store.FlexEvent) bool { return !e.Consented })
		outcomes, err := settleEvents(ctx, tx, w.basis, events, true)
		settlements = nil

		for _, o := range outcomes {
			settlements = append(settlements, o.Settlement)
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
	return w.service.DB.Write(ctx, w.org, func(tx *store.Tx) error { return tx.AddSettlements(ctx, w.run.ID, settlements) })
}

// Compare lists what two runs say differently.
func (d *Service) Compare(ctx context.Context, org flex.OrgID, before, after flex.RunID) (changes []settle.Change, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		var results [2][]*settle.Result
		for i, id := range []flex.RunID{before, after} {
			if _, err := tx.Run(ctx, id); err != nil {
				return err
			}

			settlements, err := tx.SettlementsIn(ctx, id)
			if err != nil {
				return err
			}

			for _, s := range settlements {
				results[i] = append(results[i], s.Result)
			}
		}

		changes = settle.Diff(results[0], results[1])
		return nil
	})
	return changes, err
}

// Runs returns the organisation's newest settlement runs, newest first.
func (d *Service) Runs(ctx context.Context, org flex.OrgID, limit int) (runs []store.Run, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		runs, err = tx.Runs(ctx, limit)
		return err
	})
	return runs, err
}
