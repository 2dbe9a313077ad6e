package control

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// ScheduleAsOf returns the schedule that an asset's client had at an instant: the newest of
// the session of then that it had accepted by then, or after a failure reported as followed.
// There is none, a NotFound failure, if nothing was plugged in or nothing accepted, and where
// the schedule is past its retention.
func (s *Service) ScheduleAsOf(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
	at time.Time,
) (InForce, error) {
	var answer InForce
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Asset(ctx, asset); err != nil {
			return err
		}
		if at.After(tx.Now()) {
			return flex.Fail(
				flex.Malformed,
				"as_of %s is in the future: it is %s",
				at.UTC().Format(time.RFC3339),
				tx.Now().UTC().Format(time.RFC3339),
			)
		}

		schedules, err := tx.SchedulesWithin(ctx, asset, flex.Span{
			From: at,
			To:   at.Add(time.Microsecond),
		})
		if err != nil {
			return err
		}

		since, err := tx.FollowedSince(ctx, schedules)
		if err != nil {
			return err
		}

		for _, c := range slices.Backward(schedules) {
			from, followed := since[c.EventID]
			if followed && !from.After(at) {
				answer = InForce{c, c.Generation}
				return nil
			}
		}

		return flex.Fail(
			flex.NotFound,
			"asset %v had no schedule at %s",
			asset,
			at.UTC().Format(time.RFC3339),
		)
	})

	return answer, err
}
