package control

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// FullBattery is the energy that an unplanned asset is assumed to draw at full power, from its
// plug-in or the end of its schedule, until its battery is full: more than the capacity of
// most cars.
const FullBattery flex.WattHours = 100_000

// orderedCaps are the caps of an organisation in the order in which engine/headroom has them.
type orderedCaps struct {
	store.CapsInForce
	caps    []flex.Cap // the fleet's, then the groups'
	parents []int      // for each cap, the index of the cap of the group around it; 0 for none
	tree    flex.CapTree
	place   map[string]int // the index of a group's cap, by the group's name
}

// orderCaps returns caps with their indices.
func orderCaps(c store.CapsInForce) *orderedCaps {
	k := &orderedCaps{
		CapsInForce: c,
		caps:        []flex.Cap{c.Fleet},
		parents:     make([]int, 1+len(c.Groups)),
		tree:        c.Tree(),
		place:       map[string]int{"": 0},
	}

	for _, g := range c.Groups {
		k.place[g.Name] = len(k.caps)
		k.caps = append(k.caps, g.Cap)
	}

	for i := range c.Groups {
		k.parents[i+1] = k.place[c.Groups[i].Parent]
	}

	return k
}

// profile returns the headroom under the caps from an instant on, with the limits that apply
// for a time.
func (k *orderedCaps) profile(from time.Time) *headroom.Profile {
	p := headroom.Nested(from, k.caps, k.parents)
	for _, l := range k.Limits {
		if at, ok := k.place[l.Group]; ok {
			p.Tighten(at, l.Span, l.Power)
		}
	}

	return p
}

// name returns the name of a cap's group; empty for the fleet's cap.
func (k *orderedCaps) name(cap int) string {
	if cap == 0 {
		return ""
	}
	return k.Groups[cap-1].Name
}

// assetHeadroom is the headroom that others leave to one asset.
type assetHeadroom struct {
	*headroom.Profile
	*orderedCaps
	cap  int  // of the asset's group
	fuse bool // it is the headroom behind a site's main fuse, and not under caps
}

// headroomFor returns the headroom that the others leave to an asset: by their schedules in
// force, and at full power for assets without one. It is nil if no cap applies to the asset.
// The caps must be locked.
func headroomFor(
	ctx context.Context,
	tx *store.Tx,
	inForce store.CapsInForce,
	c *store.PlanningState,
	from time.Time,
) (*assetHeadroom, error) {
	group, err := tx.CapGroup(ctx, c.Asset.SiteID)
	if err != nil {
		return nil, err
	}

	k := orderCaps(inForce)
	r := &assetHeadroom{
		Profile:     k.profile(from),
		orderedCaps: k,
		cap:         k.place[group],
	}

	scope := "" // the whole fleet

	if k.Fleet == (flex.Cap{}) {
		path := k.tree.Path(group)
		scope = path[len(path)-1] // the outermost group
		if scope == "" && len(k.Position) == 0 {
			return nil, nil
		}
		if scope == "" { // a traded position limits nobody until the fleet is planned as one
			return r, nil
		}
	}

	if err := r.reserveOthers(ctx, tx, c.Asset.ID, group); err != nil {
		return nil, fmt.Errorf("read what the others draw: %w", err)
	}

	err = r.reserveBatteries(ctx, tx, scope, from)

	return r, err
}

// reserveOthers adds the power of all other assets under the caps of an asset to the
// headroom's load.
func (r *assetHeadroom) reserveOthers(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	group string,
) error {
	path := r.tree.Path(group)
	sums, own, err := sumsForAsset(
		ctx,
		tx,
		&r.CapsInForce,
		asset,
		path,
	)
	if err != nil {
		return err
	}

	from := headroom.BlockAt(tx.Now())
	for _, name := range path {
		if own != nil {
			own.RemoveFrom(sums[name], from)
		}

		r.AddSum(r.place[name], sums[name])
	}

	return nil
}

