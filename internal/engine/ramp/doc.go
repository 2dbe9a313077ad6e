// Package ramp spreads the starts and ends of cars with one tariff over time, so that the
// power of a large fleet changes by at most a given amount a minute.
//
// # Rule
//
// An asset has a place u in [0, 1), a hash of its id. All assets that are planned share one
// spread D, at most a half-hour. The offset of an asset is o = u D, in whole seconds. It
// affects the asset's plan in two ways:
//
//   - Its half-hours begin o later. Each is priced at the mean price of its time, so the plan
//     is the cheapest of all that begin and end at these times.
//   - Its off-peak time begins o later and ends D - o earlier. So does the time before
//     ready-by.
//
// An instant that was not chosen by a market or a tariff is not moved: a car that is plugged
// in within permitted time begins at once, and charge-now is at once.
//
// # Need first
//
// The second effect shortens each window by D. It never takes time that the need requires: for
// a car with less slack than D, D is shortened to the slack, and without slack it is zero.
//
// # Law
//
// A start or an end that a price causes lies o after a half-hour, one that a tariff causes o
// after its edge. So at most those assets start in a minute whose offset is in one window of
// 60 s modulo a half-hour, whatever the prices and however many choose the same half-hour.
// Their power has the mean F q and at most the variance q S, with F the power of the fleet, S
// the sum of the squares of its assets' powers and q = 60 s / D. Spread chooses D such that F
// q + 6 sqrt(q S) is at most the ramp. Ends are the same; those that the need causes lie a
// time after a start that does not depend on u. The law holds for any part of the fleet too,
// as the gross change of a part is at most that of the whole.
//
// Assets without slack are not covered by it. D is at most a half-hour, so a ramp below F/30 a
// minute cannot be kept, and Spread reports that.
package ramp
