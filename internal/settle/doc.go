// Package settle turns readings into delivered flexibility and money: which half-hours a flex
// event changed, what would have been used without it, what the difference was worth, and who
// gets which share. It only computes: the same case gives the same bytes at any time, on any
// machine.
//
// # Method
//
//	readings ──► HalfHours ──► metered days, as far as known
//	                              │ the days before ──► Rule ──► baseline, with its quality and standard error
//	schedules ──► Detect ──► events                          │
//	                              └────────► metered less baseline = deviation, once for each meter and half-hour
//	                                                         │ divided over the events that caused it
//	                                                         └─► times price, loss factor and the user's share
//
// The steps are these:
//
//   - The energy of a half-hour is taken from the most exact label that covers all of it: at a
//     boundary the register, then provisional consumption, then power; of an asset its
//     half-hours, then its register, then its inverter's power. Nothing is estimated. A value
//     above what the connection or the device can carry, with 10 % for the voltage, counts as
//     not known.
//   - An event is an unbroken run of half-hours of one day in which the schedules in force
//     allow at least [LeastFlexed] (50 Wh) more or less than those that would be in force
//     without the market's prices. The user's own decisions count as neither more nor less.
//   - A baseline is the mean of the same half-hour over the newest days of the same class (10
//     working or 4 non-working ones, at least 5 or 2, within 60 days) without an event and a
//     clock change; or of the middle eight of ten; or what the plan without prices would have
//     used. With fewer days than the least the baseline is insufficient, and nothing is paid
//     on it.
//   - A month's netted sum is credited once it exceeds zero by more than two standard errors
//     of its baselines. A sum that does not is carried into later months, and lapses after
//     twelve. An organisation sets both numbers in its terms.
//
// Bank holidays are those of England and Wales, from 2011 to 2099, by the rules and the
// exceptions proclaimed so far.
//
// Signs are the interface's: energy is net import, flexed energy is metered less baseline, so
// that turning down is negative, and earns at a positive price.
package settle
