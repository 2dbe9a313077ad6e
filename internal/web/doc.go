// Package web is what the HTTP transports share: where a request came from, its id, what a
// panic and a kind of failure become, the headers that every answer carries, and the server
// with its limits of connections and of time.
//
// # Paths
//
// What is percent-encoded in a path without need is decoded before a router sees it: /%61ssets is /assets.
//
// # Connections
//
// Server.Serve takes at most Limits.Connections at once, and Limits.PerAddress of one client
// address. One too many is closed as it comes. Connections of trusted proxies count in the
// total alone, for they stand for many clients.
//
// # Time
//
//   - The header must be there after headerTime, and a body after Limits.Read. A handler that
//     has found out who asks lifts that with AllowBody.
//   - Once the body is read the connection is not read against the clock any more, so that a
//     handler may take its time.
//   - An answer has Limits.Write, and a second more for every writeRate bytes, all writes
//     together. What the handler takes between two writes does not count. A client that does
//     not read its answer is cut off.
//   - A connection without a request is closed after idleTime.
package web
