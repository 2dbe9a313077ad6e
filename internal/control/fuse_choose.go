package control

import (
	"context"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// order returns the cars that are not done, those with the least slack first.
func (f *sitePlan) order() []*siteCar {
	var order []*siteCar
	slack := map[*siteCar]time.Duration{}
	for _, car := range f.cars {
		if car.pastReadyBy || car.keepsDischarging {
			continue
		}

		order, slack[car] = append(order, car), car.Slack()
		if car.lacksShare() {
			slack[car] -= planHorizon
		}
	}

	slices.SortStableFunc(order, func(a, b *siteCar) int {
		return int((slack[a] - slack[b]) / time.Second)
	})

	return order
}

// choose plans a car in its headroom, and decides whether the plan replaces its schedule in
// force.
func (f *sitePlan) choose(ctx context.Context, d *Service, car *siteCar) {
	var plan charge.Plan
	car.problem, plan = f.headroomOf(car).Charge(car.problem, 0)

	car.keepSchedule(f.from)
	candidate := f.candidate(car, &plan)
	decision := d.decide(ctx, car.Current.AssetID, &candidate)
	car.renewed = decision.Replace
	car.plan = plan
	if !decision.Again.IsZero() {
		f.replanTimes[decision.Again] = append(
			f.replanTimes[decision.Again],
			car.Current.AssetID,
		)
	}

	if car.renewed {
		car.finalSteps, car.discharges = plan.Steps, nil
	}
}

// candidate returns the comparison of a car's plan with its schedule in force.
func (f *sitePlan) candidate(car *siteCar, plan *charge.Plan) Candidate {
	exceeds := !f.headroomOf(car).Fits(&car.problem, 0, car.finalSteps) ||
		f.tight != car.Current.HasTail() ||
		len(car.discharges) > 0 // its discharge is planned again later, from a plan of charging only
	c := Candidate{
		Trigger:    ByCaps,
		Exceeds:    exceeds,
		Now:        f.now,
		MarketAt:   car.MarketAt,
		Current:    car.finalSteps,
		Power:      car.Current.From.Power,
		Discharges: dischargeSteps(&car.Current, f.from),
		Problem:    &car.problem,
		Plan:       plan,
	}

	if car.state != nil {
		c.Trigger, c.Measured = car.cause.trigger, car.from.Learned != nil
		c.Required = car.cause.must || car.Current.Generation == 0
	}

	return c
}

// currentFits reports whether all schedules in force may stay: together they fit the fuse, and
// none of them must be replaced.
func (f *sitePlan) currentFits() bool {
	for _, car := range f.cars {
		requested := car.state != nil && car.cause.trigger == ByEvent
		if requested || car.Current.Generation == 0 ||
			f.tight != car.Current.HasTail() {
			return false
		}
		if !car.keepsDischarging && len(dischargeSteps(&car.Current, f.from)) > 0 {
			return false
		}
	}

	for _, at := range f.changeTimes(flex.Span{From: f.from, To: f.lastEnd}) {
		l := f.load()
		l.addAll(f.others, at)

		for _, car := range f.cars {
			d := loadBound{
				lists: [][]flex.Step{car.Current.Steps},
				power: car.from.Power,
			}

			l.add(d.powerAt(at), car.wiring())
		}

		if l.max() > f.limit() {
			return false
		}
	}

	return true
}

// worthReplacing reports whether the new plans are worth sending: they meet more of the needs
// than the schedules in force, or save enough. Without this check cars of equal value would be
// sent another division of the fuse each time.
func (f *sitePlan) worthReplacing() bool {
	n, urgent := 0, false
	var lost, gained int64
	var cost, saved flex.MicroPounds

	for _, car := range f.cars {
		if car.pastReadyBy || !car.renewed {
			continue
		}

		car.next = &car.plan
		if len(dischargeSteps(&car.Current, f.from)) > 0 { // a schedule that discharges is replaced in any case
			return true
		}

		less, more := car.met()
		lost, gained = lost+less, gained+more

		changed := Candidate{
			Current: car.Current.Steps,
			Power:   car.Current.From.Power,
			Problem: &car.problem,
			Plan:    &car.plan,
		}

		urgent = urgent || changed.fallsShortOtherwise() || changed.benefit().Value == store.Urgent

		assumed := charge.AssumedPrice(f.prices)
		old := effectOf(&car.problem, assumed, car.Current.Steps)
		saved += old.cost -
			effectOf(&car.problem, assumed, car.plan.Steps).cost
		cost += old.cost
		n++
	}

	return lost <= gained && (urgent || savesEnough(saved, cost, n))
}

// keepSchedule sets a car's steps to those of its schedule in force.
func (c *siteCar) keepSchedule(from time.Time) {
	c.renewed = false
	c.finalSteps = stepsWithin(c.Current.Steps, flex.Span{From: from, To: c.end(from)})
	c.discharges = dischargeSteps(&c.Current, from)
}

// keepWholeSchedule sets a car's steps to those of its schedule in force, with those after its
// end.
func (c *siteCar) keepWholeSchedule(from time.Time) {
	c.keepSchedule(from)
	c.stepsForNow = c.finalSteps

	after := flex.Span{
		From: c.end(from),
		To:   c.Current.End(),
	}
	c.stepsAfterEnd = stepsWithin(c.Current.Steps, after)
}

// commitSite puts the changed schedules in force, and marks cars to be planned again that wait
// until others have accepted theirs.
func (s *Service) commitSite(
	ctx context.Context,
	tx *store.Tx,
	f *sitePlan,
	site flex.SiteID,
) error {
	var next []store.Replacement
	var bindings []*store.Binding

	changed := s.guarded(ctx, f)
	if err := f.replanHeaters(ctx, tx, site, changed); err != nil {
		return err
	}

	for _, n := range changed {
		car := n.siteCar
		if car.state == nil || car.withoutCause {
			next = append(next, store.Replacement{ScheduledAsset: car.ScheduledAsset, Next: n.next})
			bindings = append(bindings, f.bindingOf(car))
			continue
		}

		under := &limits{fuse: f.bindingOf(car)}
		err := putInForce(ctx, tx, car.state, &n.next, f.prices, under)
		if err != nil {
			return err
		}
	}

	if _, err := replaceChecked(ctx, tx, f.prices, next); err != nil {
		return err
	}

	err := tx.PutBindings(ctx, bindingsOf(next, bindings)...)
	if err != nil {
		return err
	}

	return f.replanAt(ctx, tx)
}

// differs reports whether a car's new steps are another schedule than the one in force.
func (f *sitePlan) differs(car *siteCar) bool {
	steps := slices.Concat(car.stepsForNow, car.stepsAfterEnd)
	same := !car.renewed && sameAhead(car.Current.Steps, steps, f.from) &&
		sameDischarges(dischargeSteps(&car.Current, f.from), car.discharges) &&
		!rephased(&car.from, &car.Current)

	return !same && len(steps) > 0
}

// scheduleOf returns a car's next schedule; false if the one in force stays.
func (f *sitePlan) scheduleOf(car *siteCar) (s store.Schedule, changed bool) {
	if !f.differs(car) {
		return s, false
	}

	s = store.Schedule{
		Cause: store.CauseCaps,
		From:  car.from,
		Value: store.Urgent,
	}

	s.Steps = slices.Concat(car.stepsForNow, car.stepsAfterEnd)
	if len(car.discharges) == 0 {
		s.From.Discharge = withoutDischarge(s.From.Discharge)
	}
	s.From.Origins = withoutRefused(s.From.Origins)
	if f.home != nil {
		s.From.Origins = originsWithHome(s.From.Origins, f.quality)
	}
	if car.state != nil {
		s.Cause = car.cause.cause
	}

	return s, true
}

// withoutDischarge returns the discharge record of a car whose schedule discharges nothing,
// with the reason. A record that was made while the discharge was not planned has no reason
// yet.
func withoutDischarge(d *store.Discharge) *store.Discharge {
	alone := d.ChargedAlone()
	if alone == nil {
		return nil
	}

	if alone.Why == "" || alone.Why == dischargeCaps {
		alone.Why = dischargeNotPermitted
	}

	return alone
}

// replanAt marks cars to be planned again: those whose schedule may not change yet, and those
// that get more power once others have accepted their schedules.
func (f *sitePlan) replanAt(ctx context.Context, tx *store.Tx) error {
	for at, who := range f.replanTimes {
		if err := tx.MarkAt(ctx, at, who...); err != nil {
			return err
		}
	}

	return tx.MarkAt(ctx, f.now.Add(FuseInterval), f.waiting()...)
}

// waiting returns the cars that get more power once others, or heaters, have accepted their
// schedules.
func (f *sitePlan) waiting() []flex.AssetID {
	var ids []flex.AssetID
	for _, car := range f.cars {
		heat := f.heatPending() && car.waitsForHeat()
		if heat || !sameAhead(car.stepsForNow, car.finalSteps, f.from) {
			ids = append(ids, car.Current.AssetID)
		}
	}

	return ids
}

// bindingsOf returns the times in which the others behind the fuse limited a car.
func (f *sitePlan) bindingsOf(car *siteCar) []headroom.Binding {
	if f.hasPhases() {
		return f.headroomOf(car).Bindings(&car.problem, &car.plan, 0)
	}

	f.Remove(0, car.finalSteps, car.problem.Power, car.problem.Running)
	defer f.Add(0, car.finalSteps, car.problem.Power, car.problem.Running)

	return f.Bindings(&car.problem, &car.plan, 0)
}

// capOf returns the main fuse as a cap that limited a car: what it carries of the car's power.
func (f *sitePlan) capOf(car *siteCar, span flex.Span) store.BindingCap {
	return store.BindingCap{
		Span:  span,
		Power: f.capacityFor(car.wiring()),
		Home:  f.base.max(),
		Phase: f.hasPhases(),
		Site:  true,
	}
}

// bindingOf returns the effect of the fuse on a car's schedule, with the car's limits after
// its end.
func (f *sitePlan) bindingOf(car *siteCar) *store.Binding {
	if !f.tight && f.home == nil {
		return nil
	}

	b := &store.Binding{}
	span := flex.Span{From: f.from, To: car.end(f.from)}
	if !car.pastReadyBy {
		b.Limits = lesserLimits(car.problem.Limits, nil, span)
		if !car.renewed { // its plan was made in another headroom
			b.Limits = lesserLimits(car.stepsForNow, nil, span)
		}

		for _, h := range f.bindingsOf(car) {
			b.Caps = append(b.Caps, f.capOf(car, h.Span))
		}
	}

	b.Limits = append(b.Limits, car.stepsAfterEnd...)

	return b
}
