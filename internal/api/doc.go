// Package api is the HTTP transport of the interface: JSON in, JSON out. A handler reads its
// request with package wire, calls one service and answers. routes.go lists all routes, and
// status.go has the one table from kinds of failure to status codes.
//
// # Steps of a request
//
// Server.handle wraps each route. The first step that fails gives the answer:
//
//	id          the request's own id, or a new one; it is in the log and in each failure
//	identify    the bearer token (access), and whether it may be used from this address
//	limit       the organisation's rate, or the address's: a generic cell rate algorithm with ten seconds at once
//	origin      a component token is valid only for pages of its own origin
//	allow       the role; a component token reaches only its own site, and everything else is not found
//	runOnce     the idempotency key, if there is one (access)
//	handler     one service, mostly one transaction
//	record      one event in the log, one count in the metrics
//
// # Failures
//
//   - The detail of a flex.Error was written to be shown. Any other failure is logged with the
//     request's id and answered as "internal error".
//   - A panic is an internal failure.
//   - If a streamed answer breaks off, that is logged and counted as a failure, and the
//     connection is broken, so that no client takes the part that it received for the whole.
//   - A body is limited to its route's Limit. Readings are read as a stream, and each batch is
//     committed separately.
//   - The rate limit is in memory, for each process separately: it protects clients from each
//     other and is not a quota.
//
// The contract has one source: a Route with its Operation, and the types of wire that its
// handler reads. Package openapi generates the published document from them.
package api
