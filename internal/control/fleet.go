package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// fleetTries is how often a fleet is planned on a snapshot. After that it is planned within
// the transaction that commits it, and events wait.
const fleetTries = 3

// TurnSlack is how much charging time a car may lose to others without that counting as a
// loss. If every hour is full, cars take turns, and turns are rounded to minutes.
const TurnSlack = 3 * time.Minute

// replaceMax is the number of schedules that one statement of a fleet puts in force.
const replaceMax = 1000

// planFleet plans an organisation's plugged-in assets as one problem under its caps, if that
// is due. An asset can then leave headroom to one that needs it more.
func (s *Service) planFleet(
	ctx context.Context,
	org flex.Org,
	t *runCounts,
) error {
	due := false
	err := s.DB.Write(ctx, org.ID, func(tx *store.Tx) error {
		var err error
		due, err = tx.TakeCaps(ctx)
		return err
	})
	if err != nil || !due {
		return err
	}

	for range fleetTries {
		done, err := s.planOnSnapshot(ctx, org.ID, t)
		if err != nil || done {
			return err
		}
	}

	return s.planUnderLock(ctx, org.ID, t)
}

// planOnSnapshot plans a fleet on a snapshot, so that events do not wait, and commits the
// plan. done is false if something else was planned under the caps meanwhile.
func (s *Service) planOnSnapshot(
	ctx context.Context,
	org flex.OrgID,
	t *runCounts,
) (done bool, err error) {
	var f *fleet
	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		f, err = s.draftFleet(ctx, tx)
		return err
	})
	if err != nil {
		return false, err
	}
	if f == nil { // there are no caps any more
		return true, nil
	}

	var did runCounts
	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		did = runCounts{} // the transaction may run again

		var err error
		done, err = s.commit(ctx, tx, f, &did)
		return err
	})
	if err == nil {
		t.add(did)
	}

	return done, err
}

// planUnderLock plans a fleet and commits the plan in one transaction. Events wait for it.
func (s *Service) planUnderLock(
	ctx context.Context,
	org flex.OrgID,
	t *runCounts,
) error {
	var did runCounts
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		did = runCounts{} // the transaction may run again

		if _, ok, err := tx.LockCaps(ctx); err != nil || !ok {
			return err
		}

		// A large fleet takes seconds to plan, during which the transaction sends no
		// statement.
		if err := tx.MayPause(ctx, store.PlanPause); err != nil {
			return err
		}

		f, err := s.draftFleet(ctx, tx)
		if err != nil {
			return err
		}

		_, err = s.commit(ctx, tx, f, &did)
		return err
	})
	if err == nil {
		t.add(did)
	}

	return err
}

// fleet is the plan of an organisation's plugged-in assets as one problem.
type fleet struct {
	assetHeadroom
	current assetHeadroom // the headroom that the schedules in force leave
	now     time.Time
	market  []flex.PricedPeriod
	// the prices used for planning: those of the market, except in half-hours with a traded
	// position
	prices []flex.PricedPeriod
	others []store.Load // assets that are not planned here
	// cars whose schedules in force discharge: these stay, and count among the others
	keepDischarging map[flex.AssetID]bool
	shadow          store.Shadow
	members         []member
	// when to compare again; zero for not before the half-hour is over
	replanAt time.Time
	changed  []store.Replacement
	bindings []*store.Binding // the effect of caps on each of changed; nil for none

	sites []*sitePlan // the sites whose main fuse can bind
}

// member is one asset of a fleet.
type member struct {
	*store.ScheduledAsset
	headroom.Car
	from  store.PlanInputs
	share []flex.Step
	now   []flex.Step // charge-now, for which headroom is reserved

	next    *charge.Plan // nil if the schedule in force stays
	binding *store.Binding
	value   flex.MicroPounds
	must    bool // the schedule in force does not fit

	site    *sitePlan // the site whose main fuse it shares; nil for none
	fuseCar *siteCar  // this member among the site's cars
	// its schedule in force exceeds the main fuse, or was made for one that no longer limits
	// it
	exceedsFuse bool
	mustReduce  bool // its schedule in force uses headroom that now belongs to the shares of others
}

// draftFleetAround plans the fleet as it is in a transaction. The cars in going keep their
// schedules in force, and the others are planned around them. It returns nil if there are no
// caps.
func (s *Service) draftFleetAround(
	ctx context.Context,
	tx *store.Tx,
	keepDischarging map[flex.AssetID]bool,
) (*fleet, error) {
	inForce, ok, err := tx.Caps(ctx)
	if err != nil || !ok {
		return nil, err
	}

	from := tx.Now().Truncate(time.Second)
	f := newFleet(orderCaps(inForce), tx.Now())
	f.keepDischarging = keepDischarging
	if err := f.read(ctx, tx, from); err != nil {
		return nil, err
	}

	if err := f.share(); err != nil {
		return nil, err
	}

	f.place(ctx, s)

	// If the schedules in force keep every cap and fuse, a change only saves money, and must
	// be worth its pushes.
	if _, _, over := f.current.Exceeded(); !over && !f.breaksFuse() {
		f.keepUnlessBetter(from)
	}

	f.limitForNow()

	return f, nil
}

