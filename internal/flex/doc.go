// Package flex has the domain types and their rules: sites, assets, intents, sessions and
// settlement periods, the units of their quantities, and the kinds of failure. It has no
// clock, no wire format and no database, and imports nothing of flexd: every other package may
// import it.
//
// # Quantities
//
// Each quantity has a type, an integer of one unit, so that sums are exact and one cannot be
// passed for another:
//
//	Watts        power; positive draws from the grid, negative feeds it
//	WattHours    energy, with the same sign
//	Price        millionths of a pound per MWh
//	MicroPounds  money, as it is computed; Pence, as it is paid
//	Micro        a reading's value, in millionths of its label's unit (kWh, kW, % …)
//
// Numbers of the interface (kW, kWh, £/MWh) are rounded to the nearest unit when they are
// decoded. Money is rounded to pence once, half away from zero, when it is paid.
//
// # Time
//
// A Span is half-open: it includes its first instant and not its last. A Period is a half-hour
// of UTC, the unit in which electricity is traded. A Day is a calendar day in Great Britain
// (London), so it has 46, 48 or 50 periods. SettlementPeriod gives the number by which the
// market knows a period. A WallTime is a time of day on some clock; package tariff converts it
// to instants.
//
// # Identity
//
// An ID is a UUID of version 7: its first 48 bits are the milliseconds at which it was made,
// so ids sort by age. Each kind of record has its own type of ID. This package generates none:
// the caller passes the instant and the random bits.
//
// # Secrets and personal data
//
// Secret and Personal print, log and encode as [redacted]. Reveal is the only way to their
// text, so every place that shows one can be found by searching for it.
//
// # Failures
//
// An Error was written to be shown to the caller: it has a Kind, which says what the caller
// can do, and a detail that says what is wrong and what would be right. An error without an
// Error in its chain is Internal: it is logged, and its text is never shown. A record that
// does not exist and one of another organisation give the same kind, NotFound, with the same
// text (AssetMissing, SiteMissing). Refusal tells which errors refuse something for good and
// which work is tried again: an Error of any kind but Unavailable is a refusal. Package web
// turns a kind into a status.
//
// # What is not here
//
// A type is here if more than one package needs it and it has a meaning outside of the
// database. A service's views are in the service, the interface's bodies in wire, and records
// without such a meaning in store. No type here has JSON tags: what is stored as JSON has a
// record in store, and what is sent has a body in wire.
package flex
