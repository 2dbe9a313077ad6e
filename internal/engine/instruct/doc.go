// Package instruct chooses which cars carry out an instruction of the grid, and when each of
// them waits.
//
// # Model
//
// An instruction asks a fleet to draw less, or more, than it plans to, within a window. The
// window is cut into slots: half-hours, and what is left of them at its ends. A car is either
// called or not. One that is called to draw less leaves the window out; one that is called to
// draw more leaves everything else out. What follows from it is the plan of package charge with
// that time closed, so that each car's change in each slot and its cost are exact.
//
// Needs win. Where a plan with the time closed would meet less of the need, or take more from
// peak time, than the plan without, a car keeps as much of what it would have drawn in that
// time as it takes, the cheapest first, to the minute. Charge-now is never closed.
//
// So that cars do not come back all at once, a car that is called to draw less does not charge
// in the hour after the window where it would not have charged anyway, if its need allows that;
// nor at any time in which the cars that were planned before it already draw a tenth of the instructed power
// above their plans (Rebound). The cars with the earliest ready-by are planned first. Who would come back above that,
// or would charge less because of it, is called only if nobody else brings what is missing (ChooseApart).
//
// A car that another instruction calls at another time stays as it is for that one: what it leaves out
// is left out still, and the need is met as far as it is without the second call.
//
// # Choice
//
// Each slot's target is to be reached by the sum of the called cars' changes, each counted with
// its quality, at the least cost. Choose takes cars by rising cost for each joule that is still
// missing, and then lets those go, the last first, that are no longer needed.
//
// Fairness goes before cost: a car that was called less often comes before one that was called
// more often, unless it is asked not to. Of equals the first comes first.
//
// # Guarantee
//
// With one slot, all that was chosen but the last car costs no more than any choice that reaches the
// target (the greedy bound of the covering knapsack). With several slots there is no such bound:
// docs/grid.md has what was measured against all choices of small fleets.
//
// # Complexity
//
// A car's offer takes a handful of plans, and at most a dozen more where its need wins. The choice
// among n cars takes O(n log n) comparisons where targets are alike in all slots.
//
// # Sources
//
// Greedy covering: V. Chvátal, A Greedy Heuristic for the Set-Covering Problem, Mathematics of
// Operations Research 4 (1979).
package instruct
