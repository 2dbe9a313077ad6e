// Package headroom computes the power that the caps of a fleet and its groups leave to each
// car, by minutes, and plans cars within it.
//
// # Model
//
// Cap 0 binds the whole fleet, every other cap the cars of its group and of the groups that
// lie in it. For minute m, cap k and the power load[k][m] that the cars under it draw at most
// in that minute, the headroom of a car is the least of cap[k] - load[k][m] over its caps;
// less than the car's least (charge.Problem.Least, LeastPower) is none. A cap may also bound
// how many cars start in a minute.
//
// # Method
//
// A coupled fleet is planned in two steps.
//
//  1. Share writes the cars as a fleet in half-hours, solves it with package fleet (prices
//     coordinate the cars) and reserves each car's energy in the minutes of its half-hours.
//  2. One car after the other, those that can wait least first, releases its reserve and is
//     planned by package charge with the headroom as limits (Profile.Charge). As its own
//     reserve is always free for it, no car loses what the fleet's plan gave it.
//
// If a minute has its maximum of starts, a start is moved to the next free minute, as long as
// the need is still met.
//
// # Guarantee
//
// A minute counts as filled by the most that is drawn in it. So what fits the headroom of
// every minute exceeds no cap at any instant. Charge-now is not limited, unless LimitNow says
// so.
//
// # Complexity
//
// Each call is linear in the minutes of the horizon (Hours) that it touches.
//
// # Sources
//
// docs/engine-fleet.md, In the service.
package headroom
