package control

import (
	"context"
	"errors"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// The kinds of event of a household's absence. Only its page sends them.
const (
	Away      Kind = "away"
	AwayEnded Kind = "away_ended"
)

// AwayGrace is for how long after an absence a car still waits for the plan that follows. If
// none comes, the charger is unlimited.
const AwayGrace = 15 * time.Minute

// AwayMax is the longest absence, and how far ahead one may end.
const AwayMax = 60 * 24 * time.Hour

// awayMax is the number of absences that are read at a time.
const awayMax = 25

// SetAway sets a span in which the site's cars need nothing, regardless of their intents; an
// empty span ends the absence. It does so for all cars or, if it fails, for none. A span that
// is over, or longer or further ahead than AwayMax, is Malformed.
func (s *Service) SetAway(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	away flex.Span,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := checkAway(away, tx.Now()); err != nil {
			return err
		}

		cars, err := lockedCars(ctx, tx, site)
		if err != nil {
			return err
		}

		for _, car := range cars {
			if err := s.putAway(ctx, tx, car, away); err != nil {
				return err
			}
		}

		return nil
	})
}

// lockedCars locks the assets of a site that charge, before any of them is planned, and
// returns them ordered by id.
func lockedCars(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) ([]flex.AssetID, error) {
	assets, err := tx.AssetsOf(ctx, site)
	if err != nil {
		return nil, err
	}

	var cars []flex.AssetID
	for _, a := range assets {
		if !a.Type.Charges() {
			continue
		}
		if err := tx.LockToPlan(ctx, a.ID); err != nil {
			return nil, err
		}

		cars = append(cars, a.ID)
	}

	return cars, nil
}

// checkAway returns Malformed for an absence that is over, or ends too far ahead.
func checkAway(away flex.Span, now time.Time) error {
	switch {
	case away == flex.Span{}:
		return nil

	case !away.To.After(now) || away.Empty():
		return flex.Fail(
			flex.Malformed,
			"the day of coming back lies before that of leaving, or is over",
		)

	case away.To.After(now.Add(AwayMax)):
		return flex.Fail(
			flex.Malformed,
			"an absence ends within %d days",
			int(AwayMax.Hours()/24),
		)
	}

	return nil
}

// SkipNight sets that one car needs nothing until the deadline of its plan. A car without a
// plan is NotFound.
func (s *Service) SkipNight(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	asset flex.AssetID,
) error {
	if err := s.checkAtHome(ctx, org, site, asset); err != nil {
		return err
	}

	return s.SkipPlan(ctx, org, asset)
}

// EndAway ends a skipped night or an absence of one car of a site, also one that has not
// begun.
func (s *Service) EndAway(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	asset flex.AssetID,
) error {
	if err := s.checkAtHome(ctx, org, site, asset); err != nil {
		return err
	}

	return s.setAway(ctx, org, asset, flex.Span{})
}

// checkAtHome returns NotFound for an asset that is not at the site.
func (s *Service) checkAtHome(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	asset flex.AssetID,
) error {
	var h Household
	assets, err := s.assetsOf(ctx, org, site, &h)
	if err != nil {
		return err
	}

	if !slices.ContainsFunc(assets, func(a flex.Asset) bool {
		return a.ID == asset
	}) {
		return flex.Fail(
			flex.NotFound,
			"no such car or charger is at this home",
		)
	}

	return nil
}

// SkipPlan is SkipNight for a car of any home of the organisation. A second call does not skip
// a second night.
func (s *Service) SkipPlan(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		c, err := lockedCharging(ctx, tx, asset)
		if err != nil {
			return err
		}

		current, err := inForceOf(ctx, tx, &c)
		if err != nil {
			return err
		}

		away, err := skipSpan(&c, current.From.ReadyBy, tx.Now())
		if err != nil || away == c.Away {
			return err
		}

		return s.putAway(ctx, tx, asset, away)
	})
}

// skipSpan returns the time in which a car that skips a night needs nothing: until the
// deadline of its plan, and at least as long as its household is away. The plan of a car that
// already needs nothing ends with its absence and not at a deadline; for such a car, also
// until it is planned again after the absence, the next deadline counts.
func skipSpan(
	c *store.PlanningState,
	deadline, now time.Time,
) (flex.Span, error) {
	from := now.Truncate(time.Second) // plans begin at whole seconds
	before := c.Away
	if !before.Empty() && !before.From.After(from) {
		present := *c
		present.Away = flex.Span{}
		deadline = effective(&present, flex.OrgSettings{}, from).ReadyBy
	}

	skipped := flex.Span{From: from, To: deadline}
	switch {
	case skipped.Empty():
		return before, flex.Fail(
			flex.Malformed,
			"its plan is over, so that there is nothing to skip",
		)

	case !before.To.After(from): // there is none, or it is over
		return skipped, nil

	case before.From.After(deadline):
		return before, flex.Fail(
			flex.Malformed,
			"its household is away from %s on, and only one absence is kept: end that, or skip the night when it has begun",
			before.From.UTC().Format(time.RFC3339),
		)
	}

	return flex.Span{
		From: flex.Earlier(before.From, from),
		To:   flex.Later(before.To, deadline),
	}, nil
}

