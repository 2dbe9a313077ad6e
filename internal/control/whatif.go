package control

import (
	"context"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/tariff"
)

// Question has the suppositions of a what-if question; a field that is nil or zero stays as it
// is.
type Question struct {
	Need          *flex.WattHours
	ReadyByLocal  *flex.WallTime
	MayChargePeak *bool
	Mode          flex.ChargingMode
	Tariff        *flex.Tariff
	Power         flex.Watts
	// instead of the market's prices for these periods
	Prices []flex.PricedPeriod
}

// Comparison has the plan of an asset from now on with its present inputs and with the
// supposed ones. Err says why there is none.
type Comparison struct {
	AssetID  flex.AssetID
	Current  charge.Plan
	Proposed charge.Plan
	// whether the proposed plan would replace the schedule in force
	Decision Decision
	// Alone says that the schedule in force was made together with others of the site, but
	// neither plan was: their figures differ from those of its explanation.
	Alone bool
	Err   error
}

// Cost returns how much more the proposed plan costs.
func (a *Comparison) Cost() flex.MicroPounds {
	return a.Proposed.Cost - a.Current.Cost
}

// Energy returns how much more the proposed plan charges.
func (a *Comparison) Energy() flex.WattHours {
	return a.Proposed.Energy - a.Current.Energy
}

// WhatIf plans assets with their present inputs and with the supposed ones, and stores
// nothing. An asset that is not plugged in is planned as if it were plugged in now.
func (s *Service) WhatIf(
	ctx context.Context,
	org flex.OrgID,
	assets []flex.AssetID,
	q Question,
) ([]Comparison, error) {
	var answers []Comparison
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		answers, err = s.whatIf(ctx, tx, assets, q)
		return err
	})

	return answers, err
}

// whatIf is WhatIf within a transaction.
func (s *Service) whatIf(
	ctx context.Context,
	tx *store.Tx,
	assets []flex.AssetID,
	q Question,
) ([]Comparison, error) {
	if q.Tariff != nil {
		_, err := tariff.Parse(q.Tariff.OffPeak, q.Tariff.Zone, q.Tariff.Type)
		if err != nil {
			return nil, err
		}
	}

	w, err := readPluggedIn(ctx, tx)
	if err != nil {
		return nil, err
	}

	answers := make([]Comparison, len(assets))
	for i, id := range assets {
		a, err := s.compare(ctx, tx, id, q, w)
		if err != nil && flex.KindOf(err) == flex.Internal {
			return nil, err
		}

		a.AssetID, a.Err = id, err
		answers[i] = a
	}

	return answers, nil
}

// compare plans an asset with its present and its supposed inputs, and decides on the second
// plan.
func (s *Service) compare(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	q Question,
	w *pluggedInLoads,
) (Comparison, error) {
	c, err := asPluggedIn(ctx, tx, asset)
	if err != nil {
		return Comparison{}, err
	}

	var a Comparison
	err = w.withHeadroom(ctx, tx, &c, func(r *assetHeadroom) error {
		u, err := w.bindingLimits(ctx, tx, &c, r)
		if err != nil {
			return err
		}

		a, err = s.compareUnder(ctx, tx, &c, u, q)
		return err
	})

	return a, err
}

// compareUnder is compare within the caps and the main fuse of the asset.
func (s *Service) compareUnder(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	u *limits,
	q Question,
) (Comparison, error) {
	from := tx.Now().Truncate(time.Second)
	inputs, known, err := currentInputs(ctx, tx, c, from)
	if err != nil {
		return Comparison{}, err
	}

	limitToLearned(&inputs, u.headroom != nil || u.site != nil)
	current := problemUnder(inputs, from, known, u.headroom)

	alone, _ := u.solve(&current, c, inputs)

	supposed := q.apply(inputs, from)
	problem := problemUnder(supposed, from, overlay(known, q.Prices), u.headroom)
	supposedPlan, _ := u.solve(&problem, c, supposed)

	before := q.candidate(&inputs, &c.Current, tx.Now())
	before.Problem, before.Plan = &current, &alone
	candidate := q.candidate(&supposed, &c.Current, tx.Now())
	candidate.Problem, candidate.Plan = &problem, &supposedPlan

	return s.compareCandidates(
		ctx,
		tx,
		c,
		u,
		q,
		before,
		candidate,
		&inputs,
		&supposed,
	)
}

