package delivery

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

const (
	// releaseEvery is the time between two looks at an asset after a dispatch.
	releaseEvery = 15 * time.Minute
	// ReleaseTries is how often a dispatch that is over is sent again to an asset that still follows it.
	ReleaseTries = 2
	// releasesMax is how many assets are looked at in one transaction.
	releasesMax = 500
)

// CheckReleases looks at what assets do after their dispatch: at store.ReleaseAfter from its end and every
// releaseEvery until releaseTime. One that still does what it was dispatched to is sent the dispatch again,
// whose time is over, ReleaseTries times at most.
func (s *Service) CheckReleases(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(ctx, s.DB.OrgsBy((*store.All).OrgsWithReleases), s.CheckReleasesOf)
}

// CheckReleasesOf is CheckReleases for one organisation. A dispatch whose assets cannot be looked at is put off until the time
// of the next look, and delays no other.
func (s *Service) CheckReleasesOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	var more bool // parts of a dispatch are left
	q := store.Queue[flex.EventID]{
		Kind:  store.PutOffRelease,
		Batch: releasesMax,
		Most:  releasesMax,
		After: releaseEvery,
		Due:   (*store.Tx).DueReleaseEvents,
		Item:  store.OneID[flex.EventID],
		Do: func(ctx context.Context, tx *store.Tx, of []flex.EventID) (int, error) {
			n, err := lookAtReleases(ctx, tx, of)
			more = more || n == releasesMax
			return n, err
		},
	}

	report, err := q.Run(ctx, s.DB, org)
	report.More = report.More || more

	return report, err
}

// lookAtReleases looks at up to releasesMax assets of dispatches that are over, and returns at how many.
func lookAtReleases(
	ctx context.Context,
	tx *store.Tx,
	of []flex.EventID,
) (int, error) {
	due, err := tx.DueReleases(ctx, of, releasesMax)
	if err != nil {
		return 0, err
	}

	found := len(due)
	for len(due) > 0 {
		n := 1
		for n < len(due) && due[n].Event == due[0].Event {
			n++
		}

		if err := checkReleased(ctx, tx, due[:n]); err != nil {
			return 0, err
		}
		due = due[n:]
	}

	return found, nil
}

// checkReleased looks at the assets of one dispatch.
func checkReleased(
	ctx context.Context,
	tx *store.Tx,
	due []store.DueRelease,
) error {
	of := store.Dispatch{Span: due[0].Span}
	for _, r := range due {
		of.Assets = append(of.Assets, store.DispatchedAsset{ID: r.Asset})
	}

	powers, err := powersAfter(ctx, tx, of)
	if err != nil {
		return err
	}

	// the dispatch is one message for all its assets, or has one asset
	var again *store.DueRelease
	for i := range due {
		r := &due[i]
		power, known := powers[r.Asset]

		found := releaseOf(r.Power, power, known)
		if r.Followed {
			found = ReleaseDone // it follows the next dispatch
		}
		if found == ReleaseMissing && maySendAgain(r, tx.Now()) {
			r.Tries++
			again = r
		}

		err := tx.SaveRelease(
			ctx,
			*r,
			string(found),
			nextRelease(r, found, tx.Now()),
		)
		if err != nil {
			return err
		}
	}

	if again == nil {
		return nil
	}

	return tx.SendDispatchAgain(ctx, *again, tx.Now().Add(releaseEvery))
}

// maySendAgain reports whether a dispatch that is over may be sent again to an asset that follows it still: not of one that is long
// over, whose look was put off or late.
func maySendAgain(
	r *store.DueRelease,
	now time.Time,
) bool {
	return r.Tries < ReleaseTries && !now.After(r.To.Add(releaseTime+releaseEvery))
}

// nextRelease is when to look at an asset again; zero is never.
func nextRelease(r *store.DueRelease, found Release, now time.Time) time.Time {
	at := now.Add(releaseEvery)
	if found == ReleaseDone || at.After(r.To.Add(releaseTime)) {
		return time.Time{}
	}

	return at
}
