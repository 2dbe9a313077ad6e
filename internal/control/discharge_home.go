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

// planDischarging plans when the cars of a site that is planned as one discharge. It starts
// from their plans of charging only. Each car is planned with what the other cars and the
// batteries may do.
func (s *Service) planDischarging(
	ctx context.Context,
	tx *store.Tx,
	f *sitePlan,
) error {
	for _, car := range f.cars {
		if car.state == nil || car.pastReadyBy || car.from.Discharge == nil {
			continue
		}

		if err := s.planDischargingOf(ctx, tx, f, car); err != nil {
			return err
		}
	}

	return nil
}

// planDischargingOf plans the discharge of one car of a site, and decides whether the plan
// replaces its schedule in force.
func (s *Service) planDischargingOf(
	ctx context.Context,
	tx *store.Tx,
	f *sitePlan,
	car *siteCar,
) error {
	alone := f.chargeOnlyCandidate(car)
	discharging, err := s.planCarDischarge(ctx, tx, f, car, &alone)
	if err != nil {
		return err
	}

	alone.Discharging = discharging
	if len(alone.Discharges)+len(alone.newDischarges()) == 0 {
		return nil // the car stays with what it was planned to do alone
	}

	decision := s.decide(ctx, car.Current.AssetID, &alone)

	if !decision.Replace {
		car.keepDischarge(f)
	} else if car.keepsDischarging || len(alone.newDischarges()) > 0 {
		car.renewed = true
		car.problem, car.plan = *alone.Problem, *alone.Plan
		car.setPlan(alone.newSteps(), alone.newDischarges(), f)
	}

	if !decision.Again.IsZero() {
		f.replanTimes[decision.Again] = append(f.replanTimes[decision.Again], car.Current.AssetID)
	}

	return nil
}

// keepDischarge has a car keep discharging by its schedule in force.
func (c *siteCar) keepDischarge(f *sitePlan) {
	own, before := c.from.Discharge, c.Current.From.Discharge
	if before == nil { // made before the car could discharge
		before = &store.Discharge{}
	}

	c.renewed = false
	own.Why, own.Saves = "", before.Saves
	own.Rates = before.Rates

	own.Parts = slices.DeleteFunc(slices.Clone(before.Parts), func(part store.DischargedPart) bool {
		return !flex.PeriodAt(part.From).End().After(f.from)
	})

	stay := flex.Span{From: f.from, To: c.end(f.from)}
	own.Discharges = dischargeSteps(&c.Current, f.from)
	c.setPlan(stepsWithin(c.Current.Steps, stay), own.Discharges, f)
}

// setPlan makes a plan the car's own. A car that waits until others have accepted their
// schedules keeps its final steps, and is planned again then.
func (c *siteCar) setPlan(steps, discharges []flex.Step, f *sitePlan) {
	waits := !sameAhead(c.stepsForNow, c.finalSteps, f.from)
	c.stepsForNow = stepsWithin(steps, flex.Span{From: f.from, To: c.end(f.from)})
	c.discharges = discharges

	if !waits {
		c.finalSteps = c.stepsForNow
	}
}

// chargeOnlyCandidate returns the comparison of a car's plan of charging only with its
// schedule in force.
func (f *sitePlan) chargeOnlyCandidate(car *siteCar) Candidate {
	problem, plan := car.problem, car.plan
	span := flex.Span{From: f.from, To: car.end(f.from)}
	remaining := f.lesserHeadroom(car, span)
	if car.renewed { // half-hours that it has for now may be planned for another car
		remaining = f.safeHeadroom(car, span)
	}

	if car.keepsDischarging || !staysWithin(plan.Steps, problem.Power, remaining) {
		problem.Limits = lesserLimits(problem.Limits, remaining, span)
		plan = charge.Solve(problem)
	}

	c := car.cause.candidate(car.state, &car.from, &problem, &plan)
	current := stepsWithin(car.Current.Steps, span)
	discharged := dischargeSteps(&car.Current, f.from)
	unlike := f.home != nil && len(discharged) > 0 && !plannedAsOne(&car.Current.From)
	broken := !staysWithin(current, problem.Power, remaining)
	c.Now = f.now
	c.Exceeds = unlike || broken || f.tight != car.Current.HasTail()

	return c
}

