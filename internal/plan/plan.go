// Package plan decides when assets draw power: one car, one pause, one battery, a whole
// fleet. Every planner is exact or says by how much it may be wrong: with each plan come
// its cost, a lower bound on the cost of any plan that keeps the same duties, the
// deciding price and a reason for every period.
//
// Nothing here reads a clock, draws lots or fails: the same problem gives the same plan,
// and what cannot be met is met as far as it goes and said. The checkers share no code
// with the planners that they judge.
package plan
