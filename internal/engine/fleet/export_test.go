package fleet

import (
	"math"
	"slices"
)

// What the tests look at beside the package's own interface.

// Grid returns rows of zeros.
var Grid = grid

// Both runs a function for the two halves of a piece of work at once.
var Both = inParallel

// Most is what the car can take in slot t.
func (e *EV) Most(t int) float64 { return e.most(t) }

// Gap is the plan's gap to its bound, as a share of the turnover.
func (a *Plan) Gap() float64 { return (a.Cost - a.Bound) / max(a.Turnover, 1e-9) }

// All returns the energies of all cars, one behind the other.
func (k Energies) All() []float64 { return k.kwh }

// Clone returns a copy.
func (k Energies) Clone() Energies { return Energies{slices.Clone(k.at), slices.Clone(k.kwh)} }

// WithoutFirst is a plan that has lost its first car.
func (k Energies) WithoutFirst() Energies { return Energies{k.at[1:], k.kwh} }

// SolveLarge solves any fleet by prices from a sample, as Solve does a large one.
func SolveLarge(p *Problem, sampled int) Plan {
	s := &solver{p: p, tree: newTree(p), bound: math.Inf(-1), sampled: sampled}
	s.pricer = newPricer(p, s.tree)
	s.solveLarge()
	return s.answer()
}

// SolveWithoutPrices solves a fleet as if the barrier had failed, and returns the plan
// before and after it was improved.
func SolveWithoutPrices(p *Problem) (first, better Plan) {
	s := &solver{p: p, tree: newTree(p), bound: math.Inf(-1), sampled: sampleSize}
	s.pricer = newPricer(p, s.tree)
	nan := grid(len(s.tree.parent), p.Slots)
	nan[0][0] = math.NaN()
	s.prove(slices.Repeat([]float64{math.NaN()}, p.Slots), nan)
	s.fill()
	first = s.answer()
	first.EVs = first.EVs.Clone()
	first.Batteries = slices.Clone(first.Batteries)

	for i := range first.Batteries {
		first.Batteries[i] = slices.Clone(first.Batteries[i])
	}
	s.improve()
	return first, s.answer()
}

// BarrierCar is a car as the barrier sees it: the inverses of its slots, and that of its unserved need.
type BarrierCar struct {
	First   int
	Inverse []float64
	Rest    float64
}

// BarrierGroup is a group of cars without other groups, and what turns its load into a price.
type BarrierGroup struct {
	Cars                      []BarrierCar
	Theta, Rho, Change, Above []float64
}

// Answer is what the parent of the group sees of it, row by row, and its answer to a change of the price above.
func (g *BarrierGroup) Answer() (upward [][]float64, response, dmu []float64) {
	slots := len(g.Theta)
	var inv []float64
	var cars []barrierEV
	for _, c := range g.Cars {
		cars = append(cars, barrierEV{at: len(inv), n: len(c.Inverse), first: c.First})
		inv = append(append(inv, c.Inverse...), c.Rest)
	}

	v := node{
		theta:    g.Theta,
		rho:      g.Rho,
		r:        g.Change,
		m:        newMatrix(slots),
		dmu:      make([]float64, slots),
		response: make([]float64, slots),
		work:     make([]float64, slots),
		cars:     newFewCars(cars, inv, slots),
	}

	v.fold(newMatrix(slots))
	v.answer(g.Above)
	for t := range slots {
		upward = append(upward, v.m.row(t))
	}

	return upward, v.response, v.dmu
}
