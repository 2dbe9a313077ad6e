package control

import (
	"context"
	"fmt"
	"slices"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/check"
	"flexd/internal/engine/discharge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// orderWeight scales market prices so that they only decide between half-hours for which the
// household pays the same.
const orderWeight = 1e-4

// dischargeSlack is by how many watt-hours a car may miss its target charge.
const dischargeSlack = 10

// Discharging compares the discharge of a new plan with that of the schedule in force.
type Discharging struct {
	Steps      []flex.Step // the limits of charging, if the plan discharges
	Discharges []flex.Step
	// what the plan saves compared with the schedule in force
	Saving flex.MicroPounds
	// the schedule in force would leave the car short, or discharge more than it may
	Infeasible bool
}

// planDischarge plans when a car that is planned on its own discharges, starting from its plan
// of charging only. It records the result, or the reason for none, in the inputs of the
// schedule. It returns nil for a car that may not discharge.
func (s *Service) planDischarge(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	e *store.PlanInputs,
	alone *Candidate,
	u *limits,
) (*Discharging, error) {
	d := e.Discharge

	if d == nil {
		return nil, nil
	}

	d.Why = chargeOnlyReason(e, sharedReason(c, u), alone.Problem.From)

	if d.Why != "" {
		return nil, nil
	}

	most, err := exportHeadroom(ctx, tx, c)
	if err != nil {
		return nil, err
	}

	q, err := dischargeProblem(ctx, tx, c, d, alone)
	if err != nil {
		return nil, err
	}

	d.Why = noDischargeReason(q, c.Export, most)

	if d.Why != "" {
		return nil, nil
	}

	q.Most = min(q.Most, most)
	d.Why, err = limitToCaps(ctx, tx, c.Asset.ID, u, alone, q)
	if err != nil || d.Why != "" {
		return nil, err
	}

	plan := s.solveDischarge(ctx, c, d, q)
	if u.exceedsStartRate(alone, plan) {
		*d = *d.ChargedAlone()
		d.Why = dischargeStartRate
		plan = nil
	}

	return plan, nil
}

// noDischargeReason says why a car cannot discharge at any price, given the export limit of
// its site and most, which is what the other cars leave of it; empty if it can.
func noDischargeReason(q *discharge.Problem, export, most flex.Watts) string {
	switch {
	case q.Most < discharge.Least:
		return dischargeLowPower
	case export < discharge.Least:
		return dischargeNoExport
	case most < discharge.Least:
		return dischargeOtherCars
	case len(q.Rates) == 0:
		return dischargeNoPrices
	}

	return ""
}

// noGainReason says why discharging does not pay for a car that could do it. It solves the
// problem once more without the reserve, to find out whether that is the cause.
func noGainReason(q *discharge.Problem) string {
	if !q.HasTime() {
		return dischargeNoTime
	}

	if !q.HasMargin() {
		return dischargeNoMargin
	}

	free := *q
	free.Reserve = 0

	if plan := discharge.Solve(&free); plan.Worth(&free) >= DischargeMinSaving {
		return dischargeReserve
	}

	return dischargeNoGain
}

// solveDischarge solves a car's discharge problem and checks the plan against the rules of
// engine/check. A plan that breaks one is not used.
func (s *Service) solveDischarge(
	ctx context.Context,
	c *store.PlanningState,
	d *store.Discharge,
	q *discharge.Problem,
) *Discharging {
	plan := discharge.Solve(q)

	if law := checkDischarge(q, &plan); law != nil {
		s.refuse(ctx, c.Asset.ID, law)
		d.Why = dischargeCheckFailed

		return nil
	}

	if plan.Worth(q) >= DischargeMinSaving {
		recordDischarge(d, q, &plan)

		return compareDischarge(q, &plan, &c.Current, spareEnergy(q, d))
	}

	d.Why = noGainReason(q)
	alone := discharge.Plan{
		Steps: q.Alone,
		Cost:  plan.Cost + plan.Saves,
	}

	return compareDischarge(q, &alone, &c.Current, spareEnergy(q, d))
}

// recordDischarge writes what a car discharges into the inputs of its schedule.
func recordDischarge(d *store.Discharge, q *discharge.Problem, plan *discharge.Plan) {
	d.Discharges = plan.Discharges
	d.Saves = plan.Saves
	played := q.Play(plan.Steps, plan.Discharges)

	for i := range played.Parts {
		part := &played.Parts[i]
		d.Parts = append(d.Parts, store.DischargedPart{
			From:   part.Start(),
			Energy: flex.WattHours(part.Energy),
			Price:  part.Sell,
			Back:   plan.Back,
		})
	}
}

// spareEnergy is by how many watt-hours the plan of charging only exceeds the target, because
// limits are whole minutes: at most a minute's charge. The schedule in force may miss the
// target by as much.
func spareEnergy(q *discharge.Problem, d *store.Discharge) float64 {
	if q.Kept || d.Target == 0 {
		return 0
	}

	end := q.Play(q.Alone, nil).End
	most := float64(q.Charge) / 60 * discharge.Efficiency

	return min(most, max(0, end-float64(d.Target)))
}

// compareDischarge compares a plan with the schedule in force, both from now on and by the
// same prices. spare is what the schedule in force may miss the target by, in Wh.
func compareDischarge(
	q *discharge.Problem,
	plan *discharge.Plan,
	current *store.Schedule,
	spare float64,
) *Discharging {
	g := &Discharging{Discharges: plan.Discharges}

	if len(plan.Discharges) > 0 {
		g.Steps = plan.Steps
	}

	discharged := dischargeSteps(current, q.From)
	old := *plan
	old.Steps, old.Discharges = current.Charging(), discharged
	before := q.Play(old.Steps, old.Discharges)
	g.Saving = flex.MicroPounds((before.Cost - plan.Cost) * 10_000)
	g.Infeasible = len(discharged) > 0 && checkDischargeWithSpare(q, &old, spare) != nil

	return g
}

// checkDischarge checks a plan against the rules of discharging.
func checkDischarge(q *discharge.Problem, plan *discharge.Plan) error {
	return checkDischargeWithSpare(q, plan, 0)
}

// checkDischargeWithSpare is checkDischarge for a car that may miss its target by spare
// watt-hours.
func checkDischargeWithSpare(
	q *discharge.Problem,
	plan *discharge.Plan,
	spare float64,
) error {
	if len(plan.Discharges) == 0 {
		return nil
	}

	return check.Discharge(check.Discharging{
		From:       q.From,
		ReadyBy:    q.ReadyBy,
		Steps:      plan.Steps,
		Discharges: plan.Discharges,
		Charge:     q.Charge,
		Most:       q.Most,
		Alone:      q.Alone,
		Spare:      spare,
		Stored:     q.Stored,
		Capacity:   q.Capacity,
		Reserve:    q.Reserve,
		In:         discharge.Efficiency,
		Out:        discharge.Efficiency,
		Open:       q.Open,
		Export:     exportable(q),
		Slack:      dischargeSlack,
	})
}

// exportable returns the most that a car may discharge, as steps over its stay: its power
// except in closed half-hours.
func exportable(q *discharge.Problem) []flex.Step {
	var steps []flex.Step
	from := q.From

	for _, s := range q.Shut {
		if s.From.After(from) {
			steps = append(steps, flex.Step{
				Span:  flex.Span{From: from, To: s.From},
				Limit: q.Most,
			})
		}

		from = flex.Later(from, s.To)
	}

	if q.ReadyBy.After(from) {
		steps = append(steps, flex.Step{
			Span:  flex.Span{From: from, To: q.ReadyBy},
			Limit: q.Most,
		})
	}

	return steps
}

// dischargeProblem builds the problem of a car that may discharge, from its plan of charging
// only. It has no rates if no prices are known.
func dischargeProblem(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	own *store.Discharge,
	alone *Candidate,
) (*discharge.Problem, error) {
	p := alone.Problem
	q := &discharge.Problem{
		From:     p.From,
		ReadyBy:  p.ReadyBy,
		Alone:    alone.Plan.Steps,
		Kept:     p.Mode == flex.Maximise,
		Open:     p.OffPeak,
		Charge:   p.Power,
		Most:     own.Power,
		Limit:    flex.FullLimit(p.Power),
		Stored:   float64(own.Stored),
		Capacity: float64(own.Capacity),
		Reserve:  float64(own.Reserve),
		Wear:     own.Wear,
		Turn:     DischargeTurn,
	}

	if p.Exact {
		q.Limit = p.Power
	}

	if p.AllOffPeak {
		q.Open = []flex.Span{{From: p.From, To: p.ReadyBy}}
	}

	var err error
	own.Rates, err = addRates(ctx, tx, c, p, q)

	return q, err
}

// addRates adds to the problem what a kWh costs and earns the household in each half-hour.
// Beyond the known rates a kWh costs their mean and earns nothing. It returns the rates of a
// fixed tariff.
func addRates(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	p *charge.Problem,
	q *discharge.Problem,
) ([]store.RateUsed, error) {
	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return nil, err
	}

	periods := periodsTo(flex.PeriodAt(p.From), p.ReadyBy)

	if len(periods) == 0 {
		return nil, nil
	}

	b := &store.Battery{
		SiteTariff: c.SiteTariff,
		Tariff:     c.Tariff,
	}

	r, err := periodRates(ctx, tx, b, org.Settings, periods)
	if err != nil {
		return nil, fmt.Errorf("read what a kWh costs: %w", err)
	}

	mean := 0.0

	for _, buy := range r.buy {
		mean += buy / float64(len(r.buy))
	}

	order := priceOrder(p.Prices)

	for i, at := range periods {
		known := i < len(r.buy)
		q.Rates = append(q.Rates, discharge.Rate{
			Period: at,
			Buy:    valueOr(known, r.buy, i, mean),
			Sell:   valueOr(known, r.sell, i, 0),
			Order:  order[at],
		})
	}

	return r.ratesUsed(), nil
}

// ratesUsed returns the rates of a fixed tariff in the form that is stored with a schedule.
func (r *ratings) ratesUsed() []store.RateUsed {
	var used []store.RateUsed
	for _, in := range r.fixed {
		used = append(used, store.RateUsed(in))
	}

	return used
}

// priceOrder returns a small weight for each half-hour, from the market price, which decides
// between half-hours of the same rate. It is never negative.
func priceOrder(ps []flex.PricedPeriod) map[flex.Period]float64 {
	order := map[flex.Period]float64{}
	known := slices.DeleteFunc(slices.Clone(ps), func(p flex.PricedPeriod) bool {
		return !p.Known
	})

	if len(known) == 0 {
		return order
	}

	least := slices.MinFunc(known, func(a, b flex.PricedPeriod) int {
		return int(a.Price - b.Price)
	})

	for _, p := range known {
		pence := (p.Price - least.Price).GBPPerMWh() / 10
		order[p.Period] = orderWeight * pence
	}

	return order
}
