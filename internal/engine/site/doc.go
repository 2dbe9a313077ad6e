// Package site plans the devices of one site as one: home batteries, cars that may discharge,
// a hot-water tank and a heat pump behind one main fuse and one export limit.
//
// # Model
//
// A mixed-integer linear programme over slots t. With g the energy through the meter (import
// positive), load l, roof v of which w is curtailed, and q[d,t] what device d draws:
//
//	minimise    first the cars' shortfalls, then peak energy, then
//	            import g+ - export g- + wear + starts + discomfort - terminal values
//	subject to  g[t] = l[t] - v[t] + w[t] + sum over d of q[d,t]      the balance
//	            -export limit <= g[t] <= fuse
//	            s[d,t] = k s[d,t-1] + eff charge - discharge / eff    each store, within bounds
//	            T[t] = a T[t-1] + b q[t] + outdoor and gains          the building, softly in its band
//	            sum over t of q[c,t] + short[c] = need[c]             each car
//
// Integers: on or off of the tank's element and of what costs to start; powers that are 0 or
// at least a minimum; one direction at a time of a battery, a car and the meter; no discharge
// into cars; the reserve of a car that arrives below it.
//
// # Method
//
// Branch and bound on the linear relaxation (package simplex). Every node starts from the last
// basis.
//
//   - Integers are columns only where they must be. A minimum power without start cost and all
//     directions are conditions on columns that exist anyway. They are branched on where the
//     relaxation breaks them.
//   - Where opposite directions would pay (exporting above the import price, or using up
//     energy at negative prices), their convex hulls are added (hulls). Exported energy must
//     come from discharge or the roof, and imported energy must be used (sources, sinks).
//   - While batteries may not serve cars, what they give beyond the building's use is exported
//     or charged elsewhere, whether a car charges or not (surplus). So the relaxation cannot
//     move energy from a battery to a car.
//   - The tank counts the slots in which it was on so far. These counts are integers, and
//     their bounds are rounded (counts). Without losses the matrix of their differences is
//     totally unimodular. That closes nearly all of the tank's gap before any branching.
//   - A car with one power counts its slots on by classes of the same energy. The best that it
//     can reach alone bounds these counts (numbers).
//   - What one slot can do is a union of polytopes: one mode for each device (off, charging,
//     discharging, importing, ...), and energies that balance. At the root, the point of the
//     convex hull of each slot's set that is nearest to the solution gives a cut between the
//     two (slotSet, nearest, cuts). This is repeated until there are no more cuts. Only what
//     links slots, starts and counts, is left to branching.
//   - Branching on integers and on opposite directions is by pseudo-costs. The more promising
//     half is inspected first, otherwise the node with the lowest bound. The reduced costs at
//     the root exclude values of columns that cannot improve the best plan.
//   - What each car can reach alone bounds shortfall and peak energy. Only if no plan reaches
//     these bounds are the first two goals searched for separately.
//   - If a plan is not proven to be the best, its batteries are planned again exactly, one
//     after the other, with all other devices as they are (polish).
//   - If the first search finds no plan, the next starts from a simple one (simple).
//
// # Bound
//
// The bound is the lowest bound of the nodes that are left. It is reduced by what the
// perturbation of the costs can have added, so that it is never above the optimum. SolveProven
// records the tree with the multipliers of every node, from which package lab/verify computes
// a bound independently.
//
// # Limits
//
// Work is counted in pivots (Solver.Limit), so that the same site gets the same plan on any
// machine. After a tenth of the limit, and at least 1,000 pivots, a plan is good enough if it
// is within 0.08 % of the turnover of its bound. At the limit, the best plan is returned with
// its bound.
//
// # Sources
//
// A. Land and A. Doig, An Automatic Method of Solving Discrete Programming Problems,
// Econometrica 28 (1960). T. Achterberg, T. Koch and A. Martin, Branching rules revisited,
// Operations Research Letters 33 (2005). P. Wolfe, Finding the nearest point in a polytope,
// Mathematical Programming 11 (1976). docs/engine-home.md.
package site