// EndSkip ends a skipped night or an absence that has begun. It changes nothing for a car that
// skips nothing.
func (s *Service) EndSkip(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		c, err := lockedCharging(ctx, tx, asset)
		skips := c.Away.Contains(tx.Now()) // an absence that has not begun stays
		if err != nil || !skips {
			return err
		}

		return s.putAway(ctx, tx, asset, flex.Span{})
	})
}

// setAway is putAway in its own transaction.
func (s *Service) setAway(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
	away flex.Span,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		return s.putAway(ctx, tx, asset, away)
	})
}

// putAway sets the time in which one car needs nothing; an empty span ends it.
func (s *Service) putAway(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	away flex.Span,
) error {
	kind := Away
	if away.Empty() {
		kind = AwayEnded
	}

	err := tx.AddEvent(
		ctx,
		asset,
		string(kind),
		store.AssetEvent{EndAt: away.To},
	)
	if err != nil {
		return err
	}

	return s.changeAway(ctx, tx, asset, func(flex.Span) flex.Span {
		return away
	})
}

// changeAway changes when an asset's household is away, and plans the asset again if it is
// plugged in.
func (s *Service) changeAway(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	change func(flex.Span) flex.Span,
) error {
	if err := tx.LockToPlan(ctx, asset); err != nil {
		return err
	}

	c, err := tx.PlanningState(ctx, asset)
	if err != nil {
		return err
	}

	before := c.Away
	c.Away = change(before)
	due := c.Away.To
	if c.Away.From.After(tx.Now()) {
		due = c.Away.From
	}

	if err := tx.PutAway(ctx, asset, c.Away, due); err != nil {
		return err
	}

	if !c.Open() || !c.Controlled {
		return nil
	}

	// Until the absence begins the plan stays, and the energy charged for it counts.
	if notBegun(before, tx.Now()) && notBegun(c.Away, tx.Now()) {
		return nil
	}

	return s.replan(ctx, tx, &c, newIntent)
}

// notBegun reports whether there is no absence, or one that has not begun.
func notBegun(away flex.Span, now time.Time) bool {
	return away.Empty() || away.From.After(now)
}

// newIntent is the reason of a plan for a household that has changed what it needs.
var newIntent = replanReason{
	cause:   store.CauseIntent,
	must:    true,
	intent:  true,
	trigger: ByEvent,
}

// ReplanAbsences plans those cars again whose household's absence begins or has ended.
func (s *Service) ReplanAbsences(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(
		ctx,
		s.DB.OrgsBy((*store.All).OrgIDs),
		s.ReplanAbsencesOf,
	)
}

// ReplanAbsencesOf is ReplanAbsences for one organisation.
func (s *Service) ReplanAbsencesOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	var r worker.Report
	tried := failedAssets{assets: map[flex.AssetID]bool{}}
	for {
		n, err := s.replanDueAbsences(ctx, org, &tried)
		r.Count += n
		if err != nil || n == 0 {
			return r, errors.Join(tried.err(), err)
		}

		if len(tried.assets) == 0 {
			r.More = n == awayMax
			return r, nil
		}
	}
}

// replanDueAbsences plans some cars whose absence begins or ends, without those that failed in
// this run, and returns how many. One that fails does not delay the others.
func (s *Service) replanDueAbsences(
	ctx context.Context,
	org flex.OrgID,
	tried *failedAssets,
) (int, error) {
	var due []flex.AssetID
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		due, err = tx.AwayDue(ctx, awayMax+len(tried.assets))
		return err
	})
	if err != nil {
		return 0, err
	}

	var n int
	for _, asset := range due {
		if tried.assets[asset] {
			continue
		}

		err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
			return s.changeAway(ctx, tx, asset, func(away flex.Span) flex.Span {
				if away.To.After(tx.Now()) {
					return away
				}
				return flex.Span{}
			})
		})
		if flex.KindOf(err) == flex.Unavailable || ctx.Err() != nil {
			return n, errors.Join(err, ctx.Err())
		}

		if err != nil {
			tried.add([]notPlanned{{asset, err}})
			continue
		}

		n++
	}

	return n, nil
}

// applyAbsence sets the need of a plan to zero if the household is away at its instant, and
// reports whether it is. The car is planned again at the end of the absence. Its profile ends
// soon after that, so that a car charges without limits, and no later night is missed, if
// nothing more is sent.
func applyAbsence(e *store.PlanInputs, away flex.Span, from time.Time) bool {
	if !away.Contains(from) {
		return false
	}

	e.Need, e.Mode = 0, flex.Minimise
	e.ReadyBy = away.To.Add(AwayGrace).Truncate(time.Second) // profiles end at whole seconds

	return true
}
