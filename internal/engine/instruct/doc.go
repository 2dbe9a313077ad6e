// Package instruct chooses which cars carry out an instruction of the grid, and when each of
// them waits.
//
// # Model
//
// An instruction asks a fleet to draw less, or more, than it plans to, within a window. The
// window is cut into slots: half-hours, and what is left of them at its ends. A car is either
// called or not. A car that is called to draw less does not charge in the window; one that is
// called to draw more charges at no other time. Its new plan is that of
// package charge with the other time closed, so that each car's change in each slot and its
// cost are exact.
//
// Needs take precedence. If the plan with closed time would meet less of the need, or draw
// more in peak time, than the plan without, the car still charges in the closed time as much
// as that requires, at the cheapest times first, to the minute. Charge-now is never closed.
//
// Cars should not all charge again at once (rebound). A car that is called to draw less
// therefore does not charge in the hour after the window at times at which it would not have
// charged anyway, if its need allows that; nor at any time in which the cars that were planned
// before it already draw a tenth of the instructed power above their plans (Rebound). The cars
// with the earliest ready-by are planned first. A car that would exceed that tenth, or would
// charge less because of it, is called only if no other car brings what is missing
// (ChooseApart).
//
// A car that another instruction calls at another time still observes that one: its time stays
// closed, and the need is met as far as without the second call.
//
// # Choice
//
// Each slot's target is to be reached by the sum of the called cars' changes, each counted
// with its quality, at the least cost. Choose takes cars by rising cost for each joule that is
// still missing, and then removes those that are no longer needed, the last first.
//
// Fairness goes before cost, unless the caller turns it off: a car that was called less often
// comes before one that was called more often. Among equal cars the first in the list comes
// first.
//
// # Guarantee
//
// With one slot, the chosen cars without the last one cost no more than any choice that
// reaches the target (the greedy bound of the covering knapsack). With several slots there is
// no such bound: docs/grid.md has what was measured against all choices of small fleets.
//
// # Complexity
//
// A car's offer takes a few plans, and at most a dozen more where its need takes precedence.
// The choice among n cars takes O(n log n) comparisons where targets are alike in all slots.
//
// # Sources
//
// Greedy covering: V. Chvátal, A Greedy Heuristic for the Set-Covering Problem, Mathematics of
// Operations Research 4 (1979).
package instruct
