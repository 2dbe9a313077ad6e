// Package trace records what a request, a background job and a push went through, as spans of
// OpenTelemetry, and sends them by OTLP over HTTP.
//
// Nothing is recorded until To has said where it goes; until then a span costs one look at a flag.
//
//   - A request is a span, named by its route. It continues with the trace that its traceparent field
//     names (W3C Trace Context), if there is one.
//   - Within a request each transaction is a span, and each plan.
//   - A push that a request queued is sent later, by a background job. Its attempts are spans of the
//     request's trace if the same process makes them: the process remembers the latest
//     rememberedMax pushes by their event id. Otherwise an attempt begins a trace of its own. Both bear the
//     event id as flexd.event_id.
//   - A background job that did something, or failed, is a span.
//
// No span bears what a request or an answer says, an address, a name or a token.
package trace
