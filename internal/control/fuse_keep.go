package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/check"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// fuseResult is the result of fitting new schedules to the main fuses of their sites.
type fuseResult struct {
	bindings  []*store.Binding // the effect of the fuse on each schedule; nil for none
	refused   []flex.AssetID   // assets whose schedule check.Fuse refused
	batteries []flex.SiteID    // sites with batteries
	// assets at a site where a record cannot be read, so that its total load is not known, and
	// the error
	unread []flex.AssetID
	cause  error
}

// fitToFuses fits schedules that are about to replace others to the main fuses of their sites,
// whatever planned them. A schedule that does not fit is planned again in the headroom that
// the others of its site leave, and the power of its car after its end is added. Then
// check.Fuse checks each site as a whole.
func (s *Service) fitToFuses(
	ctx context.Context,
	tx *store.Tx,
	ps []flex.PricedPeriod,
	next []store.Replacement,
) (fuseResult, error) {
	k := fuseResult{bindings: make([]*store.Binding, len(next))}
	at := make(map[flex.AssetID]int, len(next))
	ids := make([]flex.AssetID, len(next))
	for i := range next {
		ids[i] = next[i].Current.AssetID
		at[ids[i]] = i
	}

	sites, err := limitedSites(ctx, tx, ids...)
	for i := 0; i < len(sites) && err == nil; i++ {
		var f *sitePlan
		f, err = k.lock(ctx, tx, sites[i], at)
		if f == nil {
			continue
		}

		f.prices = ps
		outgoing := f.fitAll(next, k.bindings, at)
		k.refused = append(k.refused, s.checkFuse(ctx, f, outgoing)...)
		if len(sites[i].Batteries) > 0 {
			k.batteries = append(k.batteries, sites[i].ID)
		}
	}

	return k, err
}

// lock locks and reads a site. If one of its records cannot be read, it returns nil, and the
// site's cars are left as they are.
func (k *fuseResult) lock(
	ctx context.Context,
	tx *store.Tx,
	s store.FusedSite,
	at map[flex.AssetID]int,
) (*sitePlan, error) {
	f, err := lockSitePlan(ctx, tx, s)
	if errors.Is(err, store.ErrUnreadable) {
		return nil, k.skip(ctx, tx, s.ID, at, err)
	}

	return f, err
}

// skip records that the cars of a site do not get a new schedule.
func (k *fuseResult) skip(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	at map[flex.AssetID]int,
	cause error,
) error {
	assets, err := tx.AssetsOf(ctx, site)
	for i := range assets {
		if _, ok := at[assets[i].ID]; ok {
			k.unread = append(k.unread, assets[i].ID)
		}
	}

	k.cause = errors.Join(k.cause, cause)

	return err
}

// dropSkipped removes the schedules of cars that were skipped, with the effect of the fuse on
// them.
func (k *fuseResult) dropSkipped(next []store.Replacement) []store.Replacement {
	if len(k.unread) == 0 {
		return next
	}

	all := k.bindings
	k.bindings = nil
	rest := make([]store.Replacement, 0, len(next))

	for i := range next {
		if !slices.Contains(k.unread, next[i].Current.AssetID) {
			rest = append(rest, next[i])
			k.bindings = append(k.bindings, all[i])
		}
	}

	return rest
}

// follow does what remains after the schedules were committed: it marks the skipped cars to be
// planned at once and the refused ones after MarketInterval, and plans the batteries of the
// sites around their cars' new schedules. The headroom under caps is read once for all sites.
func (k *fuseResult) follow(ctx context.Context, tx *store.Tx, d *Service) error {
	err := tx.MarkDue(ctx, k.unread...)
	if err == nil {
		err = tx.MarkAt(ctx, tx.Now().Add(MarketInterval), k.refused...)
	}

	var caps headroomCache
	for i := 0; i < len(k.batteries) && err == nil; i++ {
		err = d.replanBatteries(ctx, tx, k.batteries[i], &caps)
	}

	return err
}

// fitAll is fitSchedule for all cars of a site that get a new schedule; at has their index in
// next. It returns these schedules by asset.
func (f *sitePlan) fitAll(
	next []store.Replacement,
	bindings []*store.Binding,
	at map[flex.AssetID]int,
) map[flex.AssetID]*store.Schedule {
	outgoing := map[flex.AssetID]*store.Schedule{}
	for _, car := range f.cars {
		if i, ok := at[car.Current.AssetID]; ok {
			bindings[i] = f.fitSchedule(car, &next[i].Next)
			outgoing[car.Current.AssetID] = &next[i].Next
		}
	}

	return outgoing
}

