package site

import (
	"slices"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/buffer"
)

// slopes is the working memory for a site whose only device is a car that discharges.
type slopes struct {
	solver  battery.Solver
	problem battery.Storage
	net     []float64
	share   []float64
	closed  []bool
	least   []float64
}

// slopeCar plans a site whose only device is a car that discharges. Such a car is a battery
// that is present for a part of the time. It returns false if the site has a kind of limit
// that the slope method cannot plan, or if the main fuse binds: only the duals of the
// relaxation show what more fuse would be worth.
func (s *Solver) slopeCar(p *Problem, to *Plan) (Result, bool) {
	if !p.isSlopeCar() {
		return Result{}, false
	}

	least := p.Cars[0].leastReachV2G().shortfall
	q := &s.slopes
	q.buildProblem(p, least)

	found := q.solver.SolveStorage(&q.problem, q.net)

	if !found.Met {
		return Result{}, false
	}

	p.reset(to)

	for t, e := range q.net {
		to.Car[0][t] = roundToZero(e)
	}

	total := p.evaluate(to, q.net)

	// The slope method knows neither the fuse's worth nor the least shortfall, so check both.
	if total.worst > shortfallTolerance || total.shortfall > least+10*on || p.fuseBinds(q.net) {
		return Result{}, false
	}

	r := resultOf(total, found.Bound)
	r.Nodes = 1

	if !r.Met {
		r.Limits = p.limits(to)
	}

	return r, r.Optimal
}

// buildProblem states the site as a battery that is present for a part of each slot.
func (q *slopes) buildProblem(p *Problem, short float64) {
	c, v := &p.Cars[0], p.Cars[0].V2G
	q.setPresence(p, max(v.Reserve, v.Target-short))

	q.problem = battery.Storage{
		Import:       p.Import,
		Export:       p.Export,
		Load:         p.Load,
		PV:           p.PV,
		Curtail:      p.Curtailable,
		Min:          v.Reserve,
		Max:          v.Max,
		Init:         v.Arrival,
		MinAt:        q.least,
		Charge:       c.Max * p.Hours,
		Discharge:    v.Discharge * p.Hours,
		Share:        q.share,
		Closed:       q.closed,
		ChargeEff:    v.ChargeEff,
		DischargeEff: v.Efficient,
		Wear:         v.Wear,
		ImportLimit:  p.GridImport * p.Hours,
		ExportLimit:  p.GridExport * p.Hours,
	}
}

// setPresence sets when the car is present, and the least that it must store after each slot.
func (q *slopes) setPresence(p *Problem, atEnd float64) {
	n := p.Slots()
	c := &p.Cars[0]
	q.net = buffer.Resize(q.net, n)
	q.share, q.least = buffer.Resize(q.share, n), buffer.Resize(q.least, n)
	q.closed = nil

	if c.OffPeak != nil {
		q.closed = make([]bool, n)
		for t := range q.closed {
			q.closed[t] = !c.OffPeak[t]
		}
	}

	for t, hours := range c.Available {
		q.share[t], q.least[t] = hours/p.Hours, c.V2G.Reserve
	}

	q.least[n-1] = atEnd
}

// fuseBinds reports whether the main fuse is fully used in some slot.
func (p *Problem) fuseBinds(net []float64) bool {
	return slices.Max(net) >= p.GridImport*p.Hours-energyTolerance
}

// isSlopeCar reports whether the site's only device is a car that discharges. The car must
// have no start cost, no least power and no peak energy, and the grid must be able to take
// what the roof generates.
func (p *Problem) isSlopeCar() bool {
	if len(p.Cars) != 1 || len(p.Batteries) > 0 {
		return false
	}

	if p.Tank != nil || p.Heat != nil {
		return false
	}

	c := &p.Cars[0]

	if c.V2G == nil || c.StartCost > 0 {
		return false
	}

	if c.OffPeak != nil && c.PeakToo {
		return false
	}

	v := c.V2G

	if c.Min > 0 || v.MinDischarge > 0 || v.Arrival < v.Reserve {
		return false
	}

	for t := range p.Load {
		excess := p.PV[t] - p.Load[t] - p.GridExport*p.Hours

		if excess > 0 && !p.Curtailable {
			return false
		}
	}

	return true
}
