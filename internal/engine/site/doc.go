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
// at least a minimum; one direction of a battery, a car and the meter; no discharge into cars;
// the reserve of a car that arrives below it.
//
// # Method
//
// Branch and bound on the linear relaxation (package simplex), which every node warm-starts.
//
//   - Integers are columns only where they must be. A minimum power without start cost and all
//     directions are conditions on columns that are there anyway, and are branched on where
//     the relaxation breaks them.
//   - Convex hulls where opposite directions pay: exporting above the import price, or burning
//     energy at negative prices (hulls). What is exported must come from discharge or the
//     roof, what is imported must go somewhere (sources, sinks).
//   - While batteries may not serve cars, what they give beyond the building's use is exported
//     or charged elsewhere, whether a car charges or not (surplus). The relaxation then has no
//     way from battery to car.
//   - The tank counts the slots in which it was on so far. These counts are integers, their
//     bounds are rounded (counts), and without losses the matrix of differences is totally
//     unimodular. That closes nearly all of the tank's gap before any branching.
//   - A car of one power counts its slots on by classes of the same energy. What it comes to
//     alone bounds these counts (numbers).
//   - What one slot can do is a union of polytopes: of each device one mode (off, charging,
//     discharging, importing, ...), and energies that balance. At the root the point nearest
//     to the solution in the convex hull of each slot's set gives a cut between the two
//     (slotSet, nearest, cuts), round by round until there are none. Only what goes from slot
//     to slot, starts and counts, is left to branching.
//   - Branching by pseudo-costs, of integers and of opposite directions, diving into the more
//     promising half, otherwise the lowest bound first. Reduced costs at the root take from
//     columns what cannot be better than the best plan.
//   - What each car comes to alone bounds shortfall and peak energy. Only if no plan attains
//     these are the first two goals searched for by themselves.
//   - The batteries of a plan that is not proven to be the best are planned again, one after
//     the other, exactly beside what all else does (polish).
//   - Where the first search finds no plan, a simple one is made (simple), from which it
//     continues.
//
// # Bound
//
// The lowest bound of the nodes that are left. It is lowered by what the perturbation of the
// costs can have added, so that it is never above the optimum. SolveProven records the tree
// with the multipliers of every node, from which package lab/verify works a bound out by
// itself.
//
// # Limits
//
// Work is counted in pivots (Solver.Limit), so that the same site gets the same plan on any
// machine. After a tenth of the limit, and 1,000 pivots, a plan within 0.08 % of the turnover
// of its bound is good enough; at the limit the best plan comes back with its bound.
//
// # Sources
//
// A. Land and A. Doig, An Automatic Method of Solving Discrete Programming Problems,
// Econometrica 28 (1960). T. Achterberg, T. Koch and A. Martin, Branching rules revisited,
// Operations Research Letters 33 (2005). P. Wolfe, Finding the nearest point in a polytope,
// Mathematical Programming 11 (1976). docs/engine-home.md.
package site
