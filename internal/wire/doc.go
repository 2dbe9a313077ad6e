// Package wire is the contract: every request and answer of the interface as a struct,
// and the strict decoding of requests, which reports all faults of a request at once in
// the interface's words. It decides nothing: what a request means is the services' business.
//
// # Decoding
//
// A type is compiled once, by reflection, into a shape: for each field its name, its kind (object, list, text, number, whole number, truth value, uuid, instant, time of day, date)
// and its rule, which is the tag wire:"…" (the type rule lists the words). The body is then read token by token and set into the struct. A wrong value does not end the reading: its fault is noted with its
// place ("body", names, list positions) and the rest is read too, up to MaxFaults. One flex.Invalid has them all. Join adds those of the path and the query.
//
//   - Names are exact. Unknown ones are passed over and noted (Ignored), so that a client may be newer than this flexd; one in the wrong case has a fault that names the right one.
//   - A name given twice, data after the end, numbers that are not finite, bad UTF-8 and NUL are refused: two readers of such a body could understand it differently.
//     What cannot be read in one way only, or is no JSON, has its fault alone: those found before it may be wrong.
//   - null is as not given, unless the rule says what it stands for.
//   - Lists, texts, depth and the whole body are bounded (MaxItems, MaxText, MaxDepth, MaxBody), before they are kept.
//   - Instants carry an offset where the rule says zoned; elsewhere one without is UTC.
//
// A type that cannot be compiled panics: a test compiles all of them.
//
// # Encoding
//
// Answers leave out what is absent, write lists as [] and never null, instants in UTC with a Z (those of dispatch plans with London's offset),
// wall times as HH:MM:SS and dates as YYYY-MM-DD.
//
// # Where it is used
//
// Package contract makes these structs of what services answer, and the transports decode into them. Package openapi generates openapi.yaml and the client's types from the same shapes, so a rule that is
// changed here changes the document. Names and forms that were published stay as they are.
package wire
