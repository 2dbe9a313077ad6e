package delivery

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

const (
	// releaseEvery is the time between two checks of an asset after a dispatch.
	releaseEvery = 15 * time.Minute
	// ReleaseTries is how often a dispatch that is over is sent again to an asset that still
	// follows it.
	ReleaseTries = 2
	// releasesMax is how many assets are checked in one transaction.
	releasesMax = 500
)

// CheckReleases checks whether assets have returned from their dispatch: at store.ReleaseAfter
// from its end and then every releaseEvery until releaseTime. To an asset that still follows
// it, the dispatch is sent again, with its time over, at most ReleaseTries times. A dispatch that
// the client refused is not sent again, whatever the asset does.
func (s *Service) CheckReleases(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(ctx, s.DB.OrgsBy((*store.All).OrgsWithReleases), s.CheckReleasesOf)
}

// CheckReleasesOf is CheckReleases for one organisation. A dispatch whose assets cannot be
// checked is put off until the time of the next check, after four failures for longer
// (worker.PutOffAfter), and delays no other.
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
		Do: func(ctx context.Context, tx *store.Tx, events []flex.EventID) (int, error) {
			n, err := checkDueReleases(ctx, tx, events)
			more = more || n == releasesMax
			return n, err
		},
	}

	report, err := q.Run(ctx, s.DB, org)
	report.More = report.More || more

	return report, err
}

// checkDueReleases checks up to releasesMax assets of dispatches that are over, and returns
// their number.
func checkDueReleases(
	ctx context.Context,
	tx *store.Tx,
	events []flex.EventID,
) (int, error) {
	due, err := tx.DueReleases(ctx, events, releasesMax)
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

// checkReleased checks the assets of one dispatch.
func checkReleased(
	ctx context.Context,
	tx *store.Tx,
	due []store.DueRelease,
) error {
	dispatch := store.Dispatch{Span: due[0].Span}
	for _, r := range due {
		dispatch.Assets = append(dispatch.Assets, store.DispatchedAsset{ID: r.Asset})
	}

	powers, err := powersAfter(ctx, tx, dispatch)
	if err != nil {
		return err
	}

	// the dispatch is one message for all its assets, or has one asset
	var resend *store.DueRelease
	for i := range due {
		r := &due[i]
		power, known := powers[r.Asset]

		found := releaseOf(r.Power, power, known)
		if r.Followed || r.Refused {
			found = ReleaseDone // it follows the next dispatch, or never followed this one
		}
		if found == ReleaseMissing && mayResend(r, tx.Now()) {
			r.Tries++
			resend = r
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

	if resend == nil {
		return nil
	}

	return tx.SendDispatchAgain(ctx, *resend, tx.Now().Add(releaseEvery))
}

// mayResend reports whether a dispatch that is over may be sent again to an asset that
// still follows it: not if it has been over for long, because the check was put off or late.
func mayResend(
	r *store.DueRelease,
	now time.Time,
) bool {
	return r.Tries < ReleaseTries && !now.After(r.To.Add(releaseTime+releaseEvery))
}

// nextRelease returns when to check an asset again; zero is never.
func nextRelease(r *store.DueRelease, found Release, now time.Time) time.Time {
	at := now.Add(releaseEvery)
	if found == ReleaseDone || at.After(r.To.Add(releaseTime)) {
		return time.Time{}
	}

	return at
}
