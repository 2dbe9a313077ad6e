// Package certificate makes proofs of lower bounds that a checker can verify without planning:
// multipliers, or potentials.
//
// A potential V[t](state) is a function on the states of a dynamic programme. If no step from
// s to s' costs less than V[t](s) - V[t+1](s'), then every plan costs at least V[0](start) -
// V[n](end): this is the dual of the shortest path problem, on a continuous state. Where a
// step falls short by d, d comes off the bound of its slot. So any potential proves some
// bound, and the cost to go of the exact dynamic programme proves the best one.
//
// OfStorage gives the worth of stored energy after each slot where all costs are convex, else
// the cost to go; OfSlots the cost to go by run and energy still wanted; OfModes the cost to
// go by mode and stored energy, which may raise the bound of the plan. Package verify checks
// them. docs/engine.md, Certificates.
package certificate
