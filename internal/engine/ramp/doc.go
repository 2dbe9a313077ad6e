// Package ramp keeps the cars of one tariff from starting and ending in the same second, so that the
// power of a large fleet moves by at most so much a minute.
//
// # Rule
//
// An asset has a place u in [0, 1), a hash of its id. All assets that are planned share one spread D, at most
// a half-hour. The offset of an asset is o = u D, in whole seconds. It does two things to its plan:
//
//   - Its half-hours begin o later. What they cost is the mean price of that time, so the plan is the
//     cheapest of all that begin and end there.
//   - Off-peak time opens o later for it, and closes D - o earlier. So does the time before ready-by.
//
// An instant that was not chosen by a market or a tariff is not moved: a car that is plugged in within
// open time begins at once, and charge-now is at once.
//
// # Need first
//
// The second part takes time away, D at each window. It takes no more than the need leaves: of a car
// whose need leaves less, D is as much shorter as it takes, and at no slack it is nothing.
//
// # Law
//
// A start or an end that a price causes lies o after a half-hour, one that a tariff causes
// o after its edge. So at most those assets start in a minute whose offset is in one window of 60 s modulo
// a half-hour, whatever the prices and however many choose the same half-hour. Their power has the mean F q
// and at most the variance q S, with F the power of the fleet, S the sum of its squares and q = 60 s / D.
// Spread chooses D such that F q + 6 sqrt(q S) is at most the ramp. Ends are the same; those that the need
// causes lie a time after a start that does not depend on u. The law holds for any part of the fleet too,
// as the gross change of a part is at most that of the whole.
//
// What has no slack is outside of it, and D at a half-hour is the most that there is: a ramp
// below F/30 a minute cannot be kept, and Spread says so.
package ramp
