package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Limits of one run of a job.
const (
	dueMax   = 2000 // marked sessions that are looked at in one transaction
	partsMax = 4    // parts of a wave that are leased at a time

	waveWorkers = 3 // goroutines that work on a wave: on two cores one commits while two plan
)

// PlanDue plans again, without an event, what has to be: every plugged-in asset when prices
// become known, and those that were marked. It is safe to run twice and on several machines
// at once.
func (s *Service) PlanDue(ctx context.Context) (worker.Report, error) {
	var orgs []flex.Org
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		orgs, err = all.Orgs(ctx)
		return err
	})
	if err != nil {
		return worker.Report{}, fmt.Errorf("list organisations: %w", err)
	}

	var sum tally
	var failed error // of all organisations that failed: they hold up no other

	for _, org := range orgs {
		t, err := s.planOf(ctx, org)
		sum.planned += t.planned
		sum.changed += t.changed
		failed = errors.Join(failed, err)

		if ctx.Err() != nil {
			break
		}
	}

	return sum.report(), failed
}

// PlanDueOf is PlanDue for one organisation.
func (s *Service) PlanDueOf(
	ctx context.Context,
	id flex.OrgID,
) (worker.Report, error) {
	var org flex.Org
	err := s.DB.Read(ctx, id, func(tx *store.Tx) error {
		var err error
		org, err = tx.OrgRecord(ctx)
		return err
	})
	if err != nil {
		return worker.Report{}, err
	}

	t, err := s.planOf(ctx, org)

	return t.report(), err
}

// planOf plans one organisation's assets again, and counts them.
func (s *Service) planOf(ctx context.Context, org flex.Org) (tally, error) {
	var t tally
	err := s.planRecovered(ctx, org, &t)
	s.planned.Add(int64(t.planned))
	s.changed.Add(int64(t.changed))

	if err != nil {
		return t, fmt.Errorf("plan %s anew: %w", org.Name, err)
	}

	return t, nil
}

// planRecovered is planOrg; a panic is its error.
func (s *Service) planRecovered(
	ctx context.Context,
	org flex.Org,
	t *tally,
) (err error) {
	defer flex.Recover(&err)
	*t, err = s.planOrg(ctx, org)

	return err
}

// JoinWaves takes a share in waves that another process has begun: a wake-up
// reaches only the process that prices were given to.
func (s *Service) JoinWaves(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(ctx, s.DB.OrgsBy((*store.All).WavesLeft), func(ctx context.Context, org flex.OrgID) (worker.Report, error) {
		var t tally
		err := s.parts(ctx, org, nil, &t)
		s.planned.Add(int64(t.planned))
		s.changed.Add(int64(t.changed))

		return worker.Report{Did: t.changed}, err
	})
}

// tally counts what a job did.
type tally struct{ planned, changed int }

func (t tally) report() worker.Report {
	r := worker.Report{Did: t.changed}
	if t.planned > 0 {
		r.Note = fmt.Sprintf(
			"%d assets planned, %d schedules changed",
			t.planned,
			t.changed,
		)
	}

	return r
}

// planOrg is the job of one organisation.
func (s *Service) planOrg(
	ctx context.Context,
	org flex.Org,
) (tally, error) {
	var fresh, left, capped bool
	err := s.DB.Read(ctx, org.ID, func(tx *store.Tx) error {
		var err error
		fresh, left, err = tx.WaveDue(ctx)
		if err == nil {
			_, capped, err = tx.Caps(ctx)
		}
		return err
	})
	if err != nil {
		return tally{}, err
	}

	var first []store.WavePart
	if fresh {
		first, err = s.beginWave(ctx, org.ID)
		if err != nil {
			return tally{}, fmt.Errorf("begin a wave: %w", err)
		}
	}

	var t tally
	var failed error
	if capped {
		if err := s.planFleet(ctx, org, &t); err != nil {
			failed = fmt.Errorf("plan the fleet together: %w", err)
		}
		if ctx.Err() == nil {
			failed = errors.Join(failed, s.inputs(ctx, org, &t))
		}
		return t, failed
	}

	if fresh || left {
		failed = s.parts(ctx, org.ID, first, &t)
	}

	err = s.marked(ctx, org, &t)

	return t, errors.Join(failed, err)
}

// dueBatch is how many marked sessions are looked at in one transaction.
func (s *Service) dueBatch() int {
	if s.dueAtOnce > 0 {
		return s.dueAtOnce
	}
	return dueMax
}

