package reward

import (
	"context"
	"fmt"
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

// SettleAgain settles events once more, keeps what it comes to as a run of its own, and
// posts nothing: the run is there to be compared. Events that have no consent are left out.
func (d *Desk) SettleAgain(ctx context.Context, org flex.OrgID, a Again) (run store.Run, err error) {
	err = d.DB.Write(ctx, org, func(tx *store.Tx) error {
		o, err := tx.OrgRecord(ctx)
		if err != nil {
			return err
		}
		events, err := tx.FlexEventsWithin(ctx, a.Site, flex.Span{From: a.From.Start(), To: a.To.Add(1).Start()})
		if err != nil {
			return err
		}
		run = store.Run{ID: tx.NewRunID(), Kind: store.AgainRun, KnownAt: a.KnownAt, StartedAt: tx.Now()}
		if run.KnownAt.IsZero() {
			run.KnownAt = tx.Now()
		}
		hashes := map[flex.FlexEventID]settle.Hash{}
		var settlements []store.Settlement
		for _, e := range events {
			if !e.Consented {
				continue
			}
			s, err := settleEvent(ctx, tx, e, o.Settings, a.KnownAt)
			if err != nil {
				return fmt.Errorf("settle flex event %s: %w", e.ID, err)
			}
			hashes[e.ID] = s.Hash
			settlements = append(settlements, s)
		}
		run.Events, run.Hash = len(settlements), settle.RunHash(hashes)
		return tx.AddRun(ctx, run, settlements)
	})
	return run, err
}

// Compare lists what two runs say differently.
func (d *Desk) Compare(ctx context.Context, org flex.OrgID, before, after flex.RunID) (changes []settle.Change, err error) {
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
func (d *Desk) Runs(ctx context.Context, org flex.OrgID, limit int) (runs []store.Run, err error) {
	err = d.DB.Read(ctx, org, func(tx *store.Tx) error {
		runs, err = tx.Runs(ctx, limit)
		return err
	})
	return runs, err
}
