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

// fuseKept is what checking schedules against main fuses came to.
type fuseKept struct {
	bindings  []*store.Binding // what the fuse did to each, nil for nothing
	refused   []flex.AssetID   // whose schedule the check refused
	batteries []flex.SiteID    // the sites with batteries
	// at a site of which something cannot be read, and why: what they draw together is not known
	unread []flex.AssetID
	cause  error
}

// keepFuses holds schedules that are about to replace others against the main fuses of their sites,
// whoever made them: each is made again in the headroom that the others of its site leave where it does not fit,
// and says what the car has once it is done. Then check.Fuse looks at all of a site.
func (s *Service) keepFuses(
	ctx context.Context,
	tx *store.Tx,
	ps []flex.PricedPeriod,
	next []store.Replacement,
) (fuseKept, error) {
	k := fuseKept{bindings: make([]*store.Binding, len(next))}
	at := make(map[flex.AssetID]int, len(next))
	ids := make([]flex.AssetID, len(next))
	for i := range next {
		ids[i] = next[i].Current.AssetID
		at[ids[i]] = i
	}

	sites, err := fusedSites(ctx, tx, ids...)
	for i := 0; i < len(sites) && err == nil; i++ {
		var f *behindFuse
		f, err = k.read(ctx, tx, sites[i], at)
		if f == nil {
			continue
		}

		f.prices = ps
		sent := f.keepAll(next, k.bindings, at)
		k.refused = append(k.refused, s.guardNext(ctx, f, sent)...)
		if len(sites[i].Batteries) > 0 {
			k.batteries = append(k.batteries, sites[i].ID)
		}
	}

	return k, err
}

// read is lockFused, and nil for a site of which something cannot be read: that one is left.
func (k *fuseKept) read(
	ctx context.Context,
	tx *store.Tx,
	s store.FusedSite,
	at map[flex.AssetID]int,
) (*behindFuse, error) {
	f, err := lockFused(ctx, tx, s)
	if errors.Is(err, store.ErrUnreadable) {
		return nil, k.leave(ctx, tx, s.ID, at, err)
	}

	return f, err
}

// leave has the cars of a site keep the schedules that they have.
func (k *fuseKept) leave(
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

// dropKept drops the schedules of cars that keep theirs, with what fuses did to them.
func (k *fuseKept) dropKept(next []store.Replacement) []store.Replacement {
	if len(k.unread) == 0 {
		return next
	}

	all := k.bindings
	k.bindings = nil
	kept := make([]store.Replacement, 0, len(next))

	for i := range next {
		if !slices.Contains(k.unread, next[i].Current.AssetID) {
			kept = append(kept, next[i])
			k.bindings = append(k.bindings, all[i])
		}
	}

	return kept
}

// follow marks what could not be read, has what was refused planned again after a while, and the batteries of the
// sites planned around what their cars do now. What was kept is committed by then. What caps leave is read once for all.
func (k *fuseKept) follow(ctx context.Context, tx *store.Tx, d *Service) error {
	err := tx.MarkDue(ctx, k.unread...)
	if err == nil {
		err = tx.MarkAt(ctx, tx.Now().Add(MarketInterval), k.refused...)
	}

	var caps capsKept
	for i := 0; i < len(k.batteries) && err == nil; i++ {
		err = d.replanBatteries(ctx, tx, k.batteries[i], &caps)
	}

	return err
}

// keepAll is keepNext for the cars of a site, whose place among the schedules is given, and lists what they are sent.
func (f *behindFuse) keepAll(
	next []store.Replacement,
	did []*store.Binding,
	at map[flex.AssetID]int,
) map[flex.AssetID]*store.Schedule {
	sent := map[flex.AssetID]*store.Schedule{}
	for _, car := range f.cars {
		if i, ok := at[car.Current.AssetID]; ok {
			did[i] = f.keepNext(car, &next[i].Next)
			sent[car.Current.AssetID] = &next[i].Next
		}
	}

	return sent
}

// lockFused is readFused for a site of which nobody else plans anything until the transaction ends.
func lockFused(
	ctx context.Context,
	tx *store.Tx,
	s store.FusedSite,
) (*behindFuse, error) {
	if err := tx.LockSite(ctx, s.ID); err != nil {
		return nil, fmt.Errorf("lock the site: %w", err)
	}
	return readFused(ctx, tx, s)
}

// keepNext has what a car is about to be sent keep the headroom that the others leave it, and says what it has
// once it is done. It returns what the fuse did, nil for nothing.
func (f *behindFuse) keepNext(
	car *siteCar,
	s *store.Schedule,
) *store.Binding {
	limitByRate(&s.From, true)
	nameable(&s.From)
	wired := car.wiring()
	car.from = s.From
	car.from.Phases, car.from.Phase = wired.Phases, wired.Phase
	car.pastReadyBy = false // it may have been, and is asked for more
	end := car.end(f.from)
	car.pastReadyBy = !end.After(f.from)
	f.lasts(end)
	car.stepsForNow = stepsWithin(s.Steps, flex.Span{From: f.from, To: end})
	b := f.fenceNext(car)

	if b != nil || !s.End().After(end) {
		f.finish(car)
		if b == nil {
			b = &store.Binding{Limits: lesserLimits(nil, nil, flex.Span{From: f.from, To: end})}
		}

		b.Limits = append(b.Limits, car.stepsAfterEnd...)
		s.Steps = slices.Concat(car.stepsForNow, car.stepsAfterEnd)
	}

	car.stepsAfterEnd = stepsWithin(s.Steps, flex.Span{From: end, To: s.End()})

	return b
}

// fenceNext makes what a car is about to be sent again in the headroom that the others leave it, where it does
// not fit. It returns what the fuse did, nil for nothing.
func (f *behindFuse) fenceNext(car *siteCar) *store.Binding {
	span := flex.Span{From: f.from, To: car.end(f.from)}
	limits := f.left(car, span)
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

// exact reports whether a car's plan names no more power than is counted for it.
func (c *siteCar) exact() bool {
	return !slices.ContainsFunc(c.stepsForNow, func(s flex.Step) bool {
		return s.Limit > c.from.Power
	})
}

// guardNext holds what the cars of a site are about to be sent against its main fuse by check.Fuse. What breaks
// it is cut down to what the fuse leaves, is said to be so, and is to be planned again after a while: those cars
// are returned.
func (s *Service) guardNext(
	ctx context.Context,
	f *behindFuse,
	sent map[flex.AssetID]*store.Schedule,
) []flex.AssetID {
	devices := f.devices()
	for i, car := range f.cars {
		if next := sent[car.Current.AssetID]; next != nil {
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
		if next := sent[car.Current.AssetID]; next != nil {
			next.Steps = devices[i].Next
			next.From.Origins = passed(next.From.Origins) + " " + store.PlanRefused
			refused = append(refused, car.Current.AssetID)
		}
	}

	s.refuse(ctx, refused[0], law)

	return refused
}