// pluggedInLoads is what is plugged in, read once for many assets that are compared one by
// one.
type pluggedInLoads struct {
	*assetHeadroom // nil without caps
	from           time.Time
	loads          map[flex.AssetID]store.Load
	feeders        feederCache
}

// readPluggedIn reads what is plugged in, if there are caps.
func readPluggedIn(
	ctx context.Context,
	tx *store.Tx,
) (*pluggedInLoads, error) {
	inForce, ok, err := tx.Caps(ctx)
	if err != nil || !ok {
		return &pluggedInLoads{}, err
	}

	loads, err := tx.Loads(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("read what is plugged in: %w", err)
	}

	k := orderCaps(inForce)
	w := &pluggedInLoads{
		&assetHeadroom{
			Profile:     k.profile(tx.Now().Truncate(time.Second)),
			orderedCaps: k,
		},
		tx.Now().Truncate(time.Second),
		make(map[flex.AssetID]store.Load, len(loads)),
		feederCache{},
	}

	for i := range loads {
		w.loads[loads[i].AssetID] = loads[i]
		w.addLoad(&loads[i], w.from)
	}

	err = w.reserveBatteries(ctx, tx, "", w.from)
	if err == nil {
		err = k.reserveHeaters(ctx, tx, w.Profile)
	}

	return w, err
}

// withHeadroom calls fn with the headroom that all others leave to an asset.
func (w *pluggedInLoads) withHeadroom(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	fn func(*assetHeadroom) error,
) error {
	if w.assetHeadroom == nil {
		r, err := headroomBesideOthers(ctx, tx, c)
		if err != nil {
			return err
		}
		return fn(r)
	}

	l, plugged := w.loads[c.Asset.ID]
	if !plugged {
		group, err := tx.CapGroup(ctx, c.Asset.SiteID)
		if err != nil {
			return err
		}

		w.cap = w.place[group]
		return fn(w.assetHeadroom)
	}

	steps, power, running := cappedLoadSteps(&l, w.from)
	w.cap = w.place[l.Group]
	w.Remove(w.cap, steps, power, running)
	defer w.Add(w.cap, steps, power, running)

	return fn(w.assetHeadroom)
}

// bindingLimits returns the limits of an asset that is planned on its own within some
// headroom; with its site's main fuse, if the headroom is not that of the fuse.
func (w *pluggedInLoads) bindingLimits(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	r *assetHeadroom,
) (*limits, error) {
	u := &limits{headroom: r, feeders: w.feeders}

	var err error
	if w.assetHeadroom != nil {
		u.site, err = siteAround(ctx, tx, c)
	}

	return u, err
}

// addLoad adds what an asset draws from an instant on to the headroom's load.
func (r *assetHeadroom) addLoad(
	l *store.Load,
	from time.Time,
) {
	steps, power, running := cappedLoadSteps(l, from)
	r.Add(r.place[l.Group], steps, power, running)
}

// cappedLoadSteps is loadSteps under caps. After the need is met, a schedule may allow power
// only so that the main fuse is observed. That power does not count before the need is met,
// and afterwards for no longer than a battery takes to fill.
func cappedLoadSteps(
	l *store.Load,
	from time.Time,
) (steps []flex.Step, power flex.Watts, running bool) {
	steps, power, running = loadSteps(l, from)
	if n := len(steps); running || !steps[n-1].To.After(l.Done) {
		return steps, power, running
	}

	if l.Done.After(from) {
		return stepsWithin(steps, flex.Span{From: steps[0].From, To: l.Done}), power, false
	}

	full := l.Done.Add(time.Duration(int64(FullBattery)*3600/int64(power)) * time.Second)

	return stepsWithin(steps, flex.Span{From: from, To: full}), power, true
}

