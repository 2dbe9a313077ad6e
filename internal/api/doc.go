// Package api is the HTTP transport: HTTP and JSON in, HTTP and JSON out. A handler reads its
// request with wire, calls one service and answers; routes.go is the whole surface on a page,
// status.go the one table that turns kinds of failure into status codes.
//
// # What every request goes through
//
// Server.handle wraps each route. The first step that fails gives the answer:
//
//	id          the request's own, or a new one; it is in the log and in each failure
//	identify    the bearer token (access), and whether it may be used from here
//	limit       the organisation's rate, or the address's: a generic cell rate algorithm with ten seconds at once
//	origin      a component token works in its own origin alone
//	allow       the role; a component token reaches its own site alone, and all else is not found
//	runOnce     the idempotency key, if there is one (access)
//	handler     one service, mostly one transaction
//	record      one event in the log, one count in the metrics
//
// # Failures
//
//   - A detail of a flex.Error was written to be shown. Any other failure is logged with the request's id and answered
//     as "internal error".
//   - A panic is an internal failure.
//   - A streamed answer that breaks off is logged and counted as a failure, and the connection is broken, so that nobody takes a part for
//     the whole.
//   - A body is bounded by its route's Limit. Readings are read as a stream, in batches that are kept one by one.
//   - The rate limit is in memory, for each process by itself: it keeps a client from drowning the others, it is no quota.
//
// The contract has one source: a Route with its Operation, and the types of wire that its handler reads. Package openapi
// writes the published document from them.
package api