// newFleet returns an empty fleet under the caps, at an instant.
func newFleet(k *orderedCaps, now time.Time) *fleet {
	from := now.Truncate(time.Second)
	return &fleet{
		assetHeadroom: assetHeadroom{Profile: k.profile(from), orderedCaps: k},
		current:       assetHeadroom{Profile: k.profile(from), orderedCaps: k},
		now:           now,
	}
}

// assetsMax is more assets than any organisation has, so that all are read.
const assetsMax = 1 << 30

// read reads prices, and everything that draws power under the caps from an instant on.
func (f *fleet) read(
	ctx context.Context,
	tx *store.Tx,
	from time.Time,
) error {
	found, err := tx.PlannedAfter(ctx, flex.AssetID{}, assetsMax)
	if err != nil {
		return fmt.Errorf("read the fleet: %w", err)
	}

	loads, err := tx.Loads(ctx, "")
	if err != nil {
		return fmt.Errorf("read what is plugged in: %w", err)
	}

	f.market, err = prices(ctx, tx, f.now)
	if err != nil {
		return fmt.Errorf("read prices: %w", err)
	}

	f.prices = f.market
	f.addMembers(found, loads, from)
	if err := f.reserveBatteries(ctx, tx, "", from); err != nil {
		return err
	}
	if err := f.current.reserveBatteries(ctx, tx, "", from); err != nil {
		return err
	}

	if err := f.reserveHeaters(ctx, tx, f.Profile, f.current.Profile); err != nil {
		return err
	}
	if err := f.readSites(ctx, tx, found, loads); err != nil {
		return err
	}

	f.continueRunning()

	return nil
}

// continueRunning lets each charging member continue until its own next half-hour (its ramp),
// so that not the whole fleet changes in the minute in which it is planned. A member continues
// at most for as long as its schedule has it charge at full power. If the schedules in force
// exceed a cap, nothing is continued.
func (f *fleet) continueRunning() {
	if _, _, over := f.current.Exceeded(); over {
		return
	}

	for i := range f.members {
		m := &f.members[i]
		until := m.fullUntil()
		if m.from.Ramp == nil || m.Running && until.IsZero() {
			continue
		}

		m.from.Ramp = rampContinuing(m.from.Ramp, true)
		m.from.Ramp.Until = until
		f.buildProblem(m)
	}
}

// fullUntil returns until when a member charges at full power without a break; the zero time
// if it does not charge at full power now.
func (m *member) fullUntil() time.Time {
	for _, s := range m.current() {
		if s.Contains(m.From) && s.Limit >= m.Power {
			return s.To
		}
	}

	return time.Time{}
}

// buildProblem builds a member's problem again, and reserves headroom for a charge-now.
func (f *fleet) buildProblem(m *member) {
	problem := problemOf(m.from, m.From, f.prices)
	m.Car.Problem = &problem
	if m.now == nil && !problem.ChargeNow.Empty() {
		m.now = []flex.Step{{Span: problem.ChargeNow, Limit: problem.Power}}
		f.Reserve(m.Cap, m.now)
	}
}

// addMembers makes members of the assets that are planned, and adds the load of everything
// else that is plugged in to the headroom.
func (f *fleet) addMembers(
	found []store.ScheduledAsset,
	loads []store.Load,
	from time.Time,
) {
	planned := make(map[flex.AssetID]bool, len(found))
	for i := range found {
		s := &found[i].Current
		planned[s.AssetID] = s.From.ReadyBy.After(from) && !f.keepDischarging[s.AssetID]
	}

	capOf := make(map[flex.AssetID]int, len(loads))
	for i := range loads {
		load := &loads[i]
		capOf[load.AssetID] = f.orderedCaps.place[load.Group]

		if !planned[load.AssetID] {
			f.others = append(f.others, *load)
			f.addLoad(load, from)
			f.current.addLoad(load, from)
		}
	}

	for i := range found {
		id := found[i].Current.AssetID
		if planned[id] {
			f.join(&found[i], capOf[id], from)
		}
	}
}

