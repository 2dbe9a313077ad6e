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
// The dual simplex method with the bound flipping ratio test and steepest edge weights. As
// every variable is boxed, any basis becomes dual feasible once each variable outside it is at
// the bound that its reduced cost requires. So there is no first phase, any change of bounds
// and any new column (at its upper bound) is a warm start, and no basis is ever restored.
//
// The basis is kept as sparse triangular factors (refactor): pivots from columns and rows of
// one entry as long as there are any, which fill nothing in, then columns from the left with
// threshold pivoting. Each pivot since is one more factor (product form); after 64, or when
// those weigh more than the factors themselves, the factors are made again, and values and
// reduced costs with them.
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
// thesis, Paderborn (2005). J. Forrest and D. Goldfarb, Steepest-edge simplex algorithms for
// linear programming, Mathematical Programming 57 (1992). I. Maros, Computational Techniques
// of the Simplex Method (2003).
package simplex