// compareCandidates returns an asset's present and supposed plans, with the discharge of its
// car in both, and the decision on the second.
func (s *Service) compareCandidates(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	u *limits,
	q Question,
	before, candidate *Candidate,
	is, would *store.PlanInputs,
) (Comparison, error) {
	a := Comparison{Alone: plannedTogether(&c.Current)}
	var err error
	a.Current, err = s.planSupposedDischarge(ctx, tx, c, u, Question{}, is, before)
	if err != nil {
		return a, err
	}

	a.Proposed, err = s.planSupposedDischarge(ctx, tx, c, u, q, would, candidate)
	a.Decision = s.decide(ctx, c.Asset.ID, candidate)

	// The schedule in force was made with the site's battery, and neither plan was: they are
	// compared with each other instead.
	same := slices.Equal(before.newSteps(), candidate.newSteps())
	if same && c.Current.Generation > 0 && plannedAsOne(&c.Current.From) {
		a.Decision.Replace = false
	}

	return a, err
}

// plannedTogether reports whether a schedule was made together with others of its site: with
// batteries, or for a shared main fuse.
func plannedTogether(s *store.Schedule) bool {
	return s.Generation > 0 && (plannedAsOne(&s.From) || s.HasTail())
}

// PlannedTogether reports whether the schedule in force was made together with others of its
// site. A what-if plan is not.
func (p *Past) PlannedTogether() bool { return plannedTogether(&p.Charging.Current) }

// planSupposedDischarge plans the discharge of a candidate's car, and returns its plan with
// that. A car that cannot discharge, or for which prices are supposed, is planned as one that
// only charges.
func (s *Service) planSupposedDischarge(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	u *limits,
	q Question,
	e *store.PlanInputs,
	candidate *Candidate,
) (charge.Plan, error) {
	plan := *candidate.Plan
	if e.Discharge == nil || len(q.Prices) > 0 {
		return plan, nil
	}

	supposed, own := *c, *e.Discharge
	if q.Tariff != nil {
		supposed.Tariff = q.Tariff
	}

	e.Discharge = &own

	var err error
	candidate.Discharging, err = s.planDischarge(
		ctx,
		tx,
		&supposed,
		e,
		candidate,
		u,
	)
	if err != nil || len(candidate.newDischarges()) == 0 {
		return plan, err
	}

	x := Explanation{Plan: plan}
	x.Schedule.From, x.Schedule.Steps = *e, candidate.newSteps()
	x.Plan.Steps, x.Plan.Periods = x.Steps, slices.Clone(plan.Periods)
	x.addDischargePeriods(&own)

	return x.Plan, nil
}

// candidate returns the comparison of a plan for supposed inputs with the schedule in force.
// If there is none, any plan replaces it.
func (q *Question) candidate(
	would *store.PlanInputs,
	current *store.Schedule,
	now time.Time,
) *Candidate {
	return &Candidate{
		Trigger:    q.trigger(),
		Required:   current.Generation == 0,
		Measured:   would.Learned != nil,
		Now:        now,
		Current:    current.Charging(),
		Discharges: dischargeSteps(current, now.Truncate(time.Second)),
	}
}

// currentInputs returns the inputs of an asset's plan from an instant on, and the known
// prices. With a schedule in force its ready-by stays.
func currentInputs(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	from time.Time,
) (store.PlanInputs, []flex.PricedPeriod, error) {
	inputs, known, err := inputsAndPrices(ctx, tx, c, from, false)
	if err != nil {
		return inputs, nil, err
	}

	current := &c.Current
	if c.Open() {
		inputs.Ramp = rampContinuing(current.From.Ramp, false)
	}

	if current.Generation > 0 && current.From.ReadyBy.After(from) {
		inputs.ReadyBy = current.From.ReadyBy
	}

	return inputs, known, nil
}

