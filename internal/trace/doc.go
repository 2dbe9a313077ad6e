// Package trace records the steps of requests, background jobs and pushes as spans of
// OpenTelemetry, and sends them by OTLP over HTTP.
//
// Nothing is recorded until To has set the receiver; until then a span costs only a check of a
// flag.
//
//   - A request is a span, named by its route. It continues with the trace that its
//     traceparent field names (W3C Trace Context), if there is one.
//   - Within a request each transaction is a span, and each plan.
//   - A push that a request queued is sent later, by a background job. Its attempts are spans
//     of the request's trace if the same process makes them: the process remembers the latest
//     rememberedMax pushes by their event id. Otherwise an attempt begins a trace of its own.
//     Both have the event id as flexd.event_id.
//   - A background job that did something, or failed, is a span.
//
// No span contains the body of a request or an answer, an address, a name or a token.
package trace
