// Package headroom computes the power that the caps of a fleet and its groups leave to each
// car, by minutes, and plans cars within it.
//
// # Model
//
// Cap 0 limits the whole fleet. Every other cap limits the cars of its group and of the groups
// that lie in it. For minute m and cap k, let load[k][m] be the most power that the other loads
// under the cap draw in that minute. The headroom of a car is the least of cap[k] - load[k][m]
// over its caps. Less than the car's least power (charge.Problem.Least, LeastPower) counts as
// none. A cap may also limit how many cars start in a minute.
//
// # Method
//
// A fleet that shares caps is planned in two steps.
//
//  1. Share states the cars as a fleet in half-hours and solves it with package fleet, in
//     which prices coordinate the cars. It reserves each car's energy in the minutes of its
//     half-hours.
//  2. One car after the other, those that can wait least first, releases its reservation and
//     is planned by package charge with the headroom as limits (Profile.Charge). Its own
//     reservation is always free for it, so no car loses what the fleet's plan gave it.
//
// If a minute has its maximum of starts, a start is moved to the next free minute, as long as
// the need is still met.
//
// # Guarantee
//
// A minute counts as filled by the most that is drawn in it. So whatever fits the headroom of
// every minute exceeds no cap at any instant. Charge-now is limited only after LimitNow.
//
// # Complexity
//
// Each call is linear in the minutes of the horizon (Hours) that it touches.
//
// # Sources
//
// docs/engine-fleet.md, In the service.
package headroom
