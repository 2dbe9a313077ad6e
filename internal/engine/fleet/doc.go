// Package fleet plans cars and batteries that share caps or a traded position, at the least
// cost, with prices that prove a lower bound.
//
// # Model
//
// A linear programme over slots of half an hour. Variables: for car i and slot t in its window
// the energy x[i,t], 0 <= x <= power; its unserved need r[i]; for battery j charge, discharge
// and stored energy of every slot; around a position, energy bought (up) and sold (down).
//
//	minimise    energy at its price, or bought and sold around the position
//	            + adders of peak slots + wear + Unserved sum r - Terminal stored at the end
//	subject to  sum over t of x[i,t] + r[i] = need[i]              each car
//	            stored[t] = stored[t-1] + eff charge - discharge/eff  each battery
//	            sum of the loads below cap k in slot t <= cap[k,t]   the coupling rows
//	            load[t] - up[t] + down[t] = position[t]              if there is a position
//
// Caps form a tree: groups lie in groups, all in the fleet. Nothing is infeasible, as any need
// may be left unserved at its price.
//
// # Bound and certificate
//
// The certificate is Plan.Prices: a multiplier mu[k,t] >= 0 of each cap and a price of energy
// between selling and buying. Relaxing the coupling rows (Lagrangian dual), every asset alone
// does what is best at the sum of the prices above it; the sum of what they pay less mu times
// the caps and price times position is a lower bound for any such prices (weak duality). A
// car's subproblem is merit order, a battery's the slope trick (cell).
//
// # Method
//
//   - Prices: a primal-dual interior point method, Mehrotra's predictor-corrector (barrier).
//     Each asset's part of Newton's system is eliminated by hand and leaves the response of
//     its load to a price, dL = r - M dw: for a car a diagonal less a rank-one matrix, for a
//     battery a diagonal less the inverse of a tridiagonal one. Responses add up over a group;
//     the group's cap is folded in by one Cholesky factor, and the response to the price above
//     has the same form. The tree is therefore passed up and down. A group of no more cars
//     than slots, and nothing else, is solved with a row for each car instead (fewCars).
//   - Whole slots: the interior solution shares energy evenly among slots of equal worth. Each
//     car chooses again at the true marginal cost (reassign); then energy is moved round the
//     circles of the graph of cars and slots until it is a forest, which is a vertex of the
//     transportation polytope (purify).
//   - Large fleets, by price decomposition: prices from a sample of the cars; all cars choose
//     at these prices in turn, in parts, and the prices are adjusted between parts so that
//     caps fill evenly (fillAtPrices). Then blocks of the assets whose cost is furthest above
//     their best are solved again together in the capacity that the others leave (block
//     coordinate descent), until the gap is small. A step is kept only if it is better.
//
// # Guarantees
//
// Every plan keeps every cap. The same problem gives the same bytes, on any number of
// processors: work is split into two fixed halves whose sums are joined in order.
//
// # Complexity
//
// One barrier step: linear in assets times slots (batteries: slots squared), cubic in the
// slots for each group. Some 20 to 40 steps. A choice at prices: O(1) words a car on sorted
// classes. 100,000 cars take 0.2 s on two cores.
//
// # Sources
//
// S. Mehrotra, On the Implementation of a Primal-Dual Interior Point Method, SIAM Journal on
// Optimization 2 (1992). N. Megiddo, On Finding Primal- and Dual-Optimal Bases, ORSA Journal
// on Computing 3 (1991), for the step to a vertex. docs/engine-fleet.md.
package fleet
