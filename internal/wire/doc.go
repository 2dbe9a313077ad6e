// Package wire is the contract: every request and answer of the interface as a struct,
// and the strict decoding of requests, which reports all faults of a request at once in
// the interface's words. It decides nothing: what a request means is the services' business.
//
// Names are exact, unknown ones are ignored, and a name given twice, data after the end,
// numbers that are not finite, bad UTF-8 and NUL are refused. Answers leave out what is
// absent, write lists as [] and never null, instants in UTC with the offset +00:00,
// wall times as HH:MM:SS and dates as YYYY-MM-DD.
package wire
