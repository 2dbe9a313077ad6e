// Package api is the HTTP transport: HTTP and JSON in, HTTP and JSON out. A handler reads its
// request with wire, calls one service and answers; routes.go is the whole surface on a page,
// status.go the one table that turns kinds of failure into status codes.
package api