// lockSitePlan locks a site for planning until the transaction ends, and reads it.
func lockSitePlan(
	ctx context.Context,
	tx *store.Tx,
	s store.FusedSite,
) (*sitePlan, error) {
	if err := tx.LockSite(ctx, s.ID); err != nil {
		return nil, fmt.Errorf("lock the site: %w", err)
	}
	return readSitePlan(ctx, tx, s)
}

// fitSchedule fits a schedule that a car is about to be sent to the headroom that the others
// leave, and adds the power after its end. It returns the effect of the fuse; nil for none.
func (f *sitePlan) fitSchedule(
	car *siteCar,
	s *store.Schedule,
) *store.Binding {
	limitToLearned(&s.From, true)
	raiseToMinPower(&s.From)
	wiring := car.wiring()
	car.from = s.From
	car.from.Phases, car.from.Phase = wiring.Phases, wiring.Phase
	car.pastReadyBy = false // after its ready-by the car may have a new one
	end := car.end(f.from)
	car.pastReadyBy = !end.After(f.from)
	f.extendTo(end)
	car.stepsForNow = stepsWithin(s.Steps, flex.Span{From: f.from, To: end})
	b := f.replanWithin(car)

	if b != nil || !s.End().After(end) {
		f.setStepsAfterEnd(car)
		if b == nil {
			b = &store.Binding{Limits: lesserLimits(nil, nil, flex.Span{From: f.from, To: end})}
		}

		b.Limits = append(b.Limits, car.stepsAfterEnd...)
		s.Steps = slices.Concat(car.stepsForNow, car.stepsAfterEnd)
	}

	car.stepsAfterEnd = stepsWithin(s.Steps, flex.Span{From: end, To: s.End()})

	return b
}

// replanWithin plans a car again in the headroom that the others leave, if what it is about to
// be sent does not fit. It returns the effect of the fuse; nil for none.
func (f *sitePlan) replanWithin(car *siteCar) *store.Binding {
	span := flex.Span{From: f.from, To: car.end(f.from)}
	limits := f.safeHeadroom(car, span)
	fit := car.exact() && staysWithin(car.stepsForNow, car.from.Power, limits)
	if car.pastReadyBy || fit {
		return nil
	}

	p := problemOf(car.from, f.from, f.prices)
	p.Exact = true
	p.Limits = lesserLimits(p.Limits, limits, span)
	plan := charge.Solve(p)
	free := car.stepsForNow
	car.stepsForNow = plan.Steps

	return &store.Binding{
		Limits: lesserLimits(p.Limits, nil, span),
		Caps:   f.bindingTimes(car, free, &p, &plan),
	}
}

// exact reports whether a car's steps have no limit above the power that is counted for it.
func (c *siteCar) exact() bool {
	return !slices.ContainsFunc(c.stepsForNow, func(s flex.Step) bool {
		return s.Limit > c.from.Power
	})
}

// checkFuse checks what the cars of a site are about to be sent against its main fuse, by
// check.Fuse. If that fails, the schedules are cut down to what the fuse permits, are marked
// as refused in their origins, and their cars are returned, to be planned again after
// MarketInterval.
func (s *Service) checkFuse(
	ctx context.Context,
	f *sitePlan,
	outgoing map[flex.AssetID]*store.Schedule,
) []flex.AssetID {
	devices := f.devices()
	for i, car := range f.cars {
		if next := outgoing[car.Current.AssetID]; next != nil {
			devices[i].Next = next.Steps
		}
	}

	law := check.Fuse(devices, f.mainFuse())
	if law == nil {
		return nil
	}

	check.ClipToFuse(devices, f.mainFuse())

	var refused []flex.AssetID
	for i, car := range f.cars {
		if next := outgoing[car.Current.AssetID]; next != nil {
			next.Steps = devices[i].Next
			next.From.Origins = withoutRefused(next.From.Origins) + " " + store.PlanRefused
			refused = append(refused, car.Current.AssetID)
		}
	}

	s.refuse(ctx, refused[0], law)

	return refused
}