// sharedReason says why a car only charges at a site that is planned as one; empty for no such
// reason.
func (f *sitePlan) sharedReason(car *siteCar) string {
	switch {
	case f.home == nil && car.state.Battery:
		return dischargeBattery
	case f.home == nil:
		return ""
	case f.home.unplanned:
		return dischargeBattery
	}

	last := f.home.ahead.periods

	if len(last) == 0 || last[len(last)-1].End().Before(car.from.ReadyBy) {
		return dischargeBatteryHorizon
	}

	return ""
}

// planCarDischarge plans a car's discharge at a site that is planned as one, and records
// why there is none. The car discharges if its household then pays less, where the batteries
// are planned best in both cases.
func (s *Service) planCarDischarge(
	ctx context.Context,
	tx *store.Tx,
	f *sitePlan,
	car *siteCar,
	alone *Candidate,
) (*Discharging, error) {
	d := car.from.Discharge
	d.Why = chargeOnlyReason(&car.from, f.sharedReason(car), f.from)

	if d.Why != "" {
		return nil, nil
	}

	q, err := dischargeProblem(ctx, tx, car.state, d, alone)
	if err != nil {
		return nil, err
	}

	most := f.exportHeadroom(car)
	d.Why = noDischargeReason(q, car.state.Export, most)

	if d.Why != "" {
		return nil, nil
	}

	q.Most = min(q.Most, most)
	f.limitDischarge(car, q)

	return s.solveCarDischarge(ctx, f, car, q), nil
}

// solveCarDischarge solves a car's discharge problem, and compares what the household pays by
// the plan with what it pays without discharge and by the schedule in force.
func (s *Service) solveCarDischarge(
	ctx context.Context,
	f *sitePlan,
	car *siteCar,
	q *discharge.Problem,
) *Discharging {
	d := car.from.Discharge
	plan := discharge.Solve(q)
	law := errors.Join(checkDischarge(q, &plan), f.checkHeadroom(car, &plan))

	if law != nil {
		s.refuse(ctx, car.Current.AssetID, law)
		d.Why = dischargeCheckFailed

		return nil
	}

	none := discharge.Plan{Steps: q.Alone}
	costAlone := f.costWith(car, &none, q)
	saves := 0.0

	if len(plan.Discharges) > 0 {
		saves = costAlone - f.costWith(car, &plan, q)
	}

	if saves < DischargeMinSaving {
		d.Why = f.noGainReason(q, &plan)
		plan, saves = none, 0
	} else {
		recordDischarge(d, q, &plan)
		d.Saves = saves
	}

	g := compareDischarge(q, &plan, &car.Current, spareEnergy(q, d))

	more := f.costWith(car, planInForce(car, q), q) - (costAlone - saves)
	g.Saving = flex.MicroPounds(more * 10_000)

	return g
}

// planInForce is the car's schedule in force, as a plan.
func planInForce(car *siteCar, q *discharge.Problem) *discharge.Plan {
	return &discharge.Plan{
		Steps:      car.Current.Charging(),
		Discharges: dischargeSteps(&car.Current, q.From),
	}
}

// noGainReason says why discharging a car does not pay with the batteries and the other cars
// of its site.
func (f *sitePlan) noGainReason(q *discharge.Problem, plan *discharge.Plan) string {
	if plan.Worth(q) < DischargeMinSaving {
		return noGainReason(q)
	}

	if f.home == nil {
		return dischargeNoGainCars
	}

	return dischargeNoGainHome
}

// exportHeadroom is the most that a car may discharge beside the other cars of its site,
// whichever of their schedules they follow.
func (f *sitePlan) exportHeadroom(car *siteCar) flex.Watts {
	o := f.otherDischarge(car)

	return o.exportHeadroom(car.wiring())
}

