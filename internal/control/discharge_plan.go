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

// dischargeSlack is how far, in watt-hours, what a car is to hold may be missed.
const dischargeSlack = 10

// Giving is what a car's new schedule gives beside what the one in force gives.
type Giving struct {
	Steps []flex.Step // what it may take, where it gives something
	Gives []flex.Step
	// what it saves beside the schedule in force
	Saving flex.MicroPounds
	// by the schedule in force the car would come out short, or give what it may not
	Wrong bool
}

// planDischarge plans what a car that may discharge gives, from its plan that charges alone, and notes it in what the
// schedule is made from. It is nil for a car that may not.
func (s *Service) planDischarge(
	ctx context.Context,
	tx *store.Tx,
	c *store.Charging,
	e *store.Effective,
	alone *Candidate,
	u *underCaps,
) (*Giving, error) {
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

	to.Why = cannotGive(q, c.Export, most)

	if to.Why != "" {
		return nil, nil
	}

	q.Most = min(q.Most, most)

	return s.solveDischarge(ctx, c, to, q), nil
}

// cannotGive is why a car can give nothing, whatever that would earn: its site may export so much, and beside other cars
// so much; empty if it can.
func cannotGive(q *discharge.Problem, export, most flex.Watts) string {
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

// noGain is why giving does not pay a car that could.
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

// solveDischarge plans a car that may give, and holds the plan against the laws of discharging. A plan that breaks one is not
// sent.
func (s *Service) solveDischarge(
	ctx context.Context,
	c *store.Charging,
	to *store.Discharge,
	q *discharge.Problem,
) *Giving {
	plan := discharge.Solve(q)

	if law := checkDischarge(q, &plan); law != nil {
		s.refuse(ctx, c.Asset.ID, law)
		to.Why = dischargeRefused

		return nil
	}

	if plan.Worth(q) >= DischargeMinSaving {
		note(to, q, &plan)

		return givingBeside(q, &plan, &c.Current, spareAlone(q, to))
	}

	to.Why = noGain(q)
	alone := discharge.Plan{
		Steps: q.Alone,
		Cost:  plan.Cost + plan.Saves,
	}

	return givingBeside(q, &alone, &c.Current, spareAlone(q, to))
}

// note keeps what a car gives in what its schedule is made from.
func note(to *store.Discharge, q *discharge.Problem, plan *discharge.Plan) {
	to.Gives = plan.Gives
	to.Saves = plan.Saves
	played := q.Play(plan.Steps, plan.Gives)

	for i := range played.Parts {
		part := &played.Parts[i]
		to.Parts = append(to.Parts, store.GivenPart{
			From:   part.Start(),
			Energy: flex.WattHours(part.Energy),
			Price:  part.Sell,
			Back:   plan.Back,
		})
	}
}

// spareAlone is what a car holds by charging alone in watt-hours that it does not need: less than a minute's charge.
func spareAlone(q *discharge.Problem, to *store.Discharge) float64 {
	if q.Kept || to.Target == 0 {
		return 0
	}

	end := q.Play(q.Alone, nil).End
	most := float64(q.Charge) / 60 * discharge.Efficiency

	return min(most, max(0, end-float64(to.Target)))
}

// givingBeside holds a plan beside the schedule in force.
func givingBeside(
	q *discharge.Problem,
	plan *discharge.Plan,
	current *store.Schedule,
	spare float64,
) *Giving {
	g := &Giving{Gives: plan.Gives}

	if len(plan.Gives) > 0 {
		g.Steps = plan.Steps
	}

	given := givesAhead(current, q.From)
	old := *plan
	old.Steps, old.Gives = current.Charging(), given
	before := q.Play(old.Steps, old.Gives)
	g.Saving = flex.MicroPounds((before.Cost - plan.Cost) * 10_000)
	g.Wrong = len(given) > 0 && holdDischarge(q, &old, spare) != nil

	return g
}

// checkDischarge holds a plan against the laws of discharging.
func checkDischarge(q *discharge.Problem, plan *discharge.Plan) error {
	return holdDischarge(q, plan, 0)
}

// holdDischarge is checkDischarge where so much that is held by charging alone is not needed.
func holdDischarge(
	q *discharge.Problem,
	plan *discharge.Plan,
	spare float64,
) error {
	if len(plan.Gives) == 0 {
		return nil
	}

	return check.Discharge(check.Discharging{
		From:     q.From,
		ReadyBy:  q.ReadyBy,
		Steps:    plan.Steps,
		Gives:    plan.Gives,
		Charge:   q.Charge,
		Most:     q.Most,
		Alone:    q.Alone,
		Spare:    spare,
		Stored:   q.Stored,
		Capacity: q.Capacity,
		Reserve:  q.Reserve,
		In:       discharge.Efficiency,
		Out:      discharge.Efficiency,
		Open:     q.Open,
		Export:   exportable(q),
		Slack:    dischargeSlack,
	})
}

// exportable is what a car may give in each time of its stay.
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

// dischargeProblem is the problem of a car that may discharge. It has no rates where no prices are known.
func dischargeProblem(
	ctx context.Context,
	tx *store.Tx,
	c *store.Charging,
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

// rateCar says what a kWh costs and earns the household of a car. Past the known rates it costs their mean, and
// earns nothing. The rates of a fixed tariff are returned.
func rateCar(
	ctx context.Context,
	tx *store.Tx,
	c *store.Charging,
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

	r, err := rates(ctx, tx, b, org.Settings, periods)
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

// orders is what orders half-hours of one price: little, and none below zero.
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