// marked plans what was marked, whether or not a wave failed. A mark that fails does not hold up the others.
func (s *Service) marked(
	ctx context.Context,
	org flex.Org,
	t *tally,
) error {
	var failed error
	if ctx.Err() == nil {
		failed = s.due(ctx, org, t)
	}
	if ctx.Err() == nil {
		failed = errors.Join(failed, s.inputs(ctx, org, t))
	}

	return failed
}

// beginWave begins a wave, and takes its first parts with the same commit.
func (s *Service) beginWave(
	ctx context.Context,
	org flex.OrgID,
) ([]store.WavePart, error) {
	var first []store.WavePart
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.BeginWave(ctx); err != nil {
			return err
		}

		var err error
		first, err = tx.TakeWaveParts(ctx, partsMax)
		return err
	})

	return first, err
}

// parts works on the parts of a wave until none is left to take, beginning with those that were taken already.
// Several workers do so at once: while one commits, the others read and plan. A wave whose first parts are fewer
// than partsMax has no further ones.
func (s *Service) parts(
	ctx context.Context,
	org flex.OrgID,
	first []store.WavePart,
	t *tally,
) error {
	if len(first) > 0 && len(first) < partsMax {
		return s.replanParts(ctx, org, first, t)
	}

	var wg sync.WaitGroup
	var tallies [waveWorkers]tally
	var errs [waveWorkers]error

	for i := range tallies {
		wg.Go(func() {
			defer flex.Recover(&errs[i])

			var parts []store.WavePart
			if i == 0 {
				parts = first
			}

			for errs[i] == nil {
				if len(parts) == 0 {
					parts, errs[i] = s.takeParts(ctx, org)
				}
				if len(parts) == 0 {
					return
				}

				errs[i] = s.replanParts(ctx, org, parts, &tallies[i])
				parts = nil
			}
		})
	}

	wg.Wait()

	for _, done := range tallies {
		t.planned, t.changed = t.planned+done.planned, t.changed+done.changed
	}

	return errors.Join(errs[:]...)
}

func (s *Service) takeParts(
	ctx context.Context,
	org flex.OrgID,
) ([]store.WavePart, error) {
	var parts []store.WavePart
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		var err error
		parts, err = tx.TakeWaveParts(ctx, partsMax)
		return err
	})

	return parts, err
}

// replanParts plans the assets of some parts of a wave again, all on one snapshot, and commits
// what changed part by part, so that no other write waits for long.
func (s *Service) replanParts(
	ctx context.Context,
	org flex.OrgID,
	parts []store.WavePart,
	t *tally,
) error {
	found := make([][]store.ScheduledAsset, len(parts))
	m, err := s.snapshot(ctx, org, func(tx *store.Tx) (any bool, err error) {
		for i := 0; i < len(parts) && err == nil; i++ {
			found[i], err = tx.WavePart(ctx, parts[i])
			any = any || len(found[i]) > 0
		}
		return any, err
	})

	for i := 0; i < len(parts) && err == nil; i++ {
		err = s.replanAll(ctx, org, m, found[i], t, &parts[i])
	}

	if errors.Is(err, errCapped) { // the fleet is planned together
		return nil
	}

	return err
}

// due compares with the market again for the assets that were marked, until none is left.
func (s *Service) due(ctx context.Context, org flex.Org, t *tally) error {
	for more := true; more; {
		var found []store.ScheduledAsset
		m, err := s.snapshot(ctx, org.ID, func(tx *store.Tx) (any bool, err error) {
			found, err = tx.MarketDue(ctx, s.dueBatch())
			return len(found) > 0, err
		})
		if err == nil && len(found) > 0 {
			err = s.replanAll(ctx, org.ID, m, found, t, nil)
		}

		if errors.Is(err, errCapped) { // the marks stay until the fleet is planned together
			return nil
		}
		if err != nil {
			return err
		}

		more = len(found) == s.dueBatch()
	}

	return nil
}

// inputs plans the assets again whose inputs changed without an event. It looks at them on a
// snapshot of the store; only those whose schedule changes are then locked. One that cannot be read or planned
// stays marked, and holds up no other: it is tried once in a run.
func (s *Service) inputs(ctx context.Context, org flex.Org, t *tally) error {
	tried := failedAssets{assets: map[flex.AssetID]bool{}}
	for {
		l, err := s.lookAtMarked(ctx, org.ID, &tried)
		if err == nil {
			err = s.stay(ctx, org.ID, &l)
		}
		if err != nil {
			return errors.Join(tried.err(), err)
		}

		t.planned += len(l.same)
		before := len(tried.assets)
		tried.add(l.failed)

		for _, assets := range l.changed {
			tried.add(s.refreshSite(ctx, org.ID, byInputs, t, assets))
		}

		done := l.found - (len(tried.assets) - before)
		if l.found < s.dueBatch() || done == 0 {
			return tried.err()
		}
	}
}