// otherDischarge is the most that the other cars of a site may discharge during a car's
// stay.
func (f *sitePlan) otherDischarge(car *siteCar) dischargeLoad {
	o := dischargeLoad{phaseLoad: f.load(), fuse: f.fuse, export: car.state.Export}
	stay := flex.Span{From: f.from, To: car.end(f.from)}

	for _, other := range slices.Concat(f.cars, f.finishedCars) {
		if other != car {
			may := other.possibleDischarge(f.from)
			o.addDischarge(may.maxIn(stay), may.wiring)
		}
	}

	for i := range f.uncontrolledCars {
		o.addDischarge(f.uncontrolledCars[i].maxIn(stay), f.uncontrolledCars[i].wiring)
	}

	return o
}

// limitDischarge closes half-hours of a car's problem: for charging, where the main fuse
// leaves it less than its full power or a battery was sent a mode that covers the home's load;
// for discharging, where a battery was sent a mode that stores, or the export limit leaves
// less than the car's power beside surplus solar power.
func (f *sitePlan) limitDischarge(car *siteCar, q *discharge.Problem) {
	stay := flex.Span{From: q.From, To: q.ReadyBy}

	if q.Kept { // it charges as in its plan of charging only
		stay.To = stay.From
	}

	for _, l := range f.lesserHeadroom(car, stay) {
		if l.Limit < q.Charge {
			q.Open = instruct.Without(q.Open, []flex.Span{l.Span})
		}
	}

	if f.home == nil {
		return
	}

	others := f.otherDischarge(car)

	for i, p := range f.home.ahead.periods {
		mode := f.home.sentModes[p]
		surplus := flex.Watts(2 * (f.home.ahead.roof[i] - f.home.ahead.load[i]))
		o := others
		o.addDischarge(mode.discharges, f.home.wiring)
		o.addDischarge(max(0, surplus), flex.Wiring{})

		if mode.stores || q.Most > o.exportHeadroom(car.wiring()) {
			q.Shut = append(q.Shut, p.Span())
		}

		if mode.covers && !q.Kept {
			q.Open = instruct.Without(q.Open, []flex.Span{p.Span()})
		}
	}
}

// checkHeadroom returns an error if a plan exceeds what the others leave a car under the main
// fuse.
func (f *sitePlan) checkHeadroom(car *siteCar, plan *discharge.Plan) error {
	span := flex.Span{From: f.from, To: car.end(f.from)}

	if !staysWithin(plan.Steps, car.problem.Power, f.safeHeadroom(car, span)) {
		return errors.New("it charges where the main fuse does not leave it that")
	}

	return nil
}

// costWith is what the household pays, in pence, if a car follows a plan and the batteries are
// planned best for that, with the cost of wear and of further changes between charging and
// discharging.
func (f *sitePlan) costWith(
	car *siteCar,
	plan *discharge.Plan,
	q *discharge.Problem,
) float64 {
	turns := q.Turn * float64(max(0, plan.Turns()-1))

	core, discharges := car.stepsForNow, car.discharges
	car.stepsForNow, car.discharges = q.Filled(plan.Steps, plan.Discharges), plan.Discharges
	pence := f.carsCost(q)
	if f.home != nil {
		pence = f.householdCost()
	}

	car.stepsForNow, car.discharges = core, discharges

	for _, s := range plan.Discharges {
		pence += q.Wear * s.Limit.KW() * s.Len().Hours()
	}

	return pence + turns
}

// addUncontrolledCars adds what cars of a site may still discharge that flexd no longer
// controls, and that were plugged in when control ended.
func (m *meter) addUncontrolledCars(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) error {
	uncontrolled, err := uncontrolledCarsAt(ctx, tx, site)
	for i := range uncontrolled {
		if len(uncontrolled[i].lists) > 0 {
			m.possibleDischarges = append(m.possibleDischarges, uncontrolled[i])
		}
	}

	return err
}
