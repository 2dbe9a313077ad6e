// Package charge plans one car: when it draws power between plug-in and ready-by, at the least
// market cost at which its requirements are met.
//
// # Model
//
// Time is cut into segments wherever a price, the tariff, a cap, charge-now or ready-by
// changes; no segment is longer than a half-hour. For segment i let p[i] be the price, u[i]
// the power that may flow times the seconds, and the variable x[i] the energy drawn, 0 <= x[i]
// <= u[i], in watt-seconds.
//
// The requirements have a fixed order (lexicographic goals):
//
//  1. charge-now at full power to its end;
//  2. the need E by ready-by inside off-peak time: maximise min(E, sum x over off-peak);
//  3. where peak time is permitted, what is missing then and no more;
//  4. minimise the cost sum p[i] x[i];
//  5. the fewest starts;
//  6. the earliest.
//
// A maximising car draws all off-peak energy, except where the price is above PauseAbove and
// the need is met without. A need that does not fit is met as far as possible, and the plan
// gives the shortfall: no problem is infeasible.
//
// # Method
//
// Within a tier (off-peak, then peak) goals 2 to 4 are a continuous knapsack: merit order is
// optimal. Fill segments by rising price, the last group of equal prices in part. Proof by
// exchange: moving energy from a dearer segment to free capacity in a cheaper one always pays,
// so an optimum has no such pair and is a prefix of the order.
//
// In the last group all choices cost the same. Goals 5 and 6 are decided there: a block of
// segments between two that charge saves a start when it is filled whole, so the shortest of
// those go first; then blocks that touch a charging one; then the fewest new blocks that hold
// the rest. The end is rounded up to the minute.
//
// Unbroken charging, for what must not be interrupted, has one run. Between the instants at
// which an end of the run passes an edge of a segment, cost and peak energy are linear in its
// start, so a run that begins or ends at an edge is best; all are tried.
//
// # Bound and certificate
//
// The certificate is the threshold price t, the dearest price paid (the optimal multiplier of
// the need). By Lagrangian duality, for every price t,
//
//	cost >= t E + sum of min(0, p[i]-t) u[i],
//
// and at the threshold the two sides are equal but for rounding to seconds and minutes.
// Plan.LowerBound is the right side. Package check calculates it independently.
//
// # Complexity
//
// Sorting: O(n log n) for n segments. Blocks of the last group: O(b^2 log b) for b of them, a
// handful. Unbroken: O(n^2). Planning a night takes about a microsecond.
//
// # Sources
//
// The continuous knapsack: G. B. Dantzig, Discrete-Variable Extremum Problems, Operations
// Research 5 (1957). The bound: H. Everett, Generalized Lagrange Multiplier Method, Operations
// Research 11 (1963). docs/engine.md, One car.
package charge
