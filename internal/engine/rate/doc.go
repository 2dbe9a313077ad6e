// Package rate learns the power that an asset really draws from what its own meter showed.
//
// # What counts
//
// A half-hour is used only if the asset was plugged in and allowed to charge for all of it,
// and its meter was read. Its mean power v is compared with the power u that was allowed and
// the nominal power n, the lower of charger and car:
//
//	v >= 99 % of u, u = n   it drew all that is nominal: no limit of its own shows
//	v >= 99 % of u, u < n   it drew all that a cap allowed: v is at least what it can do
//	v <  90 % of u, u < n   it drew clearly less than the cap allowed: v is what it draws
//	v <  99 % of u, u = n   v is what it draws
//
// The first half-hour after a time without power shows the start delay instead, unless the
// session has no other half-hour.
//
// # A session
//
// Summarise puts the half-hours of one session into one level: the upper median of their
// powers. The last half-hours below 90 % of the highest are left out, as a battery that
// becomes full draws less and less. One slow half-hour, because of a shared supply, therefore
// changes nothing, and half a night of them does.
//
// The tail that was left out is kept as an energy: what the session fell short of its level
// while the battery became full, but for the last half-hour before one without charge. The
// start delay is what the first half-hours fell short of the level, as time at the level.
//
// # Across sessions
//
// Learn takes the newest SessionsMax sessions that showed something, of the asset with one
// vehicle rate. The level is the lower median of theirs: after one slow session the next night
// is planned for a slow car, after two fast ones it is not. A later session that drew all that
// a cap allowed raises the level to ClimbPercent more than that, at most, so that a level that
// is too low ends by itself although the asset is not allowed more.
//
// # Within a session
//
// The newest half-hour that counts is used at once if it is lower than the known power,
// because being ready comes first; a higher one only if the one before is higher too. A first
// half-hour counts only where nothing is known. An asset whose newest half-hour is more than a
// tenth below the one before is assumed to draw half of that from then on: it becomes full, or
// lost a phase, and the next half-hour will show which. Within a session, a half-hour of which
// only the first part was allowed counts too, by that part, if it has at least 20 minutes and
// is not a start. Where nothing is known from sessions before, the start delay is that of the
// session itself, once a second half-hour shows the power. The result moves only out of a dead
// band of DeadPercent around the power that the schedule in force was planned with.
//
// # What is planned
//
// Power is never above nominal. Where it is below, or a delay or a tail was seen, the need is
// planned with an allowance:
//
//	remaining need + 1 % + one minute at the power + the delay at the power + the tail
//
// The delay counts until the charge has begun; a charge that was stopped and starts again is
// allowed RestartDelay at least. Control allows the same for each further start of a plan. The
// tail counts until it is measured.
//
// The percent and the minute are what control lets a schedule fall short by before it sends
// another. Where nothing was measured, or nominal power was drawn, nothing is changed.
//
// All of it is a function of the set of half-hours: they are sorted first, and none counts
// twice, so the order in which readings came does not matter.
//
// # Not learned
//
// Losses between the charger's meter and the battery: no reading of the interface gives the
// energy in a car's battery, and a need is given as energy at the charger.
package rate
