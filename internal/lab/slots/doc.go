// Package slots plans one car in slots of one length, in floating point: energies in kWh,
// prices in pence per kWh. It serves the problem files of `flexd plan`; the service plans cars
// with package charge.
//
// # Model
//
// For slot t with price c[t], least energy l[t] and full energy u[t], binary z[t] (the slot is
// on) and energy x[t]:
//
//	minimise    sum of c[t] x[t] + StartCost (number of starts)
//	subject to  l[t] z[t] <= x[t] <= u[t] z[t],  sum of x = Need,  runs of at least MinRun
//
// A need that no choice of slots meets exactly is met by the least energy above it.
//
// # Methods
//
//   - Fill, no least power and no starts: merit order, exact; the threshold price is the
//     certificate.
//   - LeastPower: of k equal slots the cheapest k; at most maxOdd odd slots are tried on and
//     off. Exact.
//   - Switch, starts and least runs: all slots but one, f, are at their least or at full
//     energy according to whether they are dearer or cheaper than f. For each f a shortest
//     path over (slot, run so far) with an energy window; a multiplier of energy bounds it
//     from below (Lagrangian dual of the window, Kelley's cutting planes), and the remaining
//     candidates are decided by label setting over (energy, run, cost) with dominance. Exact
//     up to MaxLabels labels; beyond, the bound says the gap.
//
// # Complexity
//
// Fill O(n log n), LeastPower O(n log n), Switch pseudo-polynomial, 0.1 ms at the median.
//
// # Sources
//
// J. E. Kelley, The Cutting-Plane Method for Solving Convex Programs (1960). M. Desrochers and
// F. Soumis, A Generalized Permanent Labelling Algorithm for the Shortest Path Problem with
// Time Windows, INFOR 26 (1988). docs/engine.md, Starts to pay.
package slots