// join makes an asset a member under a cap. It reserves headroom for the asset's charge-now,
// and adds what its schedule in force draws to f.current.
func (f *fleet) join(
	p *store.ScheduledAsset,
	cap int,
	from time.Time,
) {
	m := member{ScheduledAsset: p, from: inputsAt(p, from)}
	limitToLearned(&m.from, true)
	if d := m.from.Discharge; d != nil && len(f.Position) > 0 {
		d.Why = dischargePosition
	}

	problem := problemOf(m.from, from, f.prices)
	m.Car = headroom.Car{Problem: &problem, Cap: cap}

	ahead := flex.Span{From: from, To: problem.ChargeNow.To}
	if now := problem.ChargeNow.Meet(ahead); !now.Empty() {
		m.now = []flex.Step{{Span: now, Limit: problem.Power}}
		f.Reserve(cap, m.now)
	}

	f.current.Add(cap, m.steps(), problem.Power, problem.Running)
	f.members = append(f.members, m)
}

// share divides the headroom, and reserves each member's share.
func (f *fleet) share() error {
	if err := f.shareFuses(); err != nil {
		return err
	}

	cars := make([]headroom.Car, len(f.members))
	for i := range f.members {
		cars[i] = f.members[i].Car
	}

	shares, err := f.Share(cars, f.prices, f.Position)
	if err != nil {
		return fmt.Errorf("share the headroom: %w", err)
	}

	f.prices = shares.Prices
	f.shadow = store.Shadow{
		From:   flex.PeriodAt(f.now).Start(),
		Prices: map[string][]flex.Price{},
	}

	for k, ps := range shares.Caps {
		if slices.Max(append(ps, 0)) > 0 {
			f.shadow.Prices[f.name(k)] = ps
		}
	}

	f.Shadow = f.shadow
	for i := range f.members {
		m := &f.members[i]
		m.share, m.Prices = shares.Cars[i], f.prices
		if len(f.Position) == 0 {
			continue
		}

		// The member's plan is explained at the prices that it is planned on. These also
		// decide how often it starts, which changes its need.
		again := problemOf(m.from, m.From, f.prices)
		m.Car.Problem.Need, m.Car.Problem.Late = again.Need, again.Late
	}

	return nil
}

// place plans the members one after the other, those with the least slack first. Each may use
// its own share and the headroom that belongs to no share.
func (f *fleet) place(ctx context.Context, d *Service) {
	order := make([]int, len(f.members))
	slack := make([]time.Duration, len(f.members))

	for i := range order {
		order[i] = i
		slack[i] = f.members[i].Slack()

		// A member whose share is too small comes before all others, because it needs the
		// headroom that belongs to no share.
		m := &f.members[i]
		if m.lacksShare() || m.lacksFuseShare() {
			slack[i] -= planHorizon
		}
	}

	slices.SortStableFunc(order, func(a, b int) int {
		return int((slack[a] - slack[b]) / time.Second)
	})

	for _, i := range order {
		m := &f.members[i]
		f.Release(m.Cap, m.share)
		f.Release(m.Cap, m.now)
		f.cap = m.Cap
		f.decide(ctx, d, m)
		m.recordSteps()
		f.Add(m.Cap, m.steps(), m.Power, m.Running)
	}

	if at, cap, over := f.Exceeded(); over {
		d.log().WarnContext(
			ctx,
			"charge-now, dispatches of batteries, tanks and heat pumps, and what is not under control draw more than a cap",
			"group",
			f.name(cap),
			"at",
			at,
		)
	}
}

// lacksShare reports whether a member's share, with its charge-now, is less than its need.
func (m *member) lacksShare() bool {
	got := int64(0)
	for _, s := range append(m.share, m.now...) {
		got += int64(s.Limit) * int64(s.Len()/time.Second)
	}

	return got < int64(m.Need)*3600
}

// steps returns what the member does from now on.
func (m *member) steps() []flex.Step {
	if m.next != nil {
		return m.next.Steps
	}
	return stepsWithin(m.current(), flex.Span{
		From: m.From,
		To:   m.Current.End(),
	})
}

// current returns the charging steps of the member's schedule in force.
func (m *member) current() []flex.Step { return m.Current.Charging() }

// decide plans a member in its headroom, and uses the plan if it replaces the schedule in
// force.
func (f *fleet) decide(
	ctx context.Context,
	d *Service,
	m *member,
) {
	problem, answer, binding := f.charge(*m.Car.Problem)
	binding = m.fitToFuse(&problem, &answer, binding)
	exceeds := !f.Fits(m.Car.Problem, m.Cap, m.current()) ||
		mayExceedCounted(&m.Current.From) || m.exceedsFuse || m.mustReduce

	decision := d.decide(ctx, m.Current.AssetID, &Candidate{
		Trigger:    ByCaps,
		Exceeds:    exceeds,
		Pooled:     len(f.Position) > 0,
		Now:        f.now,
		MarketAt:   m.MarketAt,
		Current:    m.current(),
		Discharges: dischargeSteps(&m.Current, f.now),
		Problem:    &problem,
		Plan:       &answer,
	})

	if decision.Replace {
		m.next = &answer
		m.binding = binding
		m.value = decision.Value
		m.must = exceeds
		return
	}

	sooner := f.replanAt.IsZero() || decision.Again.Before(f.replanAt)
	if !decision.Again.IsZero() && sooner {
		f.replanAt = decision.Again
	}
}

