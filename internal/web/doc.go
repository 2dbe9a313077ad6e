// Package web has what the HTTP transports share: a request's client address and id, the
// answers to a panic and to each kind of failure, the headers of every answer, and the server
// with its limits of connections and time.
//
// # Paths
//
// Characters that are percent-encoded in a path without need are decoded before a router sees
// it: /%61ssets is /assets.
//
// # Connections
//
// Server.Serve accepts at most Limits.Connections at once, and Limits.PerAddress of one client
// address. Further ones are closed as they arrive. Connections of trusted proxies count only
// in the total, since each serves many clients.
//
// # Time
//
//   - The header must arrive within headerTime, and a body within Limits.Read. A handler that
//     has identified the client lifts the second limit by AllowBody.
//   - Once the body is read, no limit of reading applies, so that a handler may take its time.
//   - An answer has Limits.Write, and a second more for every writeRate bytes, counted over
//     all writes. The handler's time between two writes does not count. A client that does not
//     read its answer is disconnected.
//   - A connection without a request is closed after idleTime.
package web
