package site

import (
	"flexd/internal/engine/battery"
	"flexd/internal/engine/buffer"
)

// polisher improves a plan battery by battery. Each battery is planned exactly (package
// battery), with what the other devices do as the home's load.
type polisher struct {
	solver  battery.Solver
	problem battery.Storage
	load    []float64
	fixed   []bool
}

// polishRounds is how often all batteries are planned again, in turn.
const polishRounds = 3

// polish plans the batteries of a plan again, unless it is proven to be the best one, and uses
// the result if it is cheaper. With several batteries it also starts from batteries that do
// nothing, with each of them first.
func (s *search) polish() {
	if s.goal != leastCost || !s.hasPlan || s.best.cost-s.bound <= 2e-7*max(1, s.best.gross) {
		return
	}

	for k := range s.m.p.Batteries {
		if s.m.p.Batteries[k].Ordered != nil {
			return // this use of package battery cannot plan such slots
		}
	}

	var q polisher
	s.trial.copy(&s.plan)
	s.replan(&q, 0)

	if len(s.m.p.Batteries) < 2 {
		return
	}

	for first := range s.m.p.Batteries {
		s.trial.copy(&s.plan)

		for _, x := range s.trial.Battery {
			clear(x)
		}

		s.replan(&q, first)
	}
}

// replan plans the batteries of the trial plan in turn, beginning with one of them.
func (s *search) replan(q *polisher, first int) {
	n := len(s.m.p.Batteries)

	for range polishRounds {
		for i := range n {
			k := (first + i) % n
			q.buildProblem(s.m.p, &s.trial, k)
			q.solver.SolveStorage(&q.problem, s.trial.Battery[k])
		}

		s.keepCheaper()
	}
}

// keepCheaper replaces the best plan by the trial plan if that is valid and costs less.
func (s *search) keepCheaper() {
	total := s.m.p.evaluate(&s.trial, s.net)

	if total.worst > shortfallTolerance || total.cost >= s.best.cost {
		return
	}

	s.best = total
	s.plan.copy(&s.trial)
}

// buildProblem states the problem of one battery. What all other devices draw is the home's
// load. The battery may not discharge in slots in which the rule applies that batteries do not
// serve cars.
func (q *polisher) buildProblem(p *Problem, a *Plan, k int) {
	q.setOtherDraws(p, a, k)

	b := &p.Batteries[k]
	q.problem = battery.Storage{
		Import:       p.Import,
		Export:       p.Export,
		Load:         q.load,
		PV:           p.PV,
		Curtail:      p.Curtailable,
		Min:          b.Min,
		Max:          b.Max,
		Init:         b.Init,
		Charge:       b.Charge * p.Hours,
		Discharge:    b.Discharge * p.Hours,
		Held:         q.fixed,
		ChargeEff:    b.ChargeEff,
		DischargeEff: b.Efficient,
		Wear:         b.Wear,
		Terminal:     b.Terminal,
		ImportLimit:  p.GridImport * p.Hours,
		ExportLimit:  p.GridExport * p.Hours,
	}
}

// setOtherDraws sets what all devices but one battery draw, and the slots in which that
// battery must not discharge.
func (q *polisher) setOtherDraws(p *Problem, a *Plan, k int) {
	q.load = buffer.Resize(q.load, p.Slots())
	q.fixed = buffer.Resize(q.fixed, p.Slots())
	clear(q.fixed)

	for t := range q.load {
		q.load[t] = p.serves(a, t)

		for i, x := range a.Battery {
			if i != k {
				q.load[t] += x[t]
			}
		}

		for _, x := range a.Car {
			q.load[t] += x[t]
			q.fixed[t] = q.fixed[t] || p.NoBatteryToCar && x[t] > on
		}
	}
}

// copy copies another plan of the same site.
func (a *Plan) copy(from *Plan) {
	for k := range from.Battery {
		copy(a.Battery[k], from.Battery[k])
	}

	for k := range from.Car {
		copy(a.Car[k], from.Car[k])
	}

	copy(a.Tank, from.Tank)
	copy(a.Heat, from.Heat)
}
