package control

import (
	"context"
	"errors"
	"slices"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/discharge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// planDischarging plans when the cars of a site that is planned as one discharge. It begins
// with their plans without discharging; each car is planned beside what the others and the
// batteries may be doing.
func (s *Service) planDischarging(
	ctx context.Context,
	tx *store.Tx,
	f *behindFuse,
) error {
	for _, car := range f.cars {
		if car.charging == nil || car.pastReadyBy || car.from.Discharge == nil {
			continue
		}

		if err := s.planDischargingOf(ctx, tx, f, car); err != nil {
			return err
		}
	}

	return nil
}

// planDischargingOf plans when one car of a site discharges, and decides whether that replaces
// its schedule in force.
func (s *Service) planDischargingOf(
	ctx context.Context,
	tx *store.Tx,
	f *behindFuse,
	car *siteCar,
) error {
	alone := f.alone(car)
	discharging, err := s.dischargingBesideHome(ctx, tx, f, car, &alone)
	if err != nil {
		return err
	}

	alone.Discharging = discharging
	if len(alone.Given)+len(alone.newDischarges()) == 0 {
		return nil // the car stays with what it was planned to do alone
	}

	decision := s.decide(ctx, car.Current.AssetID, &alone)

	if !decision.Replace {
		car.goOn(f)
	} else if car.keepsDischarging || len(alone.newDischarges()) > 0 {
		car.renewed = true
		car.problem, car.plan = *alone.Problem, *alone.Plan
		car.take(alone.newSteps(), alone.newDischarges(), f)
	}

	if !decision.Again.IsZero() {
		f.again[decision.Again] = append(f.again[decision.Again], car.Current.AssetID)
	}

	return nil
}

// goOn has a car go on by its schedule in force.
func (c *siteCar) goOn(f *behindFuse) {
	own, before := c.from.Discharge, c.Current.From.Discharge
	if before == nil { // it was made when the car might not discharge yet
		before = &store.Discharge{}
	}

	c.renewed = false
	own.Why, own.Saves = "", before.Saves
	own.Rates = before.Rates

	own.Parts = slices.DeleteFunc(slices.Clone(before.Parts), func(part store.DischargedPart) bool {
		return flex.PeriodAt(part.From).End().Before(f.from)
	})

	stay := flex.Span{From: f.from, To: c.end(f.from)}
	own.Discharges = dischargesAhead(&c.Current, f.from)
	c.take(stepsWithin(c.Current.Steps, stay), own.Discharges, f)
}

// take makes the plan the car's. A car that waits until others have accepted their schedules
// is planned again then.
func (c *siteCar) take(steps, discharges []flex.Step, f *behindFuse) {
	waits := !sameAhead(c.stepsForNow, c.finalSteps, f.from)
	c.stepsForNow = stepsWithin(steps, flex.Span{From: f.from, To: c.end(f.from)})
	c.discharges = discharges

	if !waits {
		c.finalSteps = c.stepsForNow
	}
}

// alone is the plan by which a car charges alone, beside its schedule in force.
func (f *behindFuse) alone(car *siteCar) Candidate {
	problem, plan := car.problem, car.plan
	span := flex.Span{From: f.from, To: car.end(f.from)}
	left := f.open(car, span)
	if car.renewed { // the half-hours that it keeps for now may be meant for another car
		left = f.left(car, span)
	}

	if car.keepsDischarging || !staysWithin(plan.Steps, problem.Power, left) {
		problem.Limits = lesserLimits(problem.Limits, left, span)
		plan = charge.Solve(problem)
	}

	c := car.cause.candidate(car.charging, &car.from, &problem, &plan)
	current := stepsWithin(car.Current.Steps, span)
	discharged := dischargesAhead(&car.Current, f.from)
	unlike := f.home != nil && len(discharged) > 0 && !plannedAsOne(&car.Current.From)
	broken := !staysWithin(current, problem.Power, left)
	c.Now = f.now
	c.Exceeds = unlike || broken || f.tight != car.Current.HasTail()

	return c
}

// besideSite is why a car is charged alone at a site that is planned as one.
func (f *behindFuse) besideSite(car *siteCar) string {
	switch {
	case f.home == nil && car.charging.Battery:
		return dischargeBattery
	case f.home == nil:
		return ""
	case f.home.unplanned:
		return dischargeBattery
	}

	last := f.home.ahead.periods

	if len(last) == 0 || last[len(last)-1].End().Before(car.from.ReadyBy) {
		return dischargePrices
	}

	return ""
}

// dischargingBesideHome plans what a car discharges beside the batteries of its site, and
// notes why it discharges nothing. It discharges where its household then pays less, with the
// best that the batteries can do in both cases.
func (s *Service) dischargingBesideHome(
	ctx context.Context,
	tx *store.Tx,
	f *behindFuse,
	car *siteCar,
	alone *Candidate,
) (*Discharging, error) {
	to := car.from.Discharge
	to.Why = chargesOnly(&car.from, f.besideSite(car), f.from)

	if to.Why != "" {
		return nil, nil
	}

	q, err := dischargeProblem(ctx, tx, car.charging, to, alone)
	if err != nil {
		return nil, err
	}

	most := f.exportLeft(car)
	to.Why = cannotDischarge(q, car.charging.Export, most)

	if to.Why != "" {
		return nil, nil
	}

	q.Most = min(q.Most, most)
	f.confine(car, q)

	return s.solveBesideHome(ctx, f, car, q), nil
}

// solveBesideHome plans what a car discharges, and holds it beside what it does alone and by
// the schedule in force.
func (s *Service) solveBesideHome(
	ctx context.Context,
	f *behindFuse,
	car *siteCar,
	q *discharge.Problem,
) *Discharging {
	to := car.from.Discharge
	plan := discharge.Solve(q)
	law := errors.Join(checkDischarge(q, &plan), f.passes(car, &plan))

	if law != nil {
		s.refuse(ctx, car.Current.AssetID, law)
		to.Why = dischargeRefused

		return nil
	}

	none := discharge.Plan{Steps: q.Alone}
	least := f.pays(car, &none, q)
	saves := 0.0

	if len(plan.Discharges) > 0 {
		saves = least - f.pays(car, &plan, q)
	}

	if saves < DischargeMinSaving {
		to.Why = f.noGain(q, &plan)
		plan, saves = none, 0
	} else {
		recordDischarge(to, q, &plan)
		to.Saves = saves
	}

	g := dischargingBeside(q, &plan, &car.Current, spareAlone(q, to))

	more := f.pays(car, planInForce(car, q), q) - (least - saves)
	g.Saving = flex.MicroPounds(more * 10_000)

	return g
}

// planInForce is the car's schedule in force, as a plan.
func planInForce(car *siteCar, q *discharge.Problem) *discharge.Plan {
	return &discharge.Plan{
		Steps:      car.Current.Charging(),
		Discharges: dischargesAhead(&car.Current, q.From),
	}
}

// noGain says why discharging a car does not pay beside the batteries and the other cars of
// its site.
func (f *behindFuse) noGain(q *discharge.Problem, plan *discharge.Plan) string {
	if plan.Worth(q) < DischargeMinSaving {
		return noGain(q)
	}

	if f.home == nil {
		return dischargeNoGainCars
	}

	return dischargeNoGainHome
}

// exportLeft is what a car may discharge at most beside the other cars of its site, whichever
// of their schedules they follow.
func (f *behindFuse) exportLeft(car *siteCar) flex.Watts {
	o := f.mayDischargeBeside(car)

	return o.leaves(car.wiring())
}

// mayDischargeBeside is what the other cars of a site may discharge while a car is there.
func (f *behindFuse) mayDischargeBeside(car *siteCar) outflow {
	o := outflow{phaseLoad: f.load(), fuse: f.fuse, export: car.charging.Export}
	stay := flex.Span{From: f.from, To: car.end(f.from)}

	for _, other := range slices.Concat(f.cars, f.gone) {
		if other != car {
			may := other.mayDischarge(f.from)
			o.give(may.mostIn(stay), may.wired)
		}
	}

	for i := range f.freed {
		o.give(f.freed[i].mostIn(stay), f.freed[i].wired)
	}

	return o
}

// confine closes the half-hours in which the main fuse does not leave a car its full power,
// and those in which a battery was already sent a mode that conflicts with the car's charging
// or discharging.
func (f *behindFuse) confine(car *siteCar, q *discharge.Problem) {
	stay := flex.Span{From: q.From, To: q.ReadyBy}

	if q.Kept { // it charges as it does alone
		stay.To = stay.From
	}

	for _, l := range f.open(car, stay) {
		if l.Limit < q.Charge {
			q.Open = instruct.Without(q.Open, []flex.Span{l.Span})
		}
	}

	if f.home == nil {
		return
	}

	others := f.mayDischargeBeside(car)

	for i, p := range f.home.ahead.periods {
		sent := f.home.sent[p]
		surplus := flex.Watts(2 * (f.home.ahead.roof[i] - f.home.ahead.load[i]))
		o := others
		o.give(sent.discharges, f.home.wired)
		o.give(max(0, surplus), flex.Wiring{})

		if sent.stores || q.Most > o.leaves(car.wiring()) {
			q.Shut = append(q.Shut, p.Span())
		}

		if sent.covers && !q.Kept {
			q.Open = instruct.Without(q.Open, []flex.Span{p.Span()})
		}
	}
}

// passes says when a plan would exceed what the others leave a car under the main fuse; nil if
// never.
func (f *behindFuse) passes(car *siteCar, plan *discharge.Plan) error {
	span := flex.Span{From: f.from, To: car.end(f.from)}

	if !staysWithin(plan.Steps, car.problem.Power, f.left(car, span)) {
		return errors.New("it charges where the main fuse does not leave it that")
	}

	return nil
}

// pays is what a household pays in pence if a car follows a plan and the batteries are planned
// best beside it, with wear and turns.
func (f *behindFuse) pays(
	car *siteCar,
	plan *discharge.Plan,
	q *discharge.Problem,
) float64 {
	turns := q.Turn * float64(max(0, plan.Turns()-1))

	core, discharges := car.stepsForNow, car.discharges
	car.stepsForNow, car.discharges = q.Filled(plan.Steps, plan.Discharges), plan.Discharges
	pence := f.carsPence(q)
	if f.home != nil {
		pence = f.household()
	}

	car.stepsForNow, car.discharges = core, discharges

	for _, s := range plan.Discharges {
		pence += q.Wear * s.Limit.KW() * s.Len().Hours()
	}

	return pence + turns
}

// addFreed adds what cars may still discharge that were freed at a site while they were
// plugged in.
func (m *meter) addFreed(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) error {
	freed, err := freedAt(ctx, tx, site)
	for i := range freed {
		if len(freed[i].lists) > 0 {
			m.mayDischarge = append(m.mayDischarge, freed[i])
		}
	}

	return err
}