// keepUnlessBetter drops the new plans of a fleet whose schedules in force observe the caps,
// unless they are better as a whole. They must meet no less of the needs, and must save what
// savesEnough asks for that number of schedules. Otherwise shares of equal value would be
// divided differently each time.
func (f *fleet) keepUnlessBetter(from time.Time) {
	n := 0
	var lessMet, moreMet int64 // watt-seconds of needs, beyond a member's slack
	urgent := false

	for i := range f.members {
		m := &f.members[i]
		if m.next == nil {
			continue
		}

		n++
		if len(dischargeSteps(&m.Current, from)) > 0 { // a schedule that discharges must be replaced here
			return
		}

		less, more := m.met()
		lessMet += less
		moreMet += more

		changed := Candidate{
			Current: m.current(),
			Problem: m.Car.Problem,
			Plan:    m.next,
		}

		urgent = urgent || changed.benefit().Value == store.Urgent
	}

	// Compare the cost of the fleet as a whole, because all members share the traded position.
	cost := f.bill(from, func(m *member) []flex.Step {
		return m.current()
	})
	saved := cost - f.bill(from, (*member).steps)
	better := urgent || savesEnough(saved, cost, n)
	if better && lessMet <= moreMet {
		return
	}

	for i := range f.members {
		f.members[i].next = nil
		f.members[i].recordSteps()
	}

	f.Profile = f.current.Profile // now the load of the schedules in force counts again
}

// met compares how much of a member's need its new plan and the schedule in force meet, in
// watt-seconds. less is how much less the new plan meets, beyond a slack; more is how much
// more it meets.
func (m *member) met() (less, more int64) {
	assumed := charge.AssumedPrice(m.Prices)
	old := effectOf(m.Car.Problem, assumed, m.current())
	next := effectOf(m.Car.Problem, assumed, m.next.Steps)

	need := int64(m.Need) * 3600
	shortfall, would := max(0, need-old.energy), max(0, need-next.energy)
	slack := int64(m.Power)*int64(TurnSlack/time.Second) + need*SlackPercent/100

	return max(0, would-shortfall-slack), max(0, shortfall-would)
}

// replace commits the changed schedules and the effect of caps on them. It returns the number
// of schedules that were replaced.
func (s *Service) replace(
	ctx context.Context,
	tx *store.Tx,
	f *fleet,
) (int, error) {
	var changed int
	for at := 0; at < len(f.changed); at += replaceMax {
		rs := f.changed[at:min(at+replaceMax, len(f.changed))]
		fused, err := s.fitToFuses(ctx, tx, f.prices, rs)
		if err == nil {
			err = fused.cause // a fleet plan is committed as a whole or not at all
		}
		if err != nil {
			return 0, err
		}

		n, err := tx.Replace(ctx, rs)
		if err != nil {
			return 0, err
		}

		// The fuse's effect on a schedule replaces that of the caps.
		for i, b := range fused.bindings {
			if b != nil {
				f.bindings[at+i] = b
			}
		}

		changed += n
		err = tx.PutBindings(ctx, bindingsOf(rs, f.bindings[at:])...)
		if err != nil {
			return 0, err
		}

		err = fused.follow(ctx, tx, s)
		if err != nil {
			return 0, err
		}
	}

	return changed, nil
}

// bindingsOf returns the effects of caps on schedules that were just committed, without those
// that had none.
func bindingsOf(
	rs []store.Replacement,
	all []*store.Binding,
) []store.Binding {
	var bs []store.Binding
	for i := range rs {
		if b := all[i]; b != nil {
			b.EventID, b.AssetID = rs[i].Next.EventID, rs[i].Next.AssetID
			bs = append(bs, *b)
		}
	}

	return bs
}

// changes lists the schedules that replace one in force.
func (f *fleet) changes(curve store.CurveID) {
	f.changed, f.bindings = nil, nil
	for i := range f.members {
		m := &f.members[i]
		steps, binding, changed := m.stepsToSend()
		if !changed {
			continue
		}

		next := store.Schedule{
			Cause: store.CauseMarket,
			From:  m.from,
			Value: m.value,
			Curve: curve,
		}

		if m.must || m.next == nil {
			next.Cause, next.Value = store.CauseCaps, store.Urgent
		}

		next.Steps = steps
		f.changed = append(f.changed, store.Replacement{
			ScheduledAsset: m.ScheduledAsset,
			Next:           next,
		})

		f.bindings = append(f.bindings, binding)
	}

	f.addPowerAfterEnd(curve)
}
