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
	dueMax   = 2000 // marked sessions that are planned in one transaction
	partsMax = 4    // parts of a wave that are leased at a time

	waveWorkers = 3 // goroutines that plan a wave: on two cores one commits while two plan
)

// PlanDue plans again what changes without an event: every plugged-in asset when new prices
// are published, and assets that were marked. It is safe to run twice, and on several machines
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

	var sum runCounts
	var failed error // of all organisations: one that fails does not delay the others

	for _, org := range orgs {
		t, err := s.planCounted(ctx, org)
		sum.add(t)
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

	t, err := s.planCounted(ctx, org)

	return t.report(), err
}

// planCounted plans one organisation's assets again, and adds the counts to those of the
// process.
func (s *Service) planCounted(ctx context.Context, org flex.Org) (runCounts, error) {
	var t runCounts
	err := s.planRecovered(ctx, org, &t)
	s.planned.Add(int64(t.planned))
	s.changed.Add(int64(t.changed))

	if err != nil {
		return t, fmt.Errorf("plan %s anew: %w", org.Name, err)
	}

	return t, nil
}

// planRecovered is planOrg with a panic returned as an error.
func (s *Service) planRecovered(
	ctx context.Context,
	org flex.Org,
	t *runCounts,
) (err error) {
	defer flex.Recover(&err)
	*t, err = s.planOrg(ctx, org)

	return err
}

// JoinWaves plans parts of waves that another process has begun. The wake-up by new prices
// reaches only the process that received them.
func (s *Service) JoinWaves(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(ctx, s.DB.OrgsBy((*store.All).WavesLeft), func(ctx context.Context, org flex.OrgID) (worker.Report, error) {
		var t runCounts
		err := s.replanWave(ctx, org, nil, &t)
		s.planned.Add(int64(t.planned))
		s.changed.Add(int64(t.changed))

		return worker.Report{Count: t.changed}, err
	})
}

// planOrg plans one organisation's assets again. Under caps, the whole fleet is planned as one
// problem. Otherwise new prices start a wave, and then the marked assets are planned.
func (s *Service) planOrg(
	ctx context.Context,
	org flex.Org,
) (runCounts, error) {
	var fresh, remaining, capped bool
	err := s.DB.Read(ctx, org.ID, func(tx *store.Tx) error {
		var err error
		fresh, remaining, err = tx.WaveDue(ctx)
		if err == nil {
			_, capped, err = tx.Caps(ctx)
		}
		return err
	})
	if err != nil {
		return runCounts{}, err
	}

	var first []store.WavePart
	if fresh {
		first, err = s.beginWave(ctx, org.ID)
		if err != nil {
			return runCounts{}, fmt.Errorf("begin a wave: %w", err)
		}
	}

	var t runCounts
	var failed error
	if capped {
		if err := s.planFleet(ctx, org, &t); err != nil {
			failed = fmt.Errorf("plan the fleet together: %w", err)
		}
		if ctx.Err() == nil {
			failed = errors.Join(failed, s.replanInputsDue(ctx, org, &t))
		}
		return t, failed
	}

	if fresh || remaining {
		failed = s.replanWave(ctx, org.ID, first, &t)
	}

	err = s.replanMarked(ctx, org, &t)

	return t, errors.Join(failed, err)
}

// dueBatch is the number of marked sessions that are planned in one transaction.
func (s *Service) dueBatch() int {
	if s.dueAtOnce > 0 {
		return s.dueAtOnce
	}
	return dueMax
}

// replanMarked plans all marked sessions. It runs even if a wave failed, and one kind of mark
// does not delay the other.
func (s *Service) replanMarked(
	ctx context.Context,
	org flex.Org,
	t *runCounts,
) error {
	var failed error
	if ctx.Err() == nil {
		failed = s.replanMarketDue(ctx, org, t)
	}
	if ctx.Err() == nil {
		failed = errors.Join(failed, s.replanInputsDue(ctx, org, t))
	}

	return failed
}

// beginWave begins a wave, and leases its first parts in the same transaction.
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

// replanWave plans the parts of a wave until none is left to lease. It begins with the parts
// that were leased already. Several workers share them: while one commits, the others read and
// plan. If fewer than partsMax parts were leased first, the wave has no others.
func (s *Service) replanWave(
	ctx context.Context,
	org flex.OrgID,
	first []store.WavePart,
	t *runCounts,
) error {
	if len(first) > 0 && len(first) < partsMax {
		return s.replanParts(ctx, org, first, t)
	}

	var wg sync.WaitGroup
	var tallies [waveWorkers]runCounts
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
		t.add(done)
	}

	return errors.Join(errs[:]...)
}

// takeParts leases further parts of a wave; none if all are leased or done.
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

