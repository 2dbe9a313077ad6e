// Package client is the Go client of flexd's interface. It gets and renews its token,
// tries again what failed for a passing reason (with an Idempotency-Key, so that nothing is
// done twice), and returns what the service said as a typed Error.
//
//	c := client.New("http://127.0.0.1:8080", "demo", "secret")
//	site, err := c.Onboard(ctx, client.OnboardRequest{…})
package client
