package site

import (
	"slices"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/buffer"
)

// slopes is what a car that discharges, by itself, is planned with.
type slopes struct {
	solver  battery.Solver
	problem battery.Storage
	net     []float64
	share   []float64
	closed  []bool
	least   []float64
}

// slopeCar is a site of one car that discharges and nothing else: a battery that is there for a
// part of the time. It is false if a kind of limit
// is left that the slope method does not know, or if the main fuse binds, whose worth only
// the multipliers of the relaxation tell.
func (s *Solver) slopeCar(p *Problem, to *Plan) (Result, bool) {
	if !p.slopes() {
		return Result{}, false
	}

	least := p.Cars[0].leastReachV2G().shortfall
	q := &s.slopes
	q.pose(p, least)

	found := q.solver.SolveStorage(&q.problem, q.net)

	if !found.Met {
		return Result{}, false
	}

	p.renew(to)

	for t, e := range q.net {
		to.Car[0][t] = snap(e)
	}

	total := p.evaluate(to, q.net)

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

// pose writes the site down as a battery that is there for a part of each slot.
func (q *slopes) pose(p *Problem, short float64) {
	c, v := &p.Cars[0], p.Cars[0].V2G
	q.present(p, max(v.Reserve, v.Target-short))

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

// present fills when the car is there, and what it stores at least after each slot.
func (q *slopes) present(p *Problem, atEnd float64) {
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

// fuseBinds reports whether the main fuse is used in full in some slot.
func (p *Problem) fuseBinds(net []float64) bool {
	return slices.Max(net) >= p.GridImport*p.Hours-apart
}

// slopes reports whether the site is a car that discharges by itself, without a start cost, a
// least power or energy in peak time, and no roof is too much for the grid.
func (p *Problem) slopes() bool {
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
