// Package settle turns readings into delivered flexibility and money: which half-hours a
// flex event changed, what would have been used without it, what that was worth, and
// whose share it is. It only computes: the same case gives the same bytes at any time, on
// any machine.
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
//   - A half-hour takes its energy from the most exact label that gives all of it: at a boundary the register, then provisional consumption, then
//     power; of an asset its half-hours, then its register, then its inverter's power. Nothing is guessed. What lies beyond what the connection or the device can
//     carry, with 10 % for the voltage, is not known.
//   - An event is an unbroken run of half-hours of one day in which the schedules in force allow at least [LeastFlexed] (50 Wh) more or less than
//     those without the market's prices. The user's own decisions count as neither.
//   - A baseline is the mean of the same half-hour over the newest days of the same class (10 working or 4 non-working ones, at least 5 or 2,
//     within 60 days) without an event and a clock change; or of the middle eight of ten; or what the plan without prices would have used. Fewer days than the
//     least are insufficient, and nothing is paid on them.
//   - A month's netted sum is credited once it is more than two standard errors of its baselines above nothing; what is not is carried into later months, and
//     lapses after twelve. Both are terms that an organisation sets.
//
// Bank holidays are those of England and Wales, from 2011 to 2099, by the rules and the exceptions proclaimed so far.
//
// Signs are the interface's: energy is net import, flexed energy is metered less
// baseline, so that turning down is negative, and earns at a positive price.
package settle
