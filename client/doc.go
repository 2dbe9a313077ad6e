// Package client is the Go client of flexd's interface. It gets and renews its token, repeats
// requests that failed for a temporary reason (with an Idempotency-Key, so that nothing is
// done twice), and returns the service's errors as a typed Error.
//
//	c := client.New("http://127.0.0.1:8080", "demo", "secret")
//	site, err := c.Onboard(ctx, client.OnboardRequest{…})
//
// # Retries
//
// A request is tried again after 429, 502, 503, 504, a connection that failed, or an answer
// that broke off: Client.Retries times (4), after 0.2 s, 0.4 s and so on up to a minute, or as
// long as the service asks for. Where the context ends before that, the error is the context's
// and that of the last attempt. All attempts at a request have the same Idempotency-Key, so
// that the service carries it out once; an attempt that is answered with 409, because an
// earlier one is still being processed, is repeated too. After a 401 the token is renewed
// once. Each attempt may take 30 s, unless Client.HTTP says otherwise.
//
// # Streams
//
// FollowSite reads a site's states from a stream of server-sent events. A stream that ends or
// falls silent is opened again, and begins with the current state: states in between may be
// missed, but never the newest.
//
// The package imports nothing else of flexd.
package client
