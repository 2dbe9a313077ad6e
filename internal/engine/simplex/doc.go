// Package simplex solves small linear programmes of which every variable has a lower and an
// upper bound, again and again while bounds change, as branch and bound needs it.
//
// # Model
//
//	minimise    sum over j of Cost[j] x[j]
//	subject to  A x = right,  lower[j] <= x[j] <= upper[j], all finite
//
// An inequality is a row with a slack variable of its own.
//
// # Method
//
// The dual simplex method with the bound flipping ratio test and devex weights. As every
// variable is boxed, any basis becomes dual feasible once each variable outside it stands at
// the bound that its reduced cost asks for: there is no first phase, any change of bounds
// and any new column (at its upper bound) is a warm start, and no basis is ever restored.
//
// The inverse of the basis is kept explicitly, by columns, and updated on its nonzeros. With
// a few hundred rows of two to four entries each that costs a microsecond or two, needs no
// factorisation, and makes a row of the inverse free.
//
// # Bound
//
// For any multipliers y of the rows, y right + sum over j of min((c[j] - y a[j]) x[j]) over
// the box of x[j] is a lower bound (weak duality). Solver.Bound works it out with the exact
// costs, whatever rounding or perturbation there was on the way to y.
//
// # Limits
//
// Work is counted in pivots, not in time, so that a solution never depends on the clock.
//
// # Sources
//
// A. Koberstein, The Dual Simplex Method, Techniques for a Fast and Stable Implementation,
// thesis, Paderborn (2005). I. Maros, Computational Techniques of the Simplex Method (2003).
package simplex