// lookAtMarked looks at marked assets, without those that failed in this run.
func (s *Service) lookAtMarked(
	ctx context.Context,
	org flex.OrgID,
	tried *failedAssets,
) (looked, error) {
	var l looked
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		l = looked{}

		found, err := tx.InputsDue(ctx, s.dueBatch()+len(tried.assets))
		if err != nil {
			return err
		}

		found = slices.DeleteFunc(found, func(m store.Marked) bool {
			return tried.assets[m.AssetID]
		})
		found = found[:min(len(found), s.dueBatch())]
		l.found = len(found)

		if l.found == 0 {
			return nil
		}

		return s.whichDiffer(ctx, tx, found, &l)
	})

	return l, err
}

// looked is what a look at marked assets found.
type looked struct {
	found int
	// the marks of sessions whose schedule stays, and by instant, the assets to look at again then
	same  []store.Marked
	again map[time.Time][]flex.AssetID
	// assets that would be given another schedule, grouped by site
	changed [][]flex.AssetID
	// assets that could not be read or planned
	failed []notPlanned
}

// stay removes the marks of sessions whose schedule stays, as they were when they were looked at. Only then does it mark the assets that
// are to be looked at again later: a mark for later does not replace one that is due.
func (s *Service) stay(
	ctx context.Context,
	org flex.OrgID,
	l *looked,
) error {
	if len(l.same) == 0 {
		return nil
	}

	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.Unmark(ctx, l.same...); err != nil {
			return err
		}

		for at, assets := range l.again {
			if err := tx.MarkAt(ctx, at, assets...); err != nil {
				return err
			}
		}

		return nil
	})
}

// whichDiffer separates the sessions whose schedule stays from the assets that would be given another one.
func (s *Service) whichDiffer(
	ctx context.Context,
	tx *store.Tx,
	found []store.Marked,
	l *looked,
) error {
	w, err := readPluggedIn(ctx, tx)
	if err != nil {
		return err
	}

	l.again = map[time.Time][]flex.AssetID{}
	at := map[flex.SiteID]int{}

	for _, m := range found {
		c, v, err := s.lookAt(ctx, tx, w, m.AssetID)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			l.failed = append(l.failed, notPlanned{m.AssetID, err})
			continue
		}

		if !v.differs {
			l.same = append(l.same, m)
			if !v.again.IsZero() {
				l.again[v.again] = append(l.again[v.again], m.AssetID)
			}
			continue
		}

		n, ok := at[c.Asset.SiteID]
		if !ok {
			n = len(l.changed)
			at[c.Asset.SiteID] = n
			l.changed = append(l.changed, nil)
		}

		l.changed[n] = append(l.changed[n], m.AssetID)
	}

	return nil
}

// newInputs says whether its inputs as they are give an asset another schedule.
type newInputs struct {
	differs bool      // it would be given another schedule
	again   time.Time // when to look again if not; zero for not before the next cause
}

func (s *Service) lookAt(
	ctx context.Context,
	tx *store.Tx,
	w *pluggedIn,
	asset flex.AssetID,
) (c store.PlanningState, v newInputs, err error) {
	defer flex.Recover(&err) // a panic is of this asset, and not of the others

	c, err = tx.PlanningState(ctx, asset)
	if err != nil {
		return c, newInputs{}, err
	}

	v, err = s.differs(ctx, tx, w, &c)

	return c, v, err
}

// differs reports whether an asset would be given another schedule for its inputs as they are.
func (s *Service) differs(
	ctx context.Context,
	tx *store.Tx,
	w *pluggedIn,
	c *store.PlanningState,
) (newInputs, error) {
	if !refreshable(c, tx.Now()) {
		return newInputs{}, nil
	}
	if c.Battery && w.assetHeadroom == nil {
		return newInputs{differs: true}, nil
	}

	if c.Fuse > 0 && w.assetHeadroom == nil { // its site may be planned as one, under a lock
		loads, err := tx.SiteLoads(ctx, c.Asset.SiteID)
		if err != nil || len(loads) > 1 || c.Current.HasTail() {
			return newInputs{differs: true}, err
		}
	}

	var v newInputs
	err := w.withHeadroom(ctx, tx, c, func(r *assetHeadroom) error {
		if r != nil && r.fuse { // its site is planned as one
			v.differs = true
			return nil
		}

		under, err := w.bindingLimits(ctx, tx, c, r)
		if err != nil {
			return err
		}

		next, _, err := s.draft(ctx, tx, c, byInputs, under)
		v = newInputs{differs: next != nil, again: under.again}

		return err
	})

	return v, err
}