// replanParts plans the assets of some parts of a wave on one snapshot. It commits after each
// part, so that no other write waits for long.
func (s *Service) replanParts(
	ctx context.Context,
	org flex.OrgID,
	parts []store.WavePart,
	t *runCounts,
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

// replanMarketDue compares the marked assets with the market again, until none is left.
func (s *Service) replanMarketDue(ctx context.Context, org flex.Org, t *runCounts) error {
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

// replanInputsDue plans the marked assets whose inputs changed without an event. It first
// compares them on a snapshot, and then locks only those whose schedule would change. An asset
// that cannot be read or planned stays marked. It is tried once in a run, and does not delay
// the others.
func (s *Service) replanInputsDue(ctx context.Context, org flex.Org, t *runCounts) error {
	tried := failedAssets{assets: map[flex.AssetID]bool{}}
	for {
		l, err := s.compareMarked(ctx, org.ID, &tried)
		if err == nil {
			err = s.unmarkUnchanged(ctx, org.ID, &l)
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

		// The run ends with the last batch, or with one in which every asset failed.
		done := l.found - (len(tried.assets) - before)
		if l.found < s.dueBatch() || done == 0 {
			return tried.err()
		}
	}
}

// compareMarked compares a batch of marked assets, except those that failed earlier in this
// run.
func (s *Service) compareMarked(
	ctx context.Context,
	org flex.OrgID,
	tried *failedAssets,
) (markedResult, error) {
	var l markedResult
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		l = markedResult{}

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

		return s.compareInputs(ctx, tx, found, &l)
	})

	return l, err
}

// markedResult is what the comparison of a batch of marked assets found.
type markedResult struct {
	found int // the number of marks
	// the marks of sessions whose schedule does not change; of these, the assets that are to
	// be compared again, by the time for it
	same  []store.Marked
	again map[time.Time][]flex.AssetID
	// assets that would get a new schedule, grouped by site
	changed [][]flex.AssetID
	// assets that could not be read or planned
	failed []notPlanned
}

// unmarkUnchanged removes the marks of sessions whose schedule does not change, unless a mark
// has changed since the comparison. Only then does it mark the assets that are to be compared
// again later, because a later mark does not replace one that is due.
func (s *Service) unmarkUnchanged(
	ctx context.Context,
	org flex.OrgID,
	l *markedResult,
) error {
	if len(l.same) == 0 {
		return nil
	}

	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.RemoveMarks(ctx, l.same...); err != nil {
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

// compareInputs separates the sessions whose schedule does not change from the assets that
// would get a new one.
func (s *Service) compareInputs(
	ctx context.Context,
	tx *store.Tx,
	found []store.Marked,
	l *markedResult,
) error {
	w, err := readPluggedIn(ctx, tx)
	if err != nil {
		return err
	}

	l.again = map[time.Time][]flex.AssetID{}
	groupOf := map[flex.SiteID]int{} // in l.changed

	for _, m := range found {
		c, v, err := s.compareAsset(ctx, tx, w, m.AssetID)
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

		group, ok := groupOf[c.Asset.SiteID]
		if !ok {
			group = len(l.changed)
			groupOf[c.Asset.SiteID] = group
			l.changed = append(l.changed, nil)
		}

		l.changed[group] = append(l.changed[group], m.AssetID)
	}

	return nil
}

// newInputs says whether an asset's present inputs give it a new schedule.
type newInputs struct {
	differs bool      // it would get a new schedule
	again   time.Time // if not, when to compare again; zero for not before the next cause
}

// compareAsset reads an asset, and compares its present inputs with its schedule in force. A
// panic is returned as an error.
func (s *Service) compareAsset(
	ctx context.Context,
	tx *store.Tx,
	w *pluggedInLoads,
	asset flex.AssetID,
) (c store.PlanningState, v newInputs, err error) {
	defer flex.Recover(&err) // a panic fails this asset, and not the others

	c, err = tx.PlanningState(ctx, asset)
	if err != nil {
		return c, newInputs{}, err
	}

	v, err = s.differs(ctx, tx, w, &c)

	return c, v, err
}

// differs reports whether an asset would get a new schedule for its present inputs. A site
// that is planned as one problem can only be compared under its lock. Its assets are therefore
// always reported to differ.
func (s *Service) differs(
	ctx context.Context,
	tx *store.Tx,
	w *pluggedInLoads,
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
	// The reasons for which background jobs plan assets again.
	byInputs = replanReason{cause: store.CauseInputs, trigger: ByInputs}
	byMarket = replanReason{cause: store.CauseMarket, trigger: ByMarket}
)

// refreshable reports whether an asset may be planned again without an event: it is plugged
// in, controlled, and before its ready-by.
func refreshable(c *store.PlanningState, now time.Time) bool {
	return c.Open() && c.Controlled && c.Session.ReadyBy.After(now)
}

// refreshSite plans assets of one site again, together. If that fails, each is planned
// separately, so that one that cannot be planned does not delay the others. It returns those
// that could not be planned.
func (s *Service) refreshSite(
	ctx context.Context,
	org flex.OrgID,
	why replanReason,
	t *runCounts,
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

// refresh plans assets of one site again without an event, in one transaction. A site that is
// planned as one problem is planned once for all of them.
func (s *Service) refresh(
	ctx context.Context,
	org flex.OrgID,
	why replanReason,
	t *runCounts,
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

		// Due marks are removed first: planning may mark a session for later, which fails
		// while a mark is due.
		if err := tx.RemoveDueMarks(ctx, tx.Now(), sessions...); err != nil {
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

// lockCars locks assets of one site for planning, in the order of their ids, so that two
// transactions cannot wait for each other. It returns those that may be planned again, and the
// sessions of all that still exist.
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

// generations adds up the number of schedules that the sessions have had.
func generations(cars []*store.PlanningState) int {
	var sum int
	for _, c := range cars {
		sum += int(c.Session.Generation)
	}
	return sum
}

// replanTogether plans locked assets of one site again: together if there are several and the
// site is planned as one problem, otherwise one after the other.
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
