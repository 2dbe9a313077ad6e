package fleet

import (
	"math"
)

// fewCars is a group with no more cars than slots, no batteries and no groups within it. Its response has the same
// form as any node's, dL = r - M dw, but M is never built: the cap's answer is eliminated first, slot by slot, and the
// system that is left has a row for each car instead of one for each slot. With a the inverses of a car, a[rest] that
// of its unserved need, D their sum over the cars and damp = 1 / (1 + theta D):
//
//	F[i,j] = -sum over t of a[i,t] a[j,t] theta[t] damp[t]               i other than j
//	F[i,i] = a[i,rest] + sum over t of a[i,t] damp[t] - sum over j of F[i,j]
//
// F has no positive number off its diagonal, and what its rows add up to is known and positive. So it is factored and
// solved by sums of positive numbers alone (W. Grassmann, M. Taksar and D. Heyman, Regenerative Analysis and Steady
// State Distributions for Markov Chains, Operations Research 33 (1985)): no digit is lost however tight a cap is.
type fewCars struct {
	cars []barrierEV
	inv  []float64 // of all variables

	total  []float64 // D, by slot
	damp   []float64
	factor matrix    // below the diagonal minus L, on it the pivots: F = L diag(pivots) L'
	value  []float64 // by car: what changes of price add to the value of its energy
}

func newFewCars(cars []barrierEV, inv []float64, slots int) *fewCars {
	return &fewCars{
		cars:   cars,
		inv:    inv,
		total:  make([]float64, slots),
		damp:   make([]float64, slots),
		factor: newMatrix(len(cars)),
		value:  make([]float64, len(cars)),
	}
}

// inversesOf returns the inverses of a car, by its own slots, and that of its unserved need.
func (f *fewCars) inversesOf(i int) ([]float64, float64) {
	e := &f.cars[i]
	return f.inv[e.at : e.at+e.n], f.inv[e.at+e.n]
}

// fold sets m to what the parent sees of the group: diag(D damp) - B' F^-1 B, with B[i,t] = a[i,t] damp[t].
func (f *fewCars) fold(theta []float64, m, spare matrix) {
	clear(f.total)
	for i := range f.cars {
		total := f.total[f.cars[i].first:]
		slots, _ := f.inversesOf(i)
		for t, a := range slots {
			total[t] += a
		}
	}

	for t, th := range theta {
		f.damp[t] = 1 / (1 + th*f.total[t])
	}

	f.build(theta)
	f.parentSees(m, spare)
}

// build sets factor to that of F.
func (f *fewCars) build(theta []float64) {
	excess := f.value // what a row adds up to
	for i := range f.cars {
		e := &f.cars[i]
		slots, rest := f.inversesOf(i)

		excess[i] = rest
		for t, a := range slots {
			excess[i] += a * f.damp[e.first+t]
		}

		row := f.factor.row(i)
		for j := range i {
			row[j] = f.coupling(i, j, theta)
		}
	}

	f.eliminate(excess)
}

// coupling is -F[i,j].
func (f *fewCars) coupling(i, j int, theta []float64) float64 {
	a, b := &f.cars[i], &f.cars[j]
	from := max(a.first, b.first)
	to := min(a.first+a.n, b.first+b.n)
	ofA, _ := f.inversesOf(i)
	ofB, _ := f.inversesOf(j)

	sum := 0.0
	for t := from; t < to; t++ {
		sum += ofA[t-a.first] * ofB[t-b.first] * theta[t] * f.damp[t]
	}

	return sum
}

// eliminate takes one car after the other out of F. A pivot is the sum of its row, without a difference.
func (f *fewCars) eliminate(excess []float64) {
	n := len(f.cars)
	for p := range n {
		pivot := excess[p]
		for j := p + 1; j < n; j++ {
			pivot += f.factor.row(j)[p]
		}
		f.factor.row(p)[p] = pivot

		for j := p + 1; j < n; j++ {
			row := f.factor.row(j)
			share := row[p] / pivot
			excess[j] += share * excess[p]

			for k := p + 1; k < j; k++ {
				row[k] += share * f.factor.row(k)[p]
			}
		}

		// The rows above were updated with the undivided column.
		for j := p + 1; j < n; j++ {
			f.factor.row(j)[p] /= pivot
		}
	}
}

// solve solves F y = x in place.
func (f *fewCars) solve(x []float64) {
	for i := range x {
		for j, share := range f.factor.row(i)[:i] {
			x[i] += share * x[j]
		}
	}

	for i := range x {
		x[i] /= f.factor.row(i)[i]
	}

	for i := len(x) - 1; i >= 0; i-- {
		for j, share := range f.factor.row(i)[:i] {
			x[j] += share * x[i]
		}
	}
}

// parentSees sets m. Its rows add up to B' F^-1 a[rest], so that its diagonal is a sum too.
func (f *fewCars) parentSees(m, spare matrix) {
	y := f.value
	for i := range f.cars {
		_, y[i] = f.inversesOf(i)
	}

	f.solve(y)
	clear(m.a)
	f.lower(spare)
	m.subtractSquares(spare, len(f.cars))

	for t := range m.n {
		row := m.row(t)
		row[t] = 0
		for u, v := range row[:t] {
			row[t] -= v
			m.row(u)[u] -= v
		}
	}

	for i := range f.cars {
		first := f.cars[i].first
		slots, _ := f.inversesOf(i)
		for t, a := range slots {
			m.row(first + t)[first+t] += a * f.damp[first+t] * y[i]
		}
	}

	m.mirror()
}

// lower sets the first rows of w to diag(pivots)^-1/2 L^-1 B.
func (f *fewCars) lower(w matrix) {
	for i := range f.cars {
		row := w.row(i)
		clear(row)

		first := f.cars[i].first
		slots, _ := f.inversesOf(i)
		for t, a := range slots {
			row[first+t] = a * f.damp[first+t]
		}

		for j, share := range f.factor.row(i)[:i] {
			if share > 0 {
				for t, a := range w.row(j) {
					row[t] += share * a
				}
			}
		}
	}

	for i := range f.cars {
		scale := 1 / math.Sqrt(f.factor.row(i)[i])
		for t := range w.row(i) {
			w.row(i)[t] *= scale
		}
	}
}

// answer sets the node's response and dmu, as node.answer does, for a change dw of the price above it, nil for none.
func (f *fewCars) answer(v *node, dw []float64) {
	above := v.work
	clear(above)
	copy(above, dw)

	for i := range f.cars {
		f.value[i] = f.pull(i, v, above)
	}

	f.solve(f.value)
	copy(v.response, v.r)
	for i, y := range f.value {
		response := v.response[f.cars[i].first:]
		slots, _ := f.inversesOf(i)
		for t, a := range slots {
			response[t] += a * y
		}
	}

	for t, r := range v.response {
		r -= f.total[t] * above[t]
		v.dmu[t] = f.damp[t] * (v.theta[t]*r + v.rho[t])
		v.response[t] = f.damp[t] * (r - f.total[t]*v.rho[t])
	}
}

// pull is the right side of a car's row.
func (f *fewCars) pull(i int, v *node, above []float64) float64 {
	first := f.cars[i].first
	slots, _ := f.inversesOf(i)

	sum := 0.0
	for k, a := range slots {
		t := first + k
		sum += a * f.damp[t] * (v.theta[t]*v.r[t] + v.rho[t] + above[t])
	}

	return sum
}