var (
	byInputs = replanReason{cause: store.CauseInputs, trigger: ByInputs}
	byMarket = replanReason{cause: store.CauseMarket, trigger: ByMarket}
)

func refreshable(c *store.PlanningState, now time.Time) bool {
	return c.Open() && c.Controlled && c.Session.ReadyBy.After(now)
}

// refreshSite plans assets of one site again, together. Where that fails each is planned by itself, so that one which
// cannot be planned holds up no other. It returns those that could not be planned.
func (s *Service) refreshSite(
	ctx context.Context,
	org flex.OrgID,
	why replanReason,
	t *tally,
	assets []flex.AssetID,
) []notPlanned {
	err := s.refresh(ctx, org, why, t, assets...)
	if err == nil {
		return nil
	}

	var failed []notPlanned
	for _, asset := range assets {
		if len(assets) > 1 && ctx.Err() == nil {
			err = s.refresh(ctx, org, why, t, asset)
		}
		if err != nil {
			failed = append(failed, notPlanned{asset, err})
		}
	}

	return failed
}

// refresh plans assets of one site again without an event, in one transaction: a site that is planned as one is
// planned once for all of them.
func (s *Service) refresh(
	ctx context.Context,
	org flex.OrgID,
	why replanReason,
	t *tally,
	assets ...flex.AssetID,
) (err error) {
	defer flex.Recover(&err)

	var planned, changed int
	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		planned, changed = 0, 0

		cars, sessions, err := lockCars(ctx, tx, assets)
		if err != nil {
			return err
		}

		// The due marks go first: planning may mark a session for later, but not while a mark is due.
		if err := tx.Done(ctx, tx.Now(), sessions...); err != nil {
			return err
		}

		before := generations(cars)
		err = s.replanTogether(ctx, tx, cars, why)
		planned, changed = len(cars), generations(cars)-before

		return err
	})

	t.planned, t.changed = t.planned+planned, t.changed+changed

	return err
}

// lockCars locks assets of one site to be planned, in the order of their ids. It returns those that may be planned again, and the
// sessions of all that were not deleted since.
func lockCars(
	ctx context.Context,
	tx *store.Tx,
	assets []flex.AssetID,
) ([]*store.PlanningState, []flex.SessionID, error) {
	ordered := slices.SortedFunc(slices.Values(assets), func(a, b flex.AssetID) int {
		return bytes.Compare(a[:], b[:])
	})

	var (
		cars     []*store.PlanningState
		sessions []flex.SessionID
	)

	for _, asset := range ordered {
		err := tx.LockToPlan(ctx, asset)
		if flex.KindOf(err) == flex.NotFound {
			continue
		}
		if err != nil {
			return nil, nil, err
		}

		c, err := tx.PlanningState(ctx, asset)
		if err != nil {
			return nil, nil, err
		}

		sessions = append(sessions, c.Session.ID)
		if refreshable(&c, tx.Now()) {
			cars = append(cars, &c)
		}
	}

	return cars, sessions, nil
}

// generations adds up how many schedules sessions have had.
func generations(cars []*store.PlanningState) int {
	var sum int
	for _, c := range cars {
		sum += int(c.Session.Generation)
	}
	return sum
}

// replanTogether plans locked assets of one site again: as one, where they are several and the site is planned so,
// or one after the other.
func (s *Service) replanTogether(
	ctx context.Context,
	tx *store.Tx,
	cars []*store.PlanningState,
	why replanReason,
) error {
	if len(cars) > 1 && (cars[0].Fuse > 0 || cars[0].Battery) {
		_, capped, err := tx.LockCaps(ctx)
		if err != nil {
			return fmt.Errorf("lock the caps: %w", err)
		}

		if !capped {
			done, err := s.replanSite(ctx, tx, why, cars...)
			if err != nil || done {
				return err
			}
		}
	}

	for _, c := range cars {
		if err := s.replan(ctx, tx, c, why); err != nil {
			return err
		}
	}

	return nil
}
