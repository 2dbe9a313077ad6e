package certificate

import (
	"math"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/piecewise"
	"flexd/internal/lab/slots"
)

// Proof shows that a plan's lower bound is one. Whatever stands in it, a checker can work
// a bound out from it that holds; only a good one gives the bound that the plan says. One
// of the fields is set, or none where the threshold price of the plan proves it.
type Proof struct {
	// Worth is what a stored kWh is worth after each slot of a battery whose slots all
	// have a convex cost.
	Worth []float64
	// Stored is, for any battery, the cost from each slot on, and at the end, by what is
	// stored before it.
	Stored []Potential
	// Wanted is the cost from each slot on, and at the end, of a car that takes its least
	// power or more or nothing: by how many slots it has charged without a break, as far
	// as the least run, and by the energy that it still wants.
	Wanted [][]Potential
	// Missed is, where a need cannot be met, the same for how far the energy taken must
	// be from it instead of the cost.
	Missed [][]Potential
	// Modes is the cost from each slot on, and at the end, of a battery that takes modes:
	// by the mode before, and the watt-hours stored.
	Modes [][]Potential
}

// Potential is a continuous function made of straight lines: V[i] at X[i], X rising.
type Potential struct {
	X []float64
	V []float64
}

// potential is the curve in the units of a proof, its own for the next plan to overwrite.
// Points that fall together by rounding become one.
func potential(c *piecewise.Curve, scale, shift float64) Potential {
	var p Potential
	for i, x := range c.X {
		x = x*scale + shift
		if n := len(p.X); n > 0 && x <= p.X[n-1] {
			p.V[n-1] = min(p.V[n-1], c.V[i])
			continue
		}
		p.X, p.V = append(p.X, x), append(p.V, c.V[i])
	}

	return p
}

// OfStorage makes the proof of the bound of what SolveStorage plans: the worth of what is
// stored where that is enough, else the values that SolveStorage itself goes back by.
func OfStorage(w *battery.Solver, p *battery.Storage) Proof {
	marginal := make([]float64, len(p.Import))
	if w.Duals(p, marginal) {
		return Proof{Worth: marginal}
	}

	values := w.CostToGo(p)
	proof := Proof{Stored: make([]Potential, len(values))}
	for t := range values {
		proof.Stored[t] = potential(&values[t], 1, p.Init)
	}

	return proof
}

// astray is what a kWh beyond or short of the need counts in a proof: so much that a
// path that misses the need by a tenth of a watt-hour pays a pound, and not so much that rounding counts.
const astray = 1e6

// OfSlots makes the proof of the bound of what LeastPower or Switch plans, f: the cost
// to go by slot, run and energy still wanted, worked out backward as a battery's is.
func OfSlots(p *slots.Slots, f slots.Result) Proof {
	q := taking{
		p:     p,
		price: p.Price,
		start: p.StartCost,
		over:  astray,
		under: astray,
	}

	var proof Proof
	proof.Wanted = q.values(f.Energy, 0)
	if f.Met {
		return proof
	}

	q = taking{
		p:     p,
		price: make([]float64, len(p.Price)),
		over:  1,
		under: 1e8,
	}

	if f.Energy < p.Need {
		q.over, q.under = 0, 1
	}

	all := 0.0
	for _, full := range p.Full {
		all += max(0, full)
	}

	proof.Missed = q.values(p.Need, all)

	return proof
}

// taking is the cost to go of a car that takes its least power or more or nothing. Its
// curves are by watt-hours: points that lie closer than SameX become one, and where the
// slope is astray that may not be seen.
type taking struct {
	p           *slots.Slots
	price       []float64
	start       float64
	over, under float64 // per kWh taken too much, and too little

	s         piecewise.Convolver
	low, high float64 // what may be wanted, in Wh
	flat      piecewise.Curve
	on        piecewise.Curve
	off       piecewise.Curve
}

// setReach sets between what the curves lie in n slots with runs of at least m, and what no
// plan costs more than.
func (q *taking) setReach(n, m int, need, beyond float64) {
	most, widest := 1+max(0, need)+beyond, 0.0
	for t := range n {
		most += 2 * (math.Abs(q.price[t])*max(0, q.p.Full[t]) + q.start)
		widest = max(widest, q.p.Full[t])
	}

	q.low = -1000 * (beyond + float64(min(m, n)+1)*widest + slots.Trickle)
	q.high = 1000 * max(need, slots.Trickle)
	q.flat = piecewise.Curve{
		X: []float64{q.low, q.high},
		V: []float64{most, most},
	}
}

// values is the cost to go before each slot and at the end, for each run, of what is
// wanted from need down to -beyond. It is cut off above what any plan costs.
func (q *taking) values(need, beyond float64) [][]Potential {
	p := q.p
	n, m := len(p.Price), max(1, p.MinRun)
	for n > 0 && p.Full[n-1] <= 0 {
		n--
	}

	q.setReach(n, m, need, beyond)
	end := piecewise.Curve{
		X: []float64{q.low, 0, q.high},
		V: []float64{-q.low * q.over / 1000, 0, q.high * q.under / 1000},
	}

	next, now := make([]piecewise.Curve, m+1), make([]piecewise.Curve, m+1)
	out := make([][]Potential, n+1)

	for r := range next {
		piecewise.Lower(&next[r], &end, &q.flat)
	}

	for t := n; ; t-- {
		out[t] = make([]Potential, m+1)
		for r := range next {
			out[t][r] = potential(&next[r], 1e-3, 0)
		}

		if t == 0 {
			return out
		}

		for r := range now {
			q.before(t-1, r, m, next, &now[r])
		}
		next, now = now, next
	}
}

// before works out the cost to go before slot t after a run of r slots, capped at the
// least run of m.
func (q *taking) before(
	t, r, m int,
	next []piecewise.Curve,
	now *piecewise.Curve,
) {
	now.Reset()
	now.X, now.V = append(now.X, q.flat.X...), append(now.V, q.flat.V...)
	if full := q.p.Full[t]; full > 0 {
		least := leastOn(q.p, t)
		cost := least * q.price[t]
		if r == 0 {
			cost += q.start
		}

		q.s.Convolve(&q.off, &next[min(r+1, m)], piecewise.Line{
			From:  1000 * least,
			To:    1000 * full,
			Full:  cost,
			Slope: q.price[t] / 1000,
		})

		piecewise.Clip(&q.on, &q.off, q.low, q.high)
		piecewise.Lower(now, &q.on, &q.flat)
	}

	if r == 0 || r == m {
		piecewise.Lower(&q.off, now, &next[0])
		*now, q.off = q.off, *now
	}
}

// leastOn is what slot t takes at least if it is on.
func leastOn(p *slots.Slots, t int) float64 {
	var least float64
	if p.Least != nil {
		least = p.Least[t]
	}
	if p.StartCost > 0 || p.MinRun > 1 {
		least = max(least, slots.Trickle)
	}

	return min(least, p.Full[t])
}
