// Package flex holds the nouns of the trade and the rules that bind them: what a
// site, an asset, an intent, a session or a settlement period is, the units that
// their quantities are counted in, and the kinds of failure. It knows no clock, no
// wire format and no database, and imports nothing of flexd: every other package may import it.
//
// # Quantities
//
// Each quantity has a type, an integer of one unit, so that sums are exact and one cannot be given for another:
//
//	Watts        power; positive draws from the grid, negative gives
//	WattHours    energy, with the same sign
//	Price        millionths of a pound per MWh
//	MicroPounds  money, as it is computed; Pence, as it is paid
//	Micro        a reading's value, in millionths of its label's unit (kWh, kW, % …)
//
// Numbers of the interface (kW, kWh, £/MWh) are rounded to the nearest unit when they come in; money is rounded to pence once, half away from zero, where it is
// paid.
//
// # Time
//
// A Span is half-open: it has its first instant and not its last. A Period is a half-hour of UTC, the unit in which electricity is traded; a Day is a calendar
// day in Great Britain (London), so that it has 46, 48 or 50 periods. SettlementPeriod gives the number by which the market knows a period. A WallTime is a time of
// day on some clock; package tariff makes instants of it.
//
// # Identity
//
// An ID is a UUID of version 7: its first 48 bits are the milliseconds at which it was made, so that ids sort by age. Each kind of record has its own type of ID. No function here draws one:
// whoever does gives the instant and the random bits.
//
// # Secrets and personal data
//
// Secret and Personal print, log and encode as [redacted]. Reveal is the only way to their text, so that every place that shows one can be found by that name.
//
// # Failures
//
// An Error was written to be shown to whoever asked: it has a Kind, which says what the caller can do, and a detail that says what is wrong and what would be right.
// Whatever has no Error in its chain is Internal: it is logged, and its text is shown to nobody. Absent and somebody else's are one kind, NotFound, with one text (AssetMissing, SiteMissing).
// Unavailable and TimedOut refuse nothing for good: Refusal tells the two apart from the rest, for work that is tried again. Package web turns a kind into a status.
//
// # What is not here
//
// A type is here if more than one package needs it and it means something outside of the database. A service's views are in the service, the interface's bodies in wire, and records without such a
// meaning in store. Nothing here has JSON tags: what is stored as JSON has a record in store, and what is sent a body in wire.
package flex
