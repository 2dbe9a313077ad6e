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

// orderWeight is the part of a market price that orders half-hours of one household's price.
const orderWeight = 1e-4

// dischargeSlack is by how many watt-hours a car may miss the charge that it is to hold.
const dischargeSlack = 10

// Discharging compares what a car discharges by a new schedule with what it discharges by the
// one in force.
type Discharging struct {
	Steps      []flex.Step // what it may take, where it discharges something
	Discharges []flex.Step
	// what it saves beside the schedule in force
	Saving flex.MicroPounds
	// the schedule in force would leave the car short, or discharge more than it may
	Wrong bool
}

// planDischarge plans when a car discharges, starting from its plan without discharging, and
// notes it among the inputs of the schedule. It returns nil for a car that may not discharge.
func (s *Service) planDischarge(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	e *store.PlanInputs,
	alone *Candidate,
	u *limits,
) (*Discharging, error) {
	to := e.Discharge

	if to == nil {
		return nil, nil
	}

	to.Why = chargesOnly(e, besideAlone(c, u), alone.Problem.From)

	if to.Why != "" {
		return nil, nil
	}

	most, err := exportLeft(ctx, tx, c)
	if err != nil {
		return nil, err
	}

	q, err := dischargeProblem(ctx, tx, c, to, alone)
	if err != nil {
		return nil, err
	}

	to.Why = cannotDischarge(q, c.Export, most)

	if to.Why != "" {
		return nil, nil
	}

	q.Most = min(q.Most, most)
	to.Why, err = confineToCaps(ctx, tx, c.Asset.ID, u, alone, q)
	if err != nil || to.Why != "" {
		return nil, err
	}

	given := s.solveDischarge(ctx, c, to, q)
	if u.paced(alone, given) {
		*to = *to.ChargedAlone()
		to.Why = dischargePaced
		given = nil
	}

	return given, nil
}

// cannotDischarge says why a car cannot discharge at any price, given what its site may export
// and what other cars leave of that; empty if it can.
func cannotDischarge(q *discharge.Problem, export, most flex.Watts) string {
	switch {
	case q.Most < discharge.Least:
		return dischargeWeak
	case export < discharge.Least:
		return dischargeNoExport
	case most < discharge.Least:
		return dischargeOthers
	case len(q.Rates) == 0:
		return dischargeUnpriced
	}

	return ""
}

// noGain is why discharging does not pay a car that could.
func noGain(q *discharge.Problem) string {
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

// solveDischarge plans a car that may discharge, and checks the plan against the laws of
// discharging. A plan that breaks one is not sent.
func (s *Service) solveDischarge(
	ctx context.Context,
	c *store.PlanningState,
	to *store.Discharge,
	q *discharge.Problem,
) *Discharging {
	plan := discharge.Solve(q)

	if law := checkDischarge(q, &plan); law != nil {
		s.refuse(ctx, c.Asset.ID, law)
		to.Why = dischargeRefused

		return nil
	}

	if plan.Worth(q) >= DischargeMinSaving {
		recordDischarge(to, q, &plan)

		return dischargingBeside(q, &plan, &c.Current, spareAlone(q, to))
	}

	to.Why = noGain(q)
	alone := discharge.Plan{
		Steps: q.Alone,
		Cost:  plan.Cost + plan.Saves,
	}

	return dischargingBeside(q, &alone, &c.Current, spareAlone(q, to))
}

// recordDischarge writes what a car discharges into the inputs of its schedule.
func recordDischarge(to *store.Discharge, q *discharge.Problem, plan *discharge.Plan) {
	to.Discharges = plan.Discharges
	to.Saves = plan.Saves
	played := q.Play(plan.Steps, plan.Discharges)

	for i := range played.Parts {
		part := &played.Parts[i]
		to.Parts = append(to.Parts, store.DischargedPart{
			From:   part.Start(),
			Energy: flex.WattHours(part.Energy),
			Price:  part.Sell,
			Back:   plan.Back,
		})
	}
}

// spareAlone is how many watt-hours more than it needs a car gets by its plan without
// discharging: less than a minute's charge.
func spareAlone(q *discharge.Problem, to *store.Discharge) float64 {
	if q.Kept || to.Target == 0 {
		return 0
	}

	end := q.Play(q.Alone, nil).End
	most := float64(q.Charge) / 60 * discharge.Efficiency

	return min(most, max(0, end-float64(to.Target)))
}

// dischargingBeside compares a plan with the schedule in force.
func dischargingBeside(
	q *discharge.Problem,
	plan *discharge.Plan,
	current *store.Schedule,
	spare float64,
) *Discharging {
	g := &Discharging{Discharges: plan.Discharges}

	if len(plan.Discharges) > 0 {
		g.Steps = plan.Steps
	}

	discharged := dischargesAhead(current, q.From)
	old := *plan
	old.Steps, old.Discharges = current.Charging(), discharged
	before := q.Play(old.Steps, old.Discharges)
	g.Saving = flex.MicroPounds((before.Cost - plan.Cost) * 10_000)
	g.Wrong = len(discharged) > 0 && checkDischargeSparing(q, &old, spare) != nil

	return g
}

// checkDischarge checks a plan against the laws of discharging.
func checkDischarge(q *discharge.Problem, plan *discharge.Plan) error {
	return checkDischargeSparing(q, plan, 0)
}

// checkDischargeSparing is checkDischarge for a car that needs some watt-hours less than it
// gets without discharging.
func checkDischargeSparing(
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

// exportable is what a car may discharge in each time of its stay.
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

// dischargeProblem is the problem of a car that may discharge. It has no rates where no prices
// are known.
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
	own.Rates, err = rateCar(ctx, tx, c, p, q)

	return q, err
}

// rateCar says what a kWh costs and earns the household of a car. Past the known rates it
// costs their mean, and earns nothing. The rates of a fixed tariff are returned.
func rateCar(
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

	order := orders(p.Prices)

	for i, at := range periods {
		known := i < len(r.buy)
		q.Rates = append(q.Rates, discharge.Rate{
			Period: at,
			Buy:    valueOr(known, r.buy, i, mean),
			Sell:   valueOr(known, r.sell, i, 0),
			Order:  order[at],
		})
	}

	return r.used(), nil
}

// used are the rates of a fixed tariff as a schedule keeps them.
func (r *ratings) used() []store.RateUsed {
	var used []store.RateUsed
	for _, in := range r.fixed {
		used = append(used, store.RateUsed(in))
	}

	return used
}

// orders is a small weight that orders half-hours of the same price; it is never below zero.
func orders(ps []flex.PricedPeriod) map[flex.Period]float64 {
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
