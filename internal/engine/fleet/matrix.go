package fleet

import (
	"math"
)

// matrix is a square matrix of n rows, row by row.
type matrix struct {
	n int
	a []float64
}

func newMatrix(n int) matrix { return matrix{n, make([]float64, n*n)} }

func (m matrix) row(i int) []float64 { return m.a[i*m.n : (i+1)*m.n] }

func (m matrix) add(o matrix) {
	for i, v := range o.a {
		m.a[i] += v
	}
}

// mirror copies the lower half to the upper.
func (m matrix) mirror() {
	for i := range m.n {
		for j := range i {
			m.a[j*m.n+i] = m.a[i*m.n+j]
		}
	}
}

// times sets y to m x.
func (m matrix) times(x, y []float64) {
	for i := range y {
		sum := 0.0
		for j, v := range m.row(i) {
			sum += v * x[j]
		}
		y[i] = sum
	}
}

// cholesky replaces the lower half of a symmetric positive definite matrix by L with L L' = m.
// A pivot that rounding has reduced too far is raised above zero.
func (m matrix) cholesky() {
	for i := range m.n {
		ri := m.row(i)
		for j := range i + 1 {
			rj := m.row(j)
			sum := ri[j]
			for k, v := range rj[:j] {
				sum -= v * ri[k]
			}

			if i == j {
				ri[i] = math.Sqrt(max(sum, 1))
			} else {
				ri[j] = sum / rj[j]
			}
		}
	}
}

// lower solves L y = x in place, with L the lower half.
func (m matrix) lower(x []float64) {
	for i := range m.n {
		ri := m.row(i)
		sum := x[i]
		for k, v := range ri[:i] {
			sum -= v * x[k]
		}
		x[i] = sum / ri[i]
	}
}

// upper solves L' y = x in place.
func (m matrix) upper(x []float64) {
	for i := m.n - 1; i >= 0; i-- {
		ri := m.row(i)
		x[i] /= ri[i]
		for k, v := range ri[:i] {
			x[k] -= v * x[i]
		}
	}
}

// lowerRows solves L Y = X in place for the first rows of a matrix X.
func (m matrix) lowerRows(x matrix) {
	for i := range m.n {
		ri, xi := m.row(i), x.row(i)
		k := 0
		for ; k+4 <= i; k += 4 {
			lessFour(xi, x, k, [4]float64(ri[k:]))
		}
		for ; k < i; k++ {
			for j, w := range x.row(k)[:len(xi)] {
				xi[j] -= ri[k] * w
			}
		}

		inv := 1 / ri[i]
		for j := range xi {
			xi[j] *= inv
		}
	}
}

// lessFour subtracts four rows of x, from row k on, each times its factor, from a row y: the beginning of each row, as far
// as y goes. Four at once, as most of the time goes into loading and storing y.
func lessFour(y []float64, x matrix, k int, by [4]float64) {
	a, b := x.row(k)[:len(y)], x.row(k + 1)[:len(y)]
	c, d := x.row(k + 2)[:len(y)], x.row(k + 3)[:len(y)]

	for j, v := range y {
		y[j] = v - (by[0]*a[j] + by[1]*b[j] + by[2]*c[j] + by[3]*d[j])
	}
}

// subtractSquares subtracts X'X from the lower half of m, with X the first rows of x.
func (m matrix) subtractSquares(x matrix, rows int) {
	for i := range m.n {
		row := m.row(i)[:i+1]
		k := 0

		for ; k+4 <= rows; k += 4 {
			by := [4]float64{
				x.row(k)[i],
				x.row(k + 1)[i],
				x.row(k + 2)[i],
				x.row(k + 3)[i],
			}

			if by != [4]float64{} {
				lessFour(row, x, k, by)
			}
		}

		for ; k < rows; k++ {
			by := x.row(k)[i]
			for j, w := range x.row(k)[:i+1] {
				row[j] -= by * w
			}
		}
	}
}

// node is the whole fleet or a group in the barrier: the response of its load to a change of
// its price, dL = r - M dw, and the cap that turns a load into a price.
type node struct {
	parent    int       // -1: the whole fleet
	leaf      bool      // no node lies within it
	cap       []float64 // kWh; +Inf where no cap can bind
	slack, mu []float64 // headroom under the cap, and its price
	dslack    []float64
	dmu       []float64
	load      []float64
	// price of energy to the assets: mu summed up to the fleet, and the market's
	w  []float64
	dw []float64

	// M, then what the parent sees of it; factor of I + S M S
	m           matrix
	inner       matrix
	raw         matrix    // M
	theta       []float64 // dmu = theta dL + rho
	root        []float64 // of theta
	rho         []float64
	r, response []float64 // r, then what the parent sees of it
	work        []float64
	tight       []int // the slots in which theta is not zero

	cars *fewCars // instead of raw and inner, where there are no more cars than slots, and nothing else
}

// fold turns (M, r) into what the parent sees: with the cap's answer inside,
// dL = (I + M Theta)^-1 (r - M rho - M dw'), dw' being the change of the parent's price. Only slots in which the
// cap answers are in the factor.
func (v *node) fold(spare matrix) {
	if v.cars != nil {
		v.cars.fold(v.theta, v.m, spare)
		return
	}

	copy(v.raw.a, v.m.a)
	v.tight = v.tight[:0]

	for t, th := range v.theta {
		v.root[t] = math.Sqrt(th)
		if th > 0 {
			v.tight = append(v.tight, t)
		}
	}

	k := len(v.tight)
	v.fill(spare)

	v.inner.cholesky()
	v.inner.lowerRows(spare) // W = L^-1 S M; the parent sees M - W'W

	v.m.subtractSquares(spare, k)
	v.m.mirror()
}

// fill sets inner to I + S M S and the first rows of spare to S M, of the slots in which the cap answers.
func (v *node) fill(spare matrix) {
	k := len(v.tight)
	v.inner = matrix{k, v.inner.a[:k*k]}
	for i, t := range v.tight {
		in := v.inner.row(i)
		raw := v.raw.row(t)
		sp := spare.row(i)

		for j, u := range v.tight[:i+1] {
			in[j] = v.root[t] * raw[u] * v.root[u]
		}

		in[i]++
		for u, m := range raw {
			sp[u] = v.root[t] * m
		}
	}
}

// answer sets response to the change of the load if the price above the node changes by dw,
// nil for not at all: (I + M Theta)^-1 (r - M (rho + dw)), and dmu to Theta response + rho.
// Where the cap is tight, both come from the solution itself: a difference of large
// numbers, however small, would be a large fault in the price.
func (v *node) answer(dw []float64) {
	if v.cars != nil {
		v.cars.answer(v, dw)
		return
	}

	for t, r := range v.rho {
		v.work[t] = r
		if dw != nil {
			v.work[t] += dw[t]
		}
	}

	v.raw.times(v.work, v.response)
	for t, r := range v.r {
		v.response[t] = r - v.response[t]
	}

	answer := v.work[:len(v.tight)]
	for i, t := range v.tight {
		answer[i] = v.root[t] * v.response[t]
	}

	v.inner.lower(answer)
	v.inner.upper(answer)
	copy(v.dmu, v.rho)
	for i, t := range v.tight {
		v.dmu[t] += v.root[t] * answer[i]
		for u, m := range v.raw.row(t) {
			v.response[u] -= m * v.root[t] * answer[i]
		}
	}

	for i, t := range v.tight {
		v.response[t] = answer[i] / v.root[t]
	}
}