// loadSteps returns what an asset draws from an instant on: by its schedule, or if that is
// over, or there was none, full power until its battery must be full. running reports the
// latter.
func loadSteps(
	l *store.Load,
	from time.Time,
) (steps []flex.Step, power flex.Watts, running bool) {
	power = l.Power.OrDefault()

	n := len(l.Steps)
	if n > 0 && l.Steps[n-1].To.After(from) {
		return l.Steps, power, false
	}

	since := l.PluggedInAt
	if n > 0 {
		since = l.Steps[n-1].To
	}

	full := since.Add(time.Duration(int64(FullBattery)*3600/int64(power)) * time.Second)

	return []flex.Step{
		{Span: flex.Span{From: from, To: full}, Limit: power},
	}, power, true
}

// limits is what restricts the plan of one asset, and the effect that it had.
type limits struct {
	headroom *assetHeadroom // nil if no cap applies
	binding  *store.Binding // the effect of caps; nil for none
	fuse     *store.Binding // the effect of the site's main fuse; nil for none
	site     *sitePlan      // the site, if the asset shares a main fuse in addition to the caps; else nil
	feeders  feederCache    // export limits of groups, read once for several assets; nil for not shared
	again    time.Time      // when to compare a schedule that stays again; zero for not before the next cause
}

// save stores the effect of caps on a schedule that was just committed, and marks the fleet to
// be planned as one if it should be.
func (u *limits) save(
	ctx context.Context,
	tx *store.Tx,
	s *store.Schedule,
) error {
	if b := u.fuse; b != nil {
		b.EventID, b.AssetID = s.EventID, s.AssetID
		return tx.PutBindings(ctx, *b)
	}
	if u.headroom == nil && u.site == nil {
		return nil
	}

	if b := u.binding; b != nil {
		b.EventID, b.AssetID = s.EventID, s.AssetID
		if err := tx.PutBindings(ctx, *b); err != nil {
			return err
		}
	}

	due := u.site.fleetReplanTime(s.AssetID, u.binding)
	if u.headroom != nil {
		due = sooner(due, u.headroom.due(s, u.binding, tx.Now()))
	}

	return tx.RecordCapsUsed(ctx, due)
}

// sooner returns the earlier of two instants; a zero one does not count.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// charge plans an asset in the headroom, and returns the effect of the caps. A nil headroom
// restricts nothing.
func (r *assetHeadroom) charge(p charge.Problem) (charge.Problem, charge.Plan, *store.Binding) {
	if r == nil {
		return p, charge.Solve(p), nil
	}

	q, a := r.Charge(p, r.cap)
	if len(q.Limits) == 0 {
		return q, a, nil
	}

	err := r.binding(&q, &a)

	return q, a, err
}

// binding returns the effect of caps on a plan.
func (r *assetHeadroom) binding(
	p *charge.Problem,
	a *charge.Plan,
) *store.Binding {
	b := &store.Binding{Limits: p.Limits}
	for _, h := range r.Bindings(p, a, r.cap) {
		c := store.BindingCap{
			Span:   h.Span,
			Group:  r.name(h.Cap),
			Starts: h.Starts,
		}

		if bound, ok := r.At(h.Cap, h.From); ok && !h.Starts {
			c.Power = bound
		}

		for at := flex.PeriodAt(h.From); !h.Starts && at.Start().Before(h.To); at = at.Add(1) {
			c.Price = max(c.Price, r.Shadow.At(c.Group, at))
		}

		b.Caps = append(b.Caps, c)
	}

	return b
}

// due returns when the fleet is to be planned as one because of a schedule that was planned on
// its own: at once if a cap is exceeded; at the market's pace if a cap restricted the asset,
// so that others may yield; else zero.
func (r *assetHeadroom) due(
	s *store.Schedule,
	b *store.Binding,
	now time.Time,
) time.Time {
	r.Add(r.cap, s.Charging(), s.From.Power, true)

	switch _, _, over := r.Exceeded(); {
	case over:
		return now
	case b != nil && len(b.Caps) > 0, len(r.Position) > 0:
		return flex.Later(now, r.PlannedAt.Add(MarketInterval))
	}

	return time.Time{}
}
