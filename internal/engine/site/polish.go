package site

import (
	"flexd/internal/engine/battery"
	"flexd/internal/engine/buffer"
)

// polisher improves a plan battery by battery: each is planned exactly (package battery) beside what the other devices do.
type polisher struct {
	solver  battery.Solver
	problem battery.Storage
	load    []float64
	fixed   []bool
}

// polishRounds is how often all batteries are planned again, one after the other.
const polishRounds = 3

// polish plans the batteries of a plan that is not proven to be the best one again, and keeps what is cheaper. Where there
// are several it also begins from batteries that do nothing, with each of them first.
func (s *search) polish() {
	if s.goal != leastCost || !s.hasPlan || s.best.cost-s.bound <= 2e-7*max(1, s.best.gross) {
		return
	}

	for k := range s.m.p.Batteries {
		if s.m.p.Batteries[k].Ordered != nil {
			return // package battery knows no such slots here
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

// replan plans the batteries of the trial one after the other, from one on.
func (s *search) replan(q *polisher, first int) {
	n := len(s.m.p.Batteries)

	for range polishRounds {
		for i := range n {
			k := (first + i) % n
			q.pose(s.m.p, &s.trial, k)
			q.solver.SolveStorage(&q.problem, s.trial.Battery[k])
		}

		s.keepCheaper()
	}
}

// keepCheaper takes the trial if it is a plan and costs less than the best one.
func (s *search) keepCheaper() {
	total := s.m.p.evaluate(&s.trial, s.net)

	if total.worst > shortfallTolerance || total.cost >= s.best.cost {
		return
	}

	s.best = total
	s.plan.copy(&s.trial)
}

// pose writes down one battery, to which all that other devices do is the home's load. It discharges nothing where it
// would have to keep the rule that batteries do not serve cars.
func (q *polisher) pose(p *Problem, a *Plan, k int) {
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

// setOtherDraws fills what all but one battery draw, and the slots in which that gives nothing.
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

// copy makes a plan the same as another of its site.
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
