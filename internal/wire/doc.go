// Package wire has every request and answer of the interface as a struct, and the strict
// decoding of requests, which reports all faults of a request at once in the interface's
// words. It decides nothing: the services give a request its meaning.
//
// # Decoding
//
// A type is compiled once, by reflection, into a shape: for each field its name, its kind
// (object, list, text, number, whole number, truth value, uuid, instant, time of day, date)
// and its rule, which is the tag wire:"…" (the type rule lists the words). The body is then
// read token by token into the struct. Reading continues after a wrong value: its fault is
// recorded with its place ("body", names, list positions), up to MaxFaults. One flex.Invalid
// has them all. Join adds those of the path and the query.
//
//   - Names are exact. Unknown ones are ignored and recorded (Ignored), so that a client may
//     be newer than this flexd; a name in the wrong case has a fault that gives the right one.
//   - A name given twice, data after the end, numbers that are not finite, invalid UTF-8 and
//     NUL are refused: two readers of such a body could understand it differently. An
//     ambiguous body, or one that is no JSON, has only that one fault, as faults found before
//     it may be wrong.
//   - null means not given, unless the rule gives it another meaning.
//   - Lists, texts, depth and the whole body are limited (MaxItems, MaxText, MaxDepth,
//     MaxBody) before they are stored.
//   - Instants have an offset where the rule says zoned; elsewhere one without is UTC.
//
// A type that cannot be compiled panics: a test compiles all of them.
//
// # Encoding
//
// Answers leave out absent values, write an empty list as [] and never null, instants in UTC
// with a Z (those of dispatch plans with London's offset), wall times as HH:MM:SS and dates as
// YYYY-MM-DD.
//
// # Where it is used
//
// Package contract converts the services' results into these structs, and the transports
// decode requests into them. Package openapi generates openapi.yaml and the client's types
// from the same shapes, so a changed rule changes the document. Published names and formats do
// not change.
package wire