// problemUnder returns the problem of some inputs within some headroom. Behind a main fuse,
// limits are in watts.
func problemUnder(
	e store.PlanInputs,
	from time.Time,
	ps []flex.PricedPeriod,
	r *assetHeadroom,
) charge.Problem {
	fuse := r != nil && r.fuse
	if fuse {
		raiseToMinPower(&e)
	}

	p := problemOf(e, from, ps)
	p.Exact = p.Exact || fuse

	return p
}

// asPluggedIn returns the planning state of an asset that charges, as if it were plugged
// in now.
func asPluggedIn(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) (store.PlanningState, error) {
	c, err := tx.PlanningState(ctx, asset)
	if err != nil {
		return c, err
	}
	if !c.Asset.Type.Charges() {
		return c, flex.Fail(
			flex.Malformed,
			"asset %v is a %s: only assets of the types charger and electric_vehicle are compared",
			asset,
			c.Asset.Type,
		)
	}

	if !c.Open() {
		c.Session, c.Current = store.Session{}, store.Schedule{}
	}

	return c, nil
}

// QuestionReadyBy returns the deadline of the schedule in force as a time of day in the
// tariff's zone; without a schedule, the default.
func (p *Past) QuestionReadyBy() (flex.WallTime, *time.Location) {
	e := &p.Charging.Current.From
	zone := zoneOf(e.Tariff)
	if e.ReadyBy.IsZero() {
		return DefaultReadyBy, zone
	}

	return wallOf(flex.Intent{ReadyBy: e.ReadyBy}, zone), zone
}

// trigger returns the trigger of the supposed plan: the market if only prices are supposed, as
// if they had not changed the schedule recently; else an event.
func (q *Question) trigger() Trigger {
	intended := q.Need != nil || q.ReadyByLocal != nil || q.MayChargePeak != nil
	given := q.Mode != "" || q.Tariff != nil || q.Power > 0
	if len(q.Prices) == 0 || intended || given {
		return ByEvent
	}

	return ByMarket
}

// apply returns the inputs with the suppositions of the question. A supposed need counts
// from now on.
func (q *Question) apply(e store.PlanInputs, from time.Time) store.PlanInputs {
	wall := wallOf(flex.Intent{ReadyBy: e.ReadyBy}, zoneOf(e.Tariff))

	if q.Tariff != nil {
		e.Tariff = *q.Tariff
	}

	if q.ReadyByLocal != nil {
		wall = *q.ReadyByLocal
	}

	if q.ReadyByLocal != nil || q.Tariff != nil {
		e.ReadyBy = tariff.NextTimeOfDay(from, wall, zoneOf(e.Tariff))
	}

	if q.Need != nil {
		e.Need, e.Delivered = *q.Need, 0
	}

	if q.MayChargePeak != nil {
		e.MayChargePeak = *q.MayChargePeak
	}

	if q.Mode != "" {
		e.Mode = q.Mode
	}

	if q.Power > 0 {
		e.Power, e.Learned = q.Power, nil
	}

	return e
}

// overlay replaces known prices by supposed ones.
func overlay(known, supposed []flex.PricedPeriod) []flex.PricedPeriod {
	if len(supposed) == 0 {
		return known
	}

	at := map[flex.Period]flex.PricedPeriod{}
	for _, p := range append(slices.Clone(known), supposed...) {
		at[p.Period] = p
	}

	out := make([]flex.PricedPeriod, 0, len(at))
	for _, p := range at {
		out = append(out, p)
	}

	slices.SortFunc(out, func(a, b flex.PricedPeriod) int {
		return a.Period.Sub(b.Period)
	})

	return out
}
